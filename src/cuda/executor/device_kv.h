#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "cuda/device/device.h"
#include "engine/kv_port.h"
#include "kernels/kv_layout.h"

namespace skein::cuda {

// The keys and values of all blocks and layers on a device, in the order of KvLayout, so that
// blocks can be exchanged with an executor on the CPU.
class DeviceKv final : public KvPort {
 public:
  // Fails as Device::Allocate does.
  static Result<std::unique_ptr<DeviceKv>> Make(const KvLayout& layout, Device* device);

  const KvLayout& layout() const { return layout_; }
  uint8_t* data() const { return memory_.as<uint8_t>(); }
  size_t bytes() const { return memory_.bytes(); }

  size_t port_bytes() const override { return layout_.num_layers * layout_.block_bytes(); }
  // If the device is lost, `out` stays unchanged.
  void ExportBlock(BlockId block, std::span<std::byte> out) const override;
  void ImportBlock(BlockId block, std::span<const std::byte> in) override;

 private:
  DeviceKv(const KvLayout& layout, Device* device) : layout_(layout), device_(device) {}

  const KvLayout layout_;
  Device* const device_;
  Buffer memory_;
};

}  // namespace skein::cuda
