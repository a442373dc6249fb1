#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "engine/kv_port.h"
#include "kernels/kv_layout.h"

namespace skein::cuda {

// The keys and values of all blocks and layers, in the order of KvLayout, so that blocks can be
// exchanged with an executor on the CPU. Each rank has its heads on its device.
class DeviceKv final : public KvPort {
 public:
  // `layout`: of the heads of all ranks; devices: one for each. Fails as Device::Allocate does.
  static Result<std::unique_ptr<DeviceKv>> Make(const KvLayout& layout,
                                                std::vector<Device*> devices);

  const KvLayout& layout() const { return layout_; }
  // That of a rank's heads, and its memory.
  const KvLayout& rank_layout() const { return rank_layout_; }
  uint8_t* data(int32_t rank) const { return memory_[rank].as<uint8_t>(); }
  size_t bytes() const { return memory_.size() * rank_layout_.total_bytes(); }

  size_t port_bytes() const override { return layout_.num_layers * layout_.block_bytes(); }
  // If a device is lost, its part of `out` stays unchanged.
  void ExportBlock(BlockId block, std::span<std::byte> out) const override;
  void ImportBlock(BlockId block, std::span<const std::byte> in) override;

 private:
  DeviceKv(const KvLayout& layout, std::vector<Device*> devices);

  const KvLayout layout_;
  const std::vector<Device*> devices_;
  KvLayout rank_layout_;
  std::vector<Buffer> memory_;  // [rank]
};

}  // namespace skein::cuda
