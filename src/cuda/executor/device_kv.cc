#include "cuda/executor/device_kv.h"

#include <utility>

#include "base/check.h"

namespace skein::cuda {

DeviceKv::DeviceKv(const KvLayout& layout, std::vector<Device*> devices)
    : layout_(layout), devices_(std::move(devices)), rank_layout_(layout) {
  rank_layout_.num_kv_heads /= static_cast<int32_t>(devices_.size());
}

Result<std::unique_ptr<DeviceKv>> DeviceKv::Make(const KvLayout& layout,
                                                 std::vector<Device*> devices) {
  SKEIN_CHECK(!layout.contiguous);
  std::unique_ptr<DeviceKv> kv(new DeviceKv(layout, std::move(devices)));
  for (Device* const device : kv->devices_) {
    SKEIN_ASSIGN_OR_RETURN(
        kv->memory_.emplace_back(),
        Buffer::Make(device, Buffer::Place::kDevice, kv->rank_layout_.total_bytes()));
  }
  return kv;
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
