// The entries that libFuzzer calls, for the harness SKEIN_FUZZ_RUN. Inputs with JSON are changed as
// JSON half of the time.

#include <algorithm>
#include <cstring>
#include <string>

#include "harness.h"
#include "json_mutator.h"

extern "C" {

// libFuzzer's own, of bytes.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  skein::fuzz::SKEIN_FUZZ_RUN({data, size});
  return 0;
}

#ifdef SKEIN_FUZZ_JSON

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  const auto text = skein::fuzz::TextOf({data, size});
  if (seed % 2 == 0) {
    const std::string changed = skein::fuzz::MutateJson(text, text, seed);
    if (!changed.empty() && changed.size() <= max_size) {
      std::memcpy(data, changed.data(), changed.size());
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                 size_t other_size, uint8_t* out, size_t max_out,
                                 unsigned int seed) {
  std::string changed = skein::fuzz::MutateJson(skein::fuzz::TextOf({data, size}),
                                                skein::fuzz::TextOf({other, other_size}), seed);
  if (changed.empty() || changed.size() > max_out) {
    changed = std::string(skein::fuzz::TextOf({data, std::min(size, max_out)}));
  }
  std::memcpy(out, changed.data(), changed.size());
  return changed.size();
}

#endif

}  // extern "C"
