#pragma once

// The functions of all kernels. The sources of this folder add them, each those of one kind. Both
// sides compile every source, the emulator's compiler and nvcc.

#include <array>

#include "cuda/kernels/dialect.h"
#include "cuda/kernels/kernel_id.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The function of a kernel as an address, and as a call for a thread of the emulator.
struct KernelFunction {
  template <typename Args>
  KernelFunction& operator=(void (*kernel)(Args)) {
    address = reinterpret_cast<const void*>(kernel);
    run = [](const void* function, const void* args) {
      reinterpret_cast<void (*)(Args)>(const_cast<void*>(function))(
          *static_cast<const Args*>(args));
    };
    return *this;
  }

  const void* address = nullptr;
  void (*run)(const void* address, const void* args) = nullptr;
};

using KernelTable = std::array<KernelFunction, kNumKernels>;

inline KernelFunction& At(KernelTable& table, KernelId id) { return table[static_cast<int>(id)]; }

void AddRowKernels(KernelTable& table);
void AddAttentionKernels(KernelTable& table);
void AddBf16Products(KernelTable& table);
void AddOtherProducts(KernelTable& table);
void AddBlockKernels(KernelTable& table);
void AddDrawKernels(KernelTable& table);

inline KernelTable MakeKernelTable() {
  KernelTable table;
  AddRowKernels(table);
  AddAttentionKernels(table);
  AddBf16Products(table);
  AddOtherProducts(table);
  AddBlockKernels(table);
  AddDrawKernels(table);
  return table;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
