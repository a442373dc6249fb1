#pragma once

#include "base/result.h"
#include "cuda/device/device.h"
#include "model/forward/rope_angles.h"

namespace skein::cuda {

// The cosines and sines of all positions on the device: [positions, rotary_dim / 2] each.
struct DeviceRope {
  const float* cos() const { return cos_memory.as<float>(); }
  const float* sin() const { return sin_memory.as<float>(); }

  // Copies them. Fails as Device::Allocate and Device::Wait do.
  static Result<DeviceRope> Upload(const RopeAngles& rope, Device* device) {
    const size_t bytes = rope.bytes() / 2;
    DeviceRope on_device;
    SKEIN_ASSIGN_OR_RETURN(on_device.cos_memory,
                           Buffer::Make(device, Buffer::Place::kDevice, bytes));
    SKEIN_ASSIGN_OR_RETURN(on_device.sin_memory,
                           Buffer::Make(device, Buffer::Place::kDevice, bytes));
    device->CopyToDevice(on_device.cos_memory.as<void>(), rope.cos(0), bytes);
    device->CopyToDevice(on_device.sin_memory.as<void>(), rope.sin(0), bytes);
    SKEIN_RETURN_IF_ERROR(device->WaitForAll());
    return on_device;
  }

  Buffer cos_memory, sin_memory;
};

}  // namespace skein::cuda
