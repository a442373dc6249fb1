#include "io/gguf_names.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace skein {
namespace {

struct PartName {
  std::string_view weight, tensor;
};
constexpr PartName kWholeNames[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};
constexpr PartName kLayerNames[] = {
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"}, {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"},
};
// The norms behind attention, by architecture.
constexpr PartName kNormNames[] = {{"post_attention_layernorm", "ffn_norm"}};
constexpr PartName kGemmaNormNames[] = {{"post_attention_layernorm", "post_attention_norm"},
                                        {"pre_feedforward_layernorm", "ffn_norm"},
                                        {"post_feedforward_layernorm", "post_ffw_norm"}};
constexpr std::string_view kWeightPrefix = "model.layers.", kTensorPrefix = "blk.";

// Replaces <from>.<layer>.<part>.<weight or bias> by <to>.<layer>.<other part>.<weight or bias>.
std::string Rename(std::string_view name, std::string_view PartName::*from,
                   std::string_view PartName::*to, std::string_view from_prefix,
                   std::string_view to_prefix, std::string_view architecture) {
  const auto* whole = std::ranges::find(kWholeNames, name, from);
  if (whole != std::end(kWholeNames)) return std::string(whole->*to);
  const size_t layer_end = name.find('.', from_prefix.size()), part_end = name.rfind('.');
  if (!name.starts_with(from_prefix) || layer_end == std::string_view::npos ||
      part_end <= layer_end) {
    return "";
  }
  const std::string_view part = name.substr(layer_end + 1, part_end - layer_end - 1);
  using Names = std::span<const PartName>;
  const Names norms = architecture == "gemma3" ? Names(kGemmaNormNames) : Names(kNormNames);
  for (const Names names : {Names(kLayerNames), norms}) {
    const auto found = std::ranges::find(names, part, from);
    if (found == names.end()) continue;
    return std::string(to_prefix)
        .append(name.substr(from_prefix.size(), layer_end - from_prefix.size() + 1))
        .append((*found).*to)
        .append(name.substr(part_end));
  }
  return "";
}

}  // namespace

std::string GgufTensorName(std::string_view weight, std::string_view architecture) {
  return Rename(weight, &PartName::weight, &PartName::tensor, kWeightPrefix, kTensorPrefix,
                architecture);
}

bool InterleavesHeads(std::string_view architecture) { return architecture == "llama"; }

std::string WeightOfGgufTensor(std::string_view tensor, std::string_view architecture) {
  return Rename(tensor, &PartName::tensor, &PartName::weight, kTensorPrefix, kWeightPrefix,
                architecture);
}

}  // namespace skein
