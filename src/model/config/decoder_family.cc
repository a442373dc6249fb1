#include "model/config/decoder_family.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace skein {
namespace {

constexpr DecoderFamily kFamilies[] = {
    {.architecture = Architecture::kLlama,
     .attention_bias = true,
     .mlp_bias = true,
     .kv_heads_may_lack = true,
     .rope_theta = 1e4},  // Llama 1 and 2 were published without it
    {.architecture = Architecture::kMistral, .window = WindowRule::kEveryLayer},
    {.architecture = Architecture::kQwen2, .qkv_bias = true, .window = WindowRule::kSwitched},
    {.architecture = Architecture::kQwen3,
     .attention_bias = true,
     .qk_norm = true,
     .window = WindowRule::kSwitched,
     .head_dim = 128},
    {.architecture = Architecture::kQwen3Moe,
     .attention_bias = true,
     .qk_norm = true,
     .window = WindowRule::kSwitched},
};

}  // namespace

const DecoderFamily& FamilyOf(Architecture architecture) {
  const auto* found = std::ranges::find(kFamilies, architecture, &DecoderFamily::architecture);
  SKEIN_CHECK(found != std::end(kFamilies));
  return *found;
}

}  // namespace skein
