#include "cuda/executor/device_kv.h"

#include "base/check.h"

namespace skein::cuda {

Result<std::unique_ptr<DeviceKv>> DeviceKv::Make(const KvLayout& layout, Device* device) {
  SKEIN_CHECK(!layout.contiguous);
  std::unique_ptr<DeviceKv> kv(new DeviceKv(layout, device));
  SKEIN_ASSIGN_OR_RETURN(kv->memory_,
                         Buffer::Make(device, Buffer::Place::kDevice, layout.total_bytes()));
  return kv;
}

// The heads of a block are adjacent in the device's memory, as they are in the order of KvPort.
void DeviceKv::ExportBlock(BlockId block, std::span<std::byte> out) const {
  SKEIN_CHECK(block >= 0 && block < layout_.num_blocks && out.size() == port_bytes());
  for (int32_t layer = 0; layer < layout_.num_layers; ++layer) {
    device_->CopyToHost(out.data() + layer * layout_.block_bytes(),
                        data() + layout_.Offset(layer, block, 0), layout_.block_bytes());
  }
  (void)device_->WaitForAll().ok();
}

void DeviceKv::ImportBlock(BlockId block, std::span<const std::byte> in) {
  SKEIN_CHECK(block >= 0 && block < layout_.num_blocks && in.size() == port_bytes());
  for (int32_t layer = 0; layer < layout_.num_layers; ++layer) {
    device_->CopyToDevice(data() + layout_.Offset(layer, block, 0),
                          in.data() + layer * layout_.block_bytes(), layout_.block_bytes());
  }
  (void)device_->WaitForAll().ok();
}

}  // namespace skein::cuda
