#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/gpu/gpu_cases.h"
#include "cuda/device/device.h"
#include "cuda/kernels/args.h"

namespace skein {

// A device that keeps the launches that it passes on to another device.
class RecordingDevice final : public cuda::Device {
 public:
  // Adds the launches to *`recording` while that is set. `recording` outlives the device.
  RecordingDevice(std::unique_ptr<cuda::Device> device, std::vector<cuda::Launch>* const* recording)
      : device_(std::move(device)), recording_(recording) {}

  const std::string& name() const override { return device_->name(); }
  cuda::DeviceMemory Memory() override { return device_->Memory(); }
  int64_t shared_bytes() const override { return device_->shared_bytes(); }
  bool has_phases() const override { return device_->has_phases(); }
  int64_t persistent_blocks() const override { return device_->persistent_blocks(); }
  Result<void*> Allocate(size_t bytes) override { return device_->Allocate(bytes); }
  void Free(void* memory) override { device_->Free(memory); }
  Result<void*> AllocateHost(size_t bytes) override { return device_->AllocateHost(bytes); }
  void FreeHost(void* memory) override { device_->FreeHost(memory); }
  void CopyToDevice(void* to, const void* from, size_t bytes) override {
    device_->CopyToDevice(to, from, bytes);
  }
  void CopyToHost(void* to, const void* from, size_t bytes) override {
    device_->CopyToHost(to, from, bytes);
  }
  void CopyToDevice(const cuda::LayerRows& to, const void* from) override {
    device_->CopyToDevice(to, from);
  }
  void CopyToHost(void* to, const cuda::LayerRows& from) override { device_->CopyToHost(to, from); }
  void Run(const cuda::Launch& launch) override;
  void BeginGraph() override;
  Result<int32_t> EndGraph() override;
  void RunGraph(int32_t graph) override;
  void FreeGraph(int32_t graph) override;
  int64_t Mark() override { return device_->Mark(); }
  Status Wait(int64_t mark) override { return device_->Wait(mark); }
  Status Connect(Device& peer) override {
    return device_->Connect(*static_cast<RecordingDevice&>(peer).device_);
  }
  void WaitForPeer(Device& peer, int64_t mark) override {
    device_->WaitForPeer(*static_cast<RecordingDevice&>(peer).device_, mark);
  }

 private:
  void Record(std::span<const cuda::Launch> launches);

  const std::unique_ptr<cuda::Device> device_;
  std::vector<cuda::Launch>* const* const recording_;
  std::map<int32_t, std::vector<cuda::Launch>> graphs_;
  std::optional<std::vector<cuda::Launch>> graph_;  // of the graph at hand
};

// The launches of a pass that do the same work, in different layers.
struct KernelTime {
  std::string kernel;  // a product has its rows, columns and terms
  int32_t launches = 0;
  double us = 0;      // of all of them
  double tflops = 0;  // of a product, else 0
};
// Times launches, kind by kind: all launches of a kind run as one graph, with the operands that
// they had. Their outputs lose their sense. The longest kind comes first.
Result<std::vector<KernelTime>> TimeKernels(cuda::Device& device,
                                            std::span<const cuda::Launch> launches);

struct TileTime {
  GemmShape shape;
  cuda::GemmOutput output = cuda::GemmOutput::kStore;
  std::string tile;
  bool chosen = false;  // by the executor
  double us = 0;
};
// Times products of bf16 with each tile that may suit them.
Result<std::vector<TileTime>> TimeTiles(cuda::Device& device, std::span<const GemmShape> shapes,
                                        int32_t repetitions);

}  // namespace skein
