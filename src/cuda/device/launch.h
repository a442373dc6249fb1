#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "cuda/device/tensor_map.h"
#include "cuda/kernels/kernel_id.h"

namespace skein::cuda {

inline constexpr int kWarpThreads = 32;
inline constexpr int kMaxBlockThreads = 1024;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// The shape of a launch. Blocks have one dimension and consist of whole warps.
struct LaunchShape {
  Dim3 grid;
  uint32_t threads = kWarpThreads;
  uint32_t shared_bytes = 0;
};

// A launch of a kernel, as a value that a device can run, record or drop.
struct Launch {
  static constexpr size_t kMaxArgBytes = 512;

  template <typename Args>
  Launch(KernelId id, const LaunchShape& launch_shape, const Args& kernel_args)
      : kernel(id), shape(launch_shape) {
    static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= kMaxArgBytes);
    std::memcpy(args.data(), &kernel_args, sizeof(Args));
    if constexpr (requires { kernel_args.maps; }) {
      first_map = offsetof(Args, maps);
      num_maps = std::size(kernel_args.maps);
    }
  }

  KernelId kernel;
  LaunchShape shape;
  alignas(alignof(TensorMap)) std::array<std::byte, kMaxArgBytes> args = {};
  // The TensorMaps in args: their place in bytes, and their number.
  size_t first_map = 0, num_maps = 0;
};

}  // namespace skein::cuda
