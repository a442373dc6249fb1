#include "io/gguf_names.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>

namespace skein {
namespace {

struct PartName {
  std::string_view weight, tensor;
};
// Names without ".weight" or ".bias".
constexpr PartName kModelNames[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"score", "cls.output"},
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
    {"linear_attn.in_proj_qkvz", "ssm_in"},
    {"linear_attn.in_proj_ba", "ssm_ba"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.conv1d", "ssm_conv1d"},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
};
// Names of a layer's tensors that are no part with ".weight" or ".bias".
constexpr PartName kQwen35WholeNames[] = {{"linear_attn.A_log", "ssm_a"},
                                          {"linear_attn.dt_bias", "ssm_dt.bias"}};
// A mixture of experts. A tensor has one matrix of each expert, one behind the other.
constexpr PartName kMoeNames[] = {
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
};
constexpr PartName kExpertNames[] = {{"gate_proj.weight", "ffn_gate_exps.weight"},
                                     {"up_proj.weight", "ffn_up_exps.weight"},
                                     {"down_proj.weight", "ffn_down_exps.weight"}};
constexpr PartName kGptOssNames[] = {{"post_attention_layernorm", "post_attention_norm"},
                                     {"mlp.router", "ffn_gate_inp"}};
constexpr PartName kGptOssWholeNames[] = {{"self_attn.sinks", "attn_sinks.weight"}};
constexpr PartName kBiasedExpertNames[] = {
    {"gate_proj.weight", "ffn_gate_exps.weight"}, {"gate_proj.bias", "ffn_gate_exps.bias"},
    {"up_proj.weight", "ffn_up_exps.weight"},     {"up_proj.bias", "ffn_up_exps.bias"},
    {"down_proj.weight", "ffn_down_exps.weight"}, {"down_proj.bias", "ffn_down_exps.bias"}};
constexpr std::string_view kExperts = "mlp.experts.";  // before an expert's number
constexpr PartName kBertModelNames[] = {
    {"bert.embeddings.word_embeddings", "token_embd"},
    {"bert.embeddings.position_embeddings", "position_embd"},
    {"bert.embeddings.token_type_embeddings", "token_types"},
    {"bert.embeddings.LayerNorm", "token_embd_norm"},
    {"bert.pooler.dense", "cls"},
    {"classifier", "cls.output"},
};
constexpr PartName kBertNames[] = {
    {"attention.self.query", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.output.dense", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"intermediate.dense", "ffn_up"},
    {"output.dense", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
};
constexpr PartName kNomicModelNames[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"emb_ln", "token_embd_norm"},
};
constexpr PartName kNomicNames[] = {
    {"attn.Wqkv", "attn_qkv"},      {"attn.out_proj", "attn_output"}, {"norm1", "attn_output_norm"},
    {"mlp.fc11", "ffn_up"},         {"mlp.fc12", "ffn_gate"},         {"mlp.fc2", "ffn_down"},
    {"norm2", "layer_output_norm"},
};
constexpr PartName kModernModelNames[] = {
    {"model.embeddings.tok_embeddings", "token_embd"},
    {"model.embeddings.norm", "token_embd_norm"},
    {"model.final_norm", "output_norm"},
    {"head.dense", "cls"},
    {"head.norm", "cls.norm"},
    {"classifier", "cls.output"},
};
constexpr PartName kModernNames[] = {
    {"attn_norm", "attn_norm"}, {"attn.Wqkv", "attn_qkv"}, {"attn.Wo", "attn_output"},
    {"mlp_norm", "ffn_norm"},   {"mlp.Wi", "ffn_up"},      {"mlp.Wo", "ffn_down"},
};
// A decision model of the type laya: the encoder, and behind it the layers of the head.
constexpr PartName kLayaModelNames[] = {
    {"encoder.embeddings.tok_embeddings", "token_embd"},
    {"encoder.embeddings.norm", "token_embd_norm"},
    {"encoder.final_norm", "output_norm"},
    {"type_emb", "token_types"},
    {"scorer.0", "cls.norm"},
    {"scorer.1", "cls"},
    {"scorer.3", "cls.output"},
};
constexpr PartName kLayaHeadNames[] = {
    {"norm1", "attn_norm"},  {"self_attn.out_proj", "attn_output"},
    {"norm2", "ffn_norm"},   {"linear1", "ffn_up"},
    {"linear2", "ffn_down"},
};
constexpr PartName kLayaHeadWholeNames[] = {{"self_attn.in_proj_weight", "attn_qkv.weight"},
                                            {"self_attn.in_proj_bias", "attn_qkv.bias"}};
constexpr std::string_view kTensorPrefix = "blk.";

// The names that the tensors of an architecture have.
struct ArchitectureNames {
  std::string_view layer_prefix = "model.layers.";  // "blk." in the file
  std::span<const PartName> model = kModelNames;
  std::span<const PartName> layer = kLayerNames;
  std::span<const PartName> own = kNormNames;  // of a layer, beside `layer`
  std::span<const PartName> wholes = {};       // of a layer, without ".weight" or ".bias"
  std::span<const PartName> moe = {};          // of a layer that is a mixture of experts
  std::span<const PartName> experts = {};      // of an expert, whole names
};

ArchitectureNames NamesOf(std::string_view architecture) {
  if (architecture == "gemma2" || architecture == "gemma3" || architecture == "gemma-embedding") {
    return {.own = kGemmaNormNames};
  }
  if (architecture == "qwen35") return {.own = kQwen35Names, .wholes = kQwen35WholeNames};
  if (architecture == "qwen35moe" || architecture == "qwen3next") {
    return {.own = kQwen35Names,
            .wholes = kQwen35WholeNames,
            .moe = kMoeNames,
            .experts = kExpertNames};
  }
  if (architecture == "gpt-oss") {
    return {.own = kGptOssNames, .wholes = kGptOssWholeNames, .experts = kBiasedExpertNames};
  }
  // Mixtral is a "llama".
  for (const std::string_view mixture : {"qwen3moe", "qwen2moe", "olmoe", "llama"}) {
    if (architecture == mixture) return {.moe = kMoeNames, .experts = kExpertNames};
  }
  if (architecture == "bert") {
    return {"bert.encoder.layer.", kBertModelNames, kBertNames, {}, {}, {}, {}};
  }
  if (architecture == "nomic-bert") {
    return {"encoder.layers.", kNomicModelNames, kNomicNames, {}, {}, {}, {}};
  }
  if (architecture == "modern-bert") {
    return {"model.layers.", kModernModelNames, kModernNames, {}, {}, {}, {}};
  }
  return {};
}

constexpr ArchitectureNames kLayaNames = {
    "encoder.layers.", kLayaModelNames, kModernNames, {}, {}, {}, {}};
constexpr ArchitectureNames kLayaHead = {"head.layers.",      {}, kLayaHeadNames, {},
                                         kLayaHeadWholeNames, {}};

// Gives a tensor the name that it has on the other side: of the model, or one like
// <prefix><layer>.<part>, with ".weight" or ".bias" behind it unless its layer names it whole.
std::string Rename(std::string_view name, std::string_view PartName::*from,
                   std::string_view PartName::*to, const ArchitectureNames& names) {
  const bool from_file = from == &PartName::tensor;
  const std::string_view from_prefix = from_file ? kTensorPrefix : names.layer_prefix;
  const std::string_view to_prefix = from_file ? names.layer_prefix : kTensorPrefix;
  const size_t part_end = name.rfind('.');
  if (part_end == std::string_view::npos) return "";
  const std::string_view suffix = name.substr(part_end);
  const auto of_model = std::ranges::find(names.model, name.substr(0, part_end), from);
  if (of_model != names.model.end()) return std::string((*of_model).*to).append(suffix);
  const size_t layer_end = name.find('.', from_prefix.size());
  if (!name.starts_with(from_prefix) || layer_end == std::string_view::npos) return "";
  const std::string renamed = std::string(to_prefix).append(
      name.substr(from_prefix.size(), layer_end + 1 - from_prefix.size()));
  const auto whole = std::ranges::find(names.wholes, name.substr(layer_end + 1), from);
  if (whole != names.wholes.end()) return renamed + std::string((*whole).*to);
  if (part_end <= layer_end) return "";
  const std::string_view part = name.substr(layer_end + 1, part_end - layer_end - 1);
  for (const std::span<const PartName> parts : {names.layer, names.own, names.moe}) {
    const auto found = std::ranges::find(parts, part, from);
    if (found != parts.end()) return renamed + std::string((*found).*to).append(suffix);
  }
  return "";
}

// The name of the same tensor of another layer; empty if it belongs to none.
std::string WithLayer(std::string_view tensor, int64_t layer) {
  const size_t end = tensor.find('.', kTensorPrefix.size());
  if (!tensor.starts_with(kTensorPrefix) || end == std::string_view::npos) return "";
  return (std::string(kTensorPrefix) + std::to_string(layer)).append(tensor.substr(end));
}

// The tensor of all experts that has this weight of one of them; empty: it is no such weight.
std::string TensorOfExpert(std::string_view weight, const ArchitectureNames& names) {
  const size_t experts = weight.find(kExperts);
  if (experts == std::string_view::npos || !weight.starts_with(names.layer_prefix)) return "";
  const size_t number_end = weight.find('.', experts + kExperts.size());
  if (number_end == std::string_view::npos) return "";
  const auto part =
      std::ranges::find(names.experts, weight.substr(number_end + 1), &PartName::weight);
  if (part == names.experts.end()) return "";
  const size_t begin = names.layer_prefix.size();
  return std::string(kTensorPrefix).append(weight.substr(begin, experts - begin)) +
         std::string((*part).tensor);
}

}  // namespace

std::string GgufTensorName(std::string_view weight, std::string_view architecture) {
  std::string expert = TensorOfExpert(weight, NamesOf(architecture));
  if (!expert.empty()) return expert;
  return Rename(weight, &PartName::weight, &PartName::tensor, NamesOf(architecture));
}

int64_t LayerOfGgufTensor(std::string_view tensor) {
  int64_t layer = -1;
  if (!tensor.starts_with(kTensorPrefix)) return layer;
  tensor.remove_prefix(kTensorPrefix.size());
  const char* const end = tensor.data() + tensor.size();
  const auto read = std::from_chars(tensor.data(), end, layer);
  const bool padded = tensor.size() > 1 && tensor[0] == '0' && tensor[1] != '.';
  return read.ec == std::errc() && read.ptr != end && *read.ptr == '.' && !padded ? layer : -1;
}

std::vector<std::string> PartsOfGgufTensor(std::string_view tensor, std::string_view architecture,
                                           std::string_view decision_type, int64_t num_experts) {
  constexpr std::string_view kHead = "cls.output";
  if (decision_type == "kev" && tensor.starts_with(kHead)) {
    const std::string_view part = tensor.substr(kHead.size());
    if (part != ".weight" && part != ".bias") return {};
    return {std::string("kev.head.q").append(part), std::string("kev.head.k").append(part)};
  }
  const ArchitectureNames names = NamesOf(architecture);
  if (names.experts.empty() || !tensor.starts_with(kTensorPrefix)) return {};
  const size_t layer_end = tensor.find('.', kTensorPrefix.size());
  if (layer_end == std::string_view::npos) return {};
  const auto part =
      std::ranges::find(names.experts, tensor.substr(layer_end + 1), &PartName::tensor);
  if (part == names.experts.end()) return {};
  const std::string_view layer =
      tensor.substr(kTensorPrefix.size(), layer_end + 1 - kTensorPrefix.size());
  const std::string begin = std::string(names.layer_prefix).append(layer).append(kExperts);
  std::vector<std::string> parts;
  for (int64_t expert = 0; expert < num_experts; ++expert) {
    parts.push_back((begin + std::to_string(expert) + ".").append((*part).weight));
  }
  return parts;
}

bool HoldsExperts(std::string_view tensor, std::string_view architecture) {
  return !PartsOfGgufTensor(tensor, architecture, "", 1).empty();
}

bool InterleavesHeads(std::string_view architecture) { return architecture == "llama"; }

std::string WeightOfGgufTensor(std::string_view tensor, std::string_view architecture) {
  return Rename(tensor, &PartName::tensor, &PartName::weight, NamesOf(architecture));
}

std::string LayaTensorName(std::string_view weight, int64_t num_encoder_layers) {
  if (!weight.starts_with(kLayaHead.layer_prefix)) {
    return Rename(weight, &PartName::weight, &PartName::tensor, kLayaNames);
  }
  const std::string tensor = Rename(weight, &PartName::weight, &PartName::tensor, kLayaHead);
  return WithLayer(tensor, LayerOfGgufTensor(tensor) + num_encoder_layers);
}

std::string WeightOfLayaTensor(std::string_view tensor, int64_t num_encoder_layers) {
  const int64_t layer = LayerOfGgufTensor(tensor);
  if (layer < num_encoder_layers) {
    return Rename(tensor, &PartName::tensor, &PartName::weight, kLayaNames);
  }
  return Rename(WithLayer(tensor, layer - num_encoder_layers), &PartName::tensor, &PartName::weight,
                kLayaHead);
}

}  // namespace skein
