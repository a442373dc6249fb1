#include "bench/kernels/onednn.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace skein {

std::unique_ptr<OneDnnProduct> OneDnnProduct::Make(int32_t m, int32_t n, int32_t k,
                                                   std::span<const Bf16> a, std::span<const Bf16> w,
                                                   int num_weights, int num_threads) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return nullptr;
  const std::string path = program.parent_path() / kOneDnnModule;
  // The module stays: oneDNN's threads outlive a product.
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return nullptr;
  const auto make = reinterpret_cast<decltype(&skein_make_onednn_product)>(
      dlsym(module, "skein_make_onednn_product"));
  if (make == nullptr) return nullptr;
  return std::unique_ptr<OneDnnProduct>(make(m, n, k, a, w, num_weights, num_threads));
}

}  // namespace skein
