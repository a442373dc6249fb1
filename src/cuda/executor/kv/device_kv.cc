#include "cuda/executor/kv/device_kv.h"

#include <utility>

#include "base/check.h"

namespace skein::cuda {

DeviceKv::DeviceKv(const KvLayout& layout, std::vector<Device*> devices, int32_t num_host_blocks)
    : layout_(layout),
      devices_(std::move(devices)),
      rank_layout_(layout),
      num_host_blocks_(num_host_blocks) {
  rank_layout_.num_kv_heads /= static_cast<int32_t>(devices_.size());
}

Result<std::unique_ptr<DeviceKv>> DeviceKv::Make(const KvLayout& layout,
                                                 std::vector<Device*> devices,
                                                 int32_t num_host_blocks) {
  SKEIN_CHECK(!layout.contiguous && num_host_blocks >= 0);
  std::unique_ptr<DeviceKv> kv(new DeviceKv(layout, std::move(devices), num_host_blocks));
  const KvLayout& of_rank = kv->rank_layout_;
  const size_t host_bytes = num_host_blocks * (of_rank.num_layers * of_rank.block_bytes());
  for (Device* const device : kv->devices_) {
    SKEIN_ASSIGN_OR_RETURN(kv->memory_.emplace_back(),
                           Buffer::Make(device, Buffer::Place::kDevice, of_rank.total_bytes()));
    if (host_bytes == 0) continue;
    SKEIN_ASSIGN_OR_RETURN(kv->on_host_.emplace_back(),
                           Buffer::Make(device, Buffer::Place::kHost, host_bytes));
  }
  return kv;
}

void DeviceKv::Run(std::span<const HostCopy> copies) {
  for (const HostCopy& copy : copies) {
    SKEIN_CHECK(copy.block >= 0 && copy.block < layout_.num_blocks);
    SKEIN_CHECK(copy.slot >= 0 && copy.slot < num_host_blocks_);
    for (size_t rank = 0; rank < devices_.size(); ++rank) {
      const LayerRows block = {.base = memory_[rank].as<uint8_t>(),
                               .row_bytes = rank_layout_.block_bytes(),
                               .num_rows = rank_layout_.num_blocks,
                               .row = copy.block,
                               .num_layers = rank_layout_.num_layers};
      uint8_t* const on_host = on_host_[rank].as<uint8_t>() +
                               copy.slot * (rank_layout_.num_layers * rank_layout_.block_bytes());
      if (copy.to_host) {
        devices_[rank]->CopyToHost(on_host, block);
      } else {
        devices_[rank]->CopyToDevice(block, on_host);
      }
    }
  }
}

// The heads of a block are adjacent in a device's memory, and rank behind rank in the order of
// KvPort.
void DeviceKv::ExportBlock(BlockId block, std::span<std::byte> out) const {
  SKEIN_CHECK(block >= 0 && block < layout_.num_blocks && out.size() == port_bytes());
  std::byte* to = out.data();
  for (int32_t layer = 0; layer < layout_.num_layers; ++layer) {
    for (size_t rank = 0; rank < devices_.size(); ++rank) {
      const uint8_t* const from =
          memory_[rank].as<uint8_t>() + rank_layout_.Offset(layer, block, 0);
      devices_[rank]->CopyToHost(to, from, rank_layout_.block_bytes());
      to += rank_layout_.block_bytes();
    }
  }
  for (Device* const device : devices_) (void)device->WaitForAll().ok();
}

void DeviceKv::ImportBlock(BlockId block, std::span<const std::byte> in) {
  SKEIN_CHECK(block >= 0 && block < layout_.num_blocks && in.size() == port_bytes());
  const std::byte* from = in.data();
  for (int32_t layer = 0; layer < layout_.num_layers; ++layer) {
    for (size_t rank = 0; rank < devices_.size(); ++rank) {
      uint8_t* const to = memory_[rank].as<uint8_t>() + rank_layout_.Offset(layer, block, 0);
      devices_[rank]->CopyToDevice(to, from, rank_layout_.block_bytes());
      from += rank_layout_.block_bytes();
    }
  }
  for (Device* const device : devices_) (void)device->WaitForAll().ok();
}

}  // namespace skein::cuda
