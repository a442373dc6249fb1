#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "cuda/device/launch.h"
#include "cuda/device/tensor_map.h"

namespace skein::cuda {

// Makes the driver's forms of TensorMaps. It keeps them, since a model's matrices have the same
// maps in every pass.
class CudaMaps {
 public:
  // Looks the driver's function up. An older driver has none.
  void Open() {
    constexpr unsigned kCudaVersion = 12000;  // the function came with it
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void* function = nullptr;
    const cudaError_t error = cudaGetDriverEntryPointByVersion(
        "cuTensorMapEncodeTiled", &function, kCudaVersion, cudaEnableDefault, &found);
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return;
    encode_ = reinterpret_cast<decltype(encode_)>(function);
    maps_.reserve(kMostMaps);
  }
  bool is_open() const { return encode_ != nullptr; }

  // Replaces the TensorMaps of a launch by the driver's form. kUnavailable: the driver refuses one.
  // REQUIRES: is_open().
  Status Encode(Launch& launch) {
    for (size_t i = 0; i < launch.num_maps; ++i) {
      Key key;
      std::byte* const bytes = launch.args.data() + launch.first_map + i * key.size();
      std::memcpy(key.data(), bytes, key.size());
      auto found = maps_.find(key);
      if (found == maps_.end()) {
        // The maps of activations follow from the number of rows: there may be many.
        if (maps_.size() >= kMostMaps) maps_.clear();
        TensorMap map;
        std::memcpy(&map, bytes, sizeof(map));
        CUtensorMap encoded;
        if (const CUresult result = EncodeNew(map, &encoded); result != CUDA_SUCCESS) {
          return Status(
              StatusCode::kUnavailable,
              fmt::format("cuTensorMapEncodeTiled: error {} for a matrix of {} x {} x {} "
                          "words in rows of {} bytes, at {}, in boxes of {} x {} rows",
                          static_cast<int>(result), map.sizes[0], map.sizes[1], map.sizes[2],
                          map.strides[0], map.base, map.rows, map.matrices));
        }
        found = maps_.emplace(key, encoded).first;
      }
      std::memcpy(bytes, &found->second, sizeof(found->second));
    }
    return Status::Ok();
  }

 private:
  using Key = std::array<char, sizeof(TensorMap)>;  // the bytes of the TensorMap
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<std::string_view>()({key.data(), key.size()});
    }
  };
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
  std::unordered_map<Key, CUtensorMap, Hash> maps_;
};

}  // namespace skein::cuda
