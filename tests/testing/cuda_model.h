#pragma once

// A loaded model on a fake device, beside the same model on the processor.

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_executor.h"
#include "cuda/executor/device_kv.h"
#include "testing/loaded_model.h"

namespace skein::testing {

class CudaModel {
 public:
  // `device` and `model` outlive it.
  CudaModel(cuda::Device* device, const LoadedModel& model, int32_t num_blocks,
            const ForwardLimits& limits, const StepStates& states = {},
            Pooling pooling = Pooling::kLast, const std::vector<LoraWeights>* adapters = nullptr) {
    const ModelConfig& config = model.config();
    EXPECT_TRUE(cuda::CheckDeviceComputes(model.weights()).ok());
    weights_ = cuda::DeviceWeights::Upload(model.weights(), device).value();
    if (adapters != nullptr) {
      EXPECT_TRUE(weights_->AddAdapters(*adapters).ok());
    }
    KvLayout layout = model.context().kv_layout;
    layout.num_blocks = num_blocks;
    kv_ = cuda::DeviceKv::Make(layout, device).value();
    // A newly assigned block holds the data of its last owner.
    const std::vector<std::byte> stale(kv_->port_bytes(), std::byte{0xff});
    for (int32_t block = 0; block < num_blocks; ++block) kv_->ImportBlock(block, stale);
    cuda::CudaContext context = {.device = device, .weights = weights_.get()};
    context.model = model.context();
    context.model.kv = nullptr;
    context.model.kv_layout = layout;
    context.kv = kv_->data();
    if (const size_t bytes = context.model.state_layout.total_bytes(); bytes > 0) {
      states_ = cuda::Buffer::Make(device, cuda::Buffer::Place::kDevice, bytes).value();
      context.states = states_.as<float>();
    }
    context.model.pooling = pooling;
    context.model.adapters = adapters;
    if (const RopeAngles* rope = model.context().rope; rope != nullptr) {
      rope_ = cuda::DeviceRope::Upload(*rope, device).value();
      context.rope = &rope_;
    }
    if (const RopeAngles* local = model.context().local_rope; local != nullptr) {
      local_rope_ = cuda::DeviceRope::Upload(*local, device).value();
      context.local_rope = &local_rope_;
    }
    EXPECT_GT(config.vocab_size, 0);
    executor_ = cuda::CudaExecutor::Make(context, limits, states).value();
  }

  cuda::CudaExecutor& executor() { return *executor_; }
  cuda::DeviceKv& kv() { return *kv_; }

 private:
  std::unique_ptr<cuda::DeviceWeights> weights_;
  std::unique_ptr<cuda::DeviceKv> kv_;
  cuda::DeviceRope rope_, local_rope_;
  cuda::Buffer states_;
  std::unique_ptr<cuda::CudaExecutor> executor_;
};

}  // namespace skein::testing
