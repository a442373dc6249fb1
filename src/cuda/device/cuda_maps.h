#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <unordered_map>

#include "cuda/device/tensor_map.h"

namespace skein::cuda {

// Makes the driver's forms of TensorMaps. It keeps them, since a model's matrices have the same
// maps in every pass.
class CudaMaps {
 public:
  // Looks the driver's function up. False: an older driver, which has none.
  bool Open() {
    constexpr unsigned kCudaVersion = 12000;  // in which the function came
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void* function = nullptr;
    const cudaError_t error = cudaGetDriverEntryPointByVersion(
        "cuTensorMapEncodeTiled", &function, kCudaVersion, cudaEnableDefault, &found);
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return false;
    encode_ = reinterpret_cast<decltype(encode_)>(function);
    return true;
  }
  bool is_open() const { return encode_ != nullptr; }

  // Replaces the TensorMap at `bytes` by the driver's form. REQUIRES: is_open().
  CUresult Encode(std::byte* bytes) {
    const std::string key(reinterpret_cast<const char*>(bytes), sizeof(TensorMap));
    auto found = maps_.find(key);
    if (found == maps_.end()) {
      // The maps of activations follow from the number of rows: there may be many.
      if (maps_.size() >= kMostMaps) maps_.clear();
      TensorMap map;
      std::memcpy(&map, bytes, sizeof(map));
      CUtensorMap encoded;
      if (const CUresult result = EncodeNew(map, &encoded); result != CUDA_SUCCESS) return result;
      found = maps_.emplace(key, encoded).first;
    }
    std::memcpy(bytes, &found->second, sizeof(found->second));
    return CUDA_SUCCESS;
  }

 private:
  static constexpr size_t kMostMaps = 4096;
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));

  CUresult EncodeNew(const TensorMap& map, CUtensorMap* encoded) const {
    cuuint64_t sizes[3], strides[2];
    std::ranges::copy(map.sizes, sizes);
    std::ranges::copy(map.strides, strides);
    const cuuint32_t box[] = {TensorMap::kRowWords, static_cast<cuuint32_t>(map.rows),
                              static_cast<cuuint32_t>(map.matrices)};
    const cuuint32_t steps[] = {1, 1, 1};
    return encode_(encoded, CU_TENSOR_MAP_DATA_TYPE_UINT32, 3, const_cast<void*>(map.base), sizes,
                   strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }

  decltype(&cuTensorMapEncodeTiled) encode_ = nullptr;
  std::unordered_map<std::string, CUtensorMap> maps_;  // by the bytes of the TensorMap
};

}  // namespace skein::cuda
