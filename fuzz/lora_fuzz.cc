#include <vector>

#include "base/check.h"
#include "harness.h"
#include "io/lora_adapter.h"

namespace skein::fuzz {
namespace {}  // namespace

// adapter_config.json, the mark, adapter_model.safetensors: each change of an accepted adapter has
// its whole matrices and can be added to a weight.
void FuzzLora(Bytes data) {
  constexpr int64_t kMostElements = 1 << 16;
  const auto [config, tensors] = PartsOf(TextOf(data));
  WriteFile("adapter_config.json", config);
  WriteFile("adapter_model.safetensors", tensors);
  const auto adapter = LoraAdapter::Open(Folder().string());
  if (!adapter.ok()) {
    SKEIN_CHECK(!adapter.status().message().empty());
    return;
  }
  const LoraAdapter& lora = adapter.value();
  SKEIN_CHECK(lora.rank() > 0 && !lora.Weights().empty());
  for (const auto& [name, shape] : lora.Weights()) {
    const LoraChange* change = lora.Find(name);
    SKEIN_CHECK(change != nullptr && shape.size() == 2);
    SKEIN_CHECK(shape[0] == change->num_outputs && shape[1] == change->num_inputs);
    SKEIN_CHECK(std::ssize(change->a) == lora.rank() * change->num_inputs);
    SKEIN_CHECK(std::ssize(change->b) == lora.rank() * change->num_outputs);
    if (shape[0] * shape[1] > kMostElements) continue;
    std::vector<float> rows(static_cast<size_t>(shape[0] * shape[1]));
    lora.AddTo(name, 0, shape[0], rows.data());
  }
}

}  // namespace skein::fuzz
