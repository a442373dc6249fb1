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
#include "kv/host_tier.h"

namespace skein::cuda {

// The keys and values of all blocks and layers, in the order of KvLayout, so that blocks can be
// exchanged with an executor on the CPU. Each rank has its heads on its device. The slots of a host
// tier lie in the host's memory: [slot][layer][KV head][K, V] for each rank.
class DeviceKv final : public KvPort {
 public:
  // `layout`: of the heads of all ranks; devices: one for each; `num_host_blocks`: slots of the
  // host tier. Fails as Device::Allocate and AllocateHost do.
  static Result<std::unique_ptr<DeviceKv>> Make(const KvLayout& layout,
                                                std::vector<Device*> devices,
                                                int32_t num_host_blocks = 0);

  const KvLayout& layout() const { return layout_; }
  // That of a rank's heads, and its memory.
  const KvLayout& rank_layout() const { return rank_layout_; }
  uint8_t* data(int32_t rank) const { return memory_[rank].as<uint8_t>(); }
  size_t bytes() const { return memory_.size() * rank_layout_.total_bytes(); }
  int32_t num_host_blocks() const { return num_host_blocks_; }
  size_t host_bytes() const { return num_host_blocks_ * port_bytes(); }

  // Gives the copies of whole blocks to the devices, in order. Each device makes those of its heads
  // behind its earlier commands and ahead of later ones; the caller does not wait. Cost: one
  // command for each block and rank. REQUIRES: blocks and slots exist.
  void Run(std::span<const HostCopy> copies);

  size_t port_bytes() const override { return layout_.num_layers * layout_.block_bytes(); }
  // If a device is lost, its part of `out` stays unchanged.
  void ExportBlock(BlockId block, std::span<std::byte> out) const override;
  void ImportBlock(BlockId block, std::span<const std::byte> in) override;

 private:
  DeviceKv(const KvLayout& layout, std::vector<Device*> devices, int32_t num_host_blocks);

  const KvLayout layout_;
  const std::vector<Device*> devices_;
  KvLayout rank_layout_;
  const int32_t num_host_blocks_;
  std::vector<Buffer> memory_;   // [rank]
  std::vector<Buffer> on_host_;  // [rank]; empty if there are no slots
};

}  // namespace skein::cuda
