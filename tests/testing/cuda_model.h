#pragma once

// A loaded model on a fake device, beside the same model on the processor.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_executor.h"
#include "cuda/executor/kv/device_kv.h"
#include "testing/loaded_model.h"

namespace skein::testing {

// The host tier of a model on a fake device.
inline constexpr int32_t kDeviceHostBlocks = 8;

class CudaModel {
 public:
  // Devices, one for each rank, and `model` outlive it.
  CudaModel(const std::vector<cuda::Device*>& devices, const LoadedModel& model, int32_t num_blocks,
            const ForwardLimits& limits, const StepStates& states = {},
            Pooling pooling = Pooling::kLast, const std::vector<LoraWeights>* adapters = nullptr)
      : ranks_(devices.size()) {
    EXPECT_TRUE(cuda::CheckDeviceComputes(model.weights()).ok());
    EXPECT_TRUE(cuda::CheckRanks(model.config(), static_cast<int32_t>(devices.size())).ok());
    EXPECT_GT(model.config().vocab_size, 0);
    KvLayout layout = model.context().kv_layout;
    layout.num_blocks = num_blocks;
    kv_ = cuda::DeviceKv::Make(layout, devices, kDeviceHostBlocks).value();
    // A newly assigned block holds the data of its last owner.
    const std::vector<std::byte> stale(kv_->port_bytes(), std::byte{0xff});
    for (int32_t block = 0; block < num_blocks; ++block) kv_->ImportBlock(block, stale);
    std::vector<cuda::CudaContext> contexts;
    for (size_t i = 0; i < devices.size(); ++i) {
      const cuda::Rank rank = {static_cast<int32_t>(i), static_cast<int32_t>(devices.size())};
      const size_t state_bytes =
          cuda::CudaExecutor::StateBytes(model.context().state_layout, states);
      contexts.push_back(ContextOf(rank, devices[i], model, adapters, state_bytes, &ranks_[i]));
      contexts.back().model.pooling = pooling;
    }
    executor_ = cuda::CudaExecutor::Make(std::move(contexts), limits, states).value();
    executor_->set_kv(kv_.get());
  }

  cuda::CudaExecutor& executor() { return *executor_; }
  cuda::DeviceKv& kv() { return *kv_; }

 private:
  struct RankMemory {
    std::unique_ptr<cuda::DeviceWeights> weights;
    cuda::DeviceRope rope, local_rope;
    cuda::Buffer states;
  };

  cuda::CudaContext ContextOf(const cuda::Rank& rank, cuda::Device* device,
                              const LoadedModel& model, const std::vector<LoraWeights>* adapters,
                              size_t state_bytes, RankMemory* memory) {
    memory->weights = cuda::DeviceWeights::Upload(model.weights(), rank, device).value();
    if (adapters != nullptr) {
      EXPECT_TRUE(memory->weights->AddAdapters(*adapters).ok());
    }
    cuda::CudaContext context = {.device = device, .rank = rank, .weights = memory->weights.get()};
    context.model = model.context();
    context.model.kv = nullptr;
    context.model.kv_layout = kv_->rank_layout();
    context.kv = kv_->data(rank.index);
    if (state_bytes > 0) {
      memory->states =
          cuda::Buffer::Make(device, cuda::Buffer::Place::kDevice, state_bytes).value();
      context.states = memory->states.as<float>();
    }
    context.model.adapters = adapters;
    if (const RopeAngles* rope = model.context().rope; rope != nullptr) {
      memory->rope = cuda::DeviceRope::Upload(*rope, device).value();
      context.rope = &memory->rope;
    }
    if (const RopeAngles* local = model.context().local_rope; local != nullptr) {
      memory->local_rope = cuda::DeviceRope::Upload(*local, device).value();
      context.local_rope = &memory->local_rope;
    }
    return context;
  }

  std::vector<RankMemory> ranks_;
  std::unique_ptr<cuda::DeviceKv> kv_;
  std::unique_ptr<cuda::CudaExecutor> executor_;
};

}  // namespace skein::testing
