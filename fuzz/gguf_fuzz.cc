#include <algorithm>
#include <vector>

#include "base/check.h"
#include "harness.h"
#include "io/gguf_file.h"

namespace skein::fuzz {
namespace {}  // namespace

// Every tensor of an accepted header lies in the file and can be read.
void FuzzGguf(Bytes data) {
  constexpr int64_t kMostElements = 1 << 14;  // of a tensor that is read
  const auto file = std::as_bytes(data);
  const auto header = ParseGgufHeader(file, "file");
  if (!header.ok()) {
    SKEIN_CHECK(!header.status().message().empty());
    return;
  }
  for (const auto& [name, info] : header.value().tensors) {
    SKEIN_CHECK(info.begin <= info.end && info.end <= file.size());
    const GgufTensor tensor{info.type, info.shape, file.data() + info.begin};
    const int64_t elements = tensor.num_rows() * tensor.row_elements();
    const auto bytes = static_cast<int64_t>(info.end - info.begin);
    SKEIN_CHECK(elements / info.type->block_elements * info.type->block_bytes == bytes);
    if (elements > kMostElements) continue;
    std::vector<float> values(static_cast<size_t>(elements));
    tensor.ReadRows(0, tensor.num_rows(), values.data());
  }
}

}  // namespace skein::fuzz
