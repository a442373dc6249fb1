#include "io/gguf_names.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>
#include <system_error>

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
constexpr PartName kQwen35Names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.conv1d", "ssm_conv1d"},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
};
// Names of a layer's tensors that are no part with ".weight" or ".bias".
constexpr PartName kQwen35WholeNames[] = {{"linear_attn.A_log", "ssm_a"},
                                          {"linear_attn.dt_bias", "ssm_dt.bias"}};
constexpr std::string_view kWeightPrefix = "model.layers.", kTensorPrefix = "blk.";

// The names that a layer of an architecture has beside kLayerNames.
struct OwnNames {
  std::span<const PartName> parts = kNormNames;
  std::span<const PartName> wholes = {};
};

OwnNames NamesOf(std::string_view architecture) {
  if (architecture == "gemma3") return {.parts = kGemmaNormNames};
  if (architecture == "qwen35") return {.parts = kQwen35Names, .wholes = kQwen35WholeNames};
  return {};
}

// Replaces <from>.<layer>.<part>.<weight or bias> by <to>.<layer>.<other part>.<weight or bias>.
std::string Rename(std::string_view name, std::string_view PartName::*from,
                   std::string_view PartName::*to, std::string_view from_prefix,
                   std::string_view to_prefix, std::string_view architecture) {
  const auto* whole = std::ranges::find(kWholeNames, name, from);
  if (whole != std::end(kWholeNames)) return std::string(whole->*to);
  const size_t layer_end = name.find('.', from_prefix.size()), part_end = name.rfind('.');
  if (!name.starts_with(from_prefix) || layer_end == std::string_view::npos) return "";
  const std::string_view layer =
      name.substr(from_prefix.size(), layer_end + 1 - from_prefix.size());
  const OwnNames own = NamesOf(architecture);
  const auto own_whole = std::ranges::find(own.wholes, name.substr(layer_end + 1), from);
  if (own_whole != own.wholes.end()) {
    return std::string(to_prefix).append(layer).append((*own_whole).*to);
  }
  if (part_end <= layer_end) return "";
  const std::string_view part = name.substr(layer_end + 1, part_end - layer_end - 1);
  for (const std::span<const PartName> names :
       {std::span<const PartName>(kLayerNames), own.parts}) {
    const auto found = std::ranges::find(names, part, from);
    if (found == names.end()) continue;
    return std::string(to_prefix).append(layer).append((*found).*to).append(name.substr(part_end));
  }
  return "";
}

}  // namespace

std::string GgufTensorName(std::string_view weight, std::string_view architecture) {
  return Rename(weight, &PartName::weight, &PartName::tensor, kWeightPrefix, kTensorPrefix,
                architecture);
}

int64_t LayerOfGgufTensor(std::string_view tensor) {
  int64_t layer = -1;
  if (!tensor.starts_with(kTensorPrefix)) return layer;
  tensor.remove_prefix(kTensorPrefix.size());
  const auto read = std::from_chars(tensor.data(), tensor.data() + tensor.size(), layer);
  return read.ec == std::errc() ? layer : -1;
}

GgufHalves HalvesOfGgufTensor(std::string_view tensor, std::string_view decision_type) {
  constexpr std::string_view kHead = "cls.output";
  if (decision_type != "kev" || !tensor.starts_with(kHead)) return {};
  const std::string_view part = tensor.substr(kHead.size());
  if (part != ".weight" && part != ".bias") return {};
  return {std::string("kev.head.q").append(part), std::string("kev.head.k").append(part)};
}

bool InterleavesHeads(std::string_view architecture) { return architecture == "llama"; }

std::string WeightOfGgufTensor(std::string_view tensor, std::string_view architecture) {
  return Rename(tensor, &PartName::tensor, &PartName::weight, kTensorPrefix, kWeightPrefix,
                architecture);
}

}  // namespace skein
