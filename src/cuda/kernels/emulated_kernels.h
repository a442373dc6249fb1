#pragma once

#include "base/result.h"
#include "cuda/device/launch.h"
#include "cuda/emulator/emulator.h"

namespace skein::cuda {

// Runs a launch on the host. Addresses in its arguments are the host's. Fails as Emulator::Run
// does.
Status RunEmulated(const Launch& launch, Emulator& emulator);
// Its first step, to which Emulator::FinishKernel is the second.
void BeginEmulated(const Launch& launch, Emulator& emulator);

}  // namespace skein::cuda
