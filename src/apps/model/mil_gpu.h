#pragma once

#include <span>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "model/config/config.h"
#include "runtime/memory_plan.h"
#include "server/json/json.h"

namespace skein {

// Prints how long a prompt each mode allows on a GPU with so much memory ("24GB") beside the
// weights, by the plan for devices (cuda/executor/device_plan.h), and returns it. Nothing runs. The
// modes that a device does not have are left out. Fails as ParseByteSize does, or with
// kInvalidArgument if the weights alone take the memory.
Result<Json> PlanOnGpu(const ModelConfig& config, DType dtype,
                       std::span<const PrefillMode* const> modes, const std::string& memory);

}  // namespace skein
