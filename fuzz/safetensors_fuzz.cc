#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "harness.h"
#include "io/safetensors_header.h"

namespace skein::fuzz {

// A header that is accepted covers the data without gap or overlap.
void FuzzSafetensors(Bytes data) {
  const auto file = std::as_bytes(data);
  const auto header = ParseSafetensorsHeader(file, file.size(), "file");
  if (!header.ok()) {
    SKEIN_CHECK(!header.status().message().empty());
    return;
  }
  std::vector<const TensorInfo*> tensors;
  for (const auto& [name, info] : header.value().tensors) tensors.push_back(&info);
  std::ranges::sort(tensors, [](const TensorInfo* a, const TensorInfo* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t end = header.value().data_begin;
  for (const TensorInfo* info : tensors) {
    SKEIN_CHECK(info->begin == end && info->end >= info->begin && info->end <= file.size());
    end = info->end;
    SKEIN_CHECK(std::ranges::all_of(info->shape, [](int64_t n) { return n >= 0; }));
    if (!info->dtype) continue;
    uint64_t bytes = SizeOf(*info->dtype);
    for (const int64_t n : info->shape) bytes *= static_cast<uint64_t>(n);
    SKEIN_CHECK(bytes == info->end - info->begin);
  }
  SKEIN_CHECK(end == file.size());
}

}  // namespace skein::fuzz
