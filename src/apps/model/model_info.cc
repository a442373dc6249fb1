#include "apps/model/model_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "apps/host/decision_model_traits.h"
#include "base/json_numbers.h"
#include "io/json_file.h"
#include "io/model_files.h"
#include "model/weights/decoder_loader.h"
#include "model/weights/fused_expert.h"
#include "model/weights/model_weight_files.h"
#include "model/weights/stored_matrix.h"
#include "model/weights/tensor_list.h"

namespace skein {
namespace {

constexpr size_t kMaxTokenizerConfigBytes = size_t{64} << 20;

bool HasChatTemplate(const std::string& dir) {
  if (std::filesystem::exists(dir + "/chat_template.jinja")) return true;
  const Result<std::string> text =
      ReadFile(dir + "/tokenizer_config.json", kMaxTokenizerConfigBytes);
  if (!text.ok()) return false;
  const auto json = nlohmann::json::parse(WithReadableNumbers(text.value()), nullptr,
                                          /*allow_exceptions=*/false);
  return json.is_object() && json.contains("chat_template") && !json["chat_template"].is_null();
}

const char* NameOf(RopeType type) {
  switch (type) {
    case RopeType::kDefault:
      return "default";
    case RopeType::kLinear:
      return "linear";
    case RopeType::kLlama3:
      return "llama3";
    case RopeType::kYarn:
      return "yarn";
    case RopeType::kLong:
      return "longrope";
  }
  return "";
}

std::string Size(int64_t bytes) {
  const double gib = static_cast<double>(bytes) / (1 << 30);
  if (gib >= 0.1) return fmt::format("{} bytes ({:.2f} GiB)", bytes, gib);
  return fmt::format("{} bytes ({:.2f} MiB)", bytes, static_cast<double>(bytes) / (1 << 20));
}

std::string Positions(const ModelConfig& config) {
  if (!config.has_rope()) return "learned; every token sees every other";
  const std::string rope =
      fmt::format("rope {}, theta {}", NameOf(config.rope.type), config.rope.theta);
  if (!config.has_local_layers()) return rope;
  const auto num_local = std::ranges::count(config.local.layers, true);
  return rope + fmt::format("; in {} of {} layers {}, {}, and tokens see {} before and {} behind",
                            num_local, config.num_base_layers(), NameOf(config.local.rope.type),
                            config.local.rope.theta, config.local.before, config.local.after);
}

// The kinds of answers that the model gives.
std::string Answers(const ModelUse& info) {
  const ModelTraits& traits = info.traits;
  std::string text;
  const auto add = [&](const std::string& answer) { text += (text.empty() ? "" : ", ") + answer; };
  if (traits.generates) add("tokens");
  if (traits.qwen3_reranker) add("relevance of documents");
  if (traits.embeds) {
    add(fmt::format("{}embeddings of {}{}", traits.sparse ? "sparse " : "", traits.embedding_size,
                    traits.normalizes ? ", normalized" : ""));
  }
  if (info.colbert) add(fmt::format("{} numbers for each token", traits.embedding_size));
  if (traits.classifies) {
    add(fmt::format("{} {}{}", traits.class_labels.size(),
                    traits.class_labels.size() == 1 ? "score" : "classes",
                    traits.encodes_pairs ? " of texts or pairs" : ""));
  }
  if (traits.decision_model) add("decisions: choice, score, noul");
  return text;
}

nlohmann::ordered_json DecisionModelJson(const DecisionModelTraits& traits) {
  nlohmann::ordered_json json = {
      {"family", traits.family},
      {"question_types", {"choice", "score", "noul"}},
      {"option_layout", traits.parallel ? "parallel" : "sequential"},
      {"max_len", traits.max_len},
  };
  if (traits.sysone) {
    json["base"] = traits.sysone->base;
    json["base_dir"] = traits.sysone->base_dir;
    json["max_state_tokens"] = traits.sysone->max_state_tokens;
    json["max_option_tokens"] = traits.sysone->max_option_tokens;
  } else if (traits.kev) {
    json["base"] = traits.kev->base;
    json["base_dir"] = traits.kev->base_dir;
    json["max_option_tokens_of_question"] = traits.usual_len;
  } else if (traits.clef) {
    json["base"] = traits.clef->base;
  } else {
    json["head_max_len"] = traits.head_max_len;
  }
  json["temperature"] = traits.temperature;
  json["temperature_by_options"] = traits.temperature_by_options;
  return json;
}

// Adds the lines about a decision model.
template <typename Line>
void AddDecisionModel(const ModelConfig& config, const DecisionModelTraits& traits,
                      const Line& line) {
  const DecisionHeadFields& head = config.decision;
  if (traits.sysone) {
    line("decision model", fmt::format("{}: {} layers of a head, {} wide, behind {} of {}",
                                       traits.family, head.compact_layers, head.compact_width,
                                       config.num_layers, traits.sysone->base));
    line("  base", traits.sysone->base_dir);
    line("  limits",
         fmt::format("{} tokens of a state, {} of an option, {} of a question with its state",
                     traits.sysone->max_state_tokens, traits.sysone->max_option_tokens,
                     traits.max_len));
  } else if (traits.kev) {
    line("decision model",
         fmt::format("{}: a pointer head, {} wide, behind {} layers of {}", traits.family,
                     head.compact_width, config.num_layers, traits.kev->base));
    line("  base", traits.kev->base_dir);
    line("  limits", fmt::format("{} tokens of a question with its state, {} of its options",
                                 traits.max_len, traits.usual_len));
  } else if (traits.clef) {
    const JointHeadFields& joint = head.joint;
    line("decision model",
         fmt::format("{}: a joint head, {} wide, {} + {} layers, behind {} layers of {}",
                     traits.family, joint.width, joint.option_layers, joint.question_layers,
                     config.num_layers, traits.clef->base));
    line("  limits", fmt::format("{} tokens of a state with all its questions, {} options",
                                 traits.max_len, kMaxLabels));
  } else {
    line("decision model",
         fmt::format("{}: {} layers of a head behind {} of an encoder, {} actions", traits.family,
                     head.num_layers, config.num_base_layers(),
                     head.num_actions > 0 ? std::to_string(head.num_actions) : "no"));
    line("  limits", fmt::format("{} tokens of a question with its state, {} of the question",
                                 traits.max_len, traits.head_max_len));
  }
  line("  options", traits.parallel ? "side by side: their order has no effect" : "in their order");
  std::string temperatures = fmt::format("choice {}, score {}, noul {}", traits.temperature[0],
                                         traits.temperature[1], traits.temperature[2]);
  for (const auto& [bucket, t] : traits.temperature_by_options) {
    temperatures += fmt::format(", {} {}", bucket, t);
  }
  line("  temperatures", temperatures);
}

// Whether the tensor is the router of a mixture, or the gate of its shared expert.
bool IsRouter(const ModelTensor& tensor) {
  return tensor.name.ends_with(".mlp.gate.weight") || tensor.name.ends_with(".mlp.router.weight") ||
         tensor.name.ends_with(".mlp.shared_expert_gate.weight");
}

// Whether the tensor belongs to a layer of an encoder, and not to a head.
bool IsOfEncoderLayer(const ModelTensor& tensor) {
  return !tensor.name.starts_with("head.") && (tensor.name.find(".layer.") != std::string::npos ||
                                               tensor.name.find(".layers.") != std::string::npos);
}

// The bytes of the weights. Matrices that can be int8 take 1 byte per element and a scale per row;
// other weights have the compute type.
int64_t Int8WeightBytes(const ModelConfig& config, DType compute) {
  int64_t bytes = 0;
  for (const ModelTensor& tensor : ListTensors(config)) {
    int64_t size = 1;
    for (const int64_t dimension : tensor.shape) size *= dimension;
    const bool read_only = tensor.role == TensorRole::kEmbedding && !config.tie_embeddings &&
                           tensor.name.find("embed_tokens") != std::string::npos;
    const bool head = config.head != Head::kLanguageModel && tensor.name.starts_with("score");
    const bool embedding_alone =
        tensor.role == TensorRole::kEmbedding && !config.has_output_matrix();
    const bool plain = config.is_encoder()
                           ? !IsOfEncoderLayer(tensor)
                           : read_only || head || embedding_alone || IsRouter(tensor);
    const bool int8 = tensor.shape.size() == 2 && !plain;
    bytes += int8 ? size + tensor.shape[0] * 4 : size * static_cast<int64_t>(SizeOf(compute));
  }
  return bytes;
}

// The bytes of the weights, and of KV cache and state for one full context. A config may claim more
// context than any memory holds.
int64_t MemoryBytes(const ModelInfo& info, int64_t weight_bytes) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(info.kv_bytes_per_token, int64_t{info.config.max_position}, &bytes) ||
      __builtin_add_overflow(bytes, weight_bytes, &bytes) ||
      __builtin_add_overflow(bytes, info.config.StateBytes(), &bytes)) {
    return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

// Checks that the files hold the tensor in one of the forms that are read. Returns its bytes in
// memory: those of its blocks if it stays packed, else its elements have the compute type.
Result<int64_t> BytesInMemory(const ModelFiles& files, const ModelTensor& tensor,
                              const QuantizationConfig& quantization, DType compute) {
  constexpr std::string_view kWeight = ".weight", kBias = ".bias";
  int64_t bytes = static_cast<int64_t>(SizeOf(compute));
  for (const int64_t dimension : tensor.shape) bytes *= dimension;
  if (tensor.shape.size() == 2 && tensor.name.ends_with(kWeight)) {
    const std::string matrix = tensor.name.substr(0, tensor.name.size() - kWeight.size());
    std::vector<std::string> tensors;
    SKEIN_ASSIGN_OR_RETURN(
        const auto stored,
        OpenStoredMatrix(files, matrix, static_cast<int32_t>(tensor.shape[0]),
                         static_cast<int32_t>(tensor.shape[1]), quantization, &tensors));
    if (stored != nullptr && stored->format()) {
      const BlockTraits& traits = TraitsOf(*stored->format());
      return tensor.shape[0] * (tensor.shape[1] / traits.file_elements) * traits.file_bytes;
    }
    if (stored != nullptr) return bytes;
  }
  if (tensor.name.ends_with(kBias)) {
    const std::string of = tensor.name.substr(0, tensor.name.size() - kBias.size());
    if (!FusedExpert::BiasName(files, of).empty()) {
      SKEIN_RETURN_IF_ERROR(
          FusedExpert::ReadBias(files, of, static_cast<int32_t>(tensor.shape[0])).status());
      return bytes;
    }
  }
  SKEIN_ASSIGN_OR_RETURN(const TensorView view, files.Find(tensor.name, tensor.shape));
  const bool packed = view.blocks != nullptr && view.blocks->format && !IsRouter(tensor);
  return packed ? static_cast<int64_t>(view.bytes) : bytes;
}

}  // namespace

Result<ModelInfo> DescribeModel(const std::string& dir) {
  ModelInfo info;
  info.dir = dir;
  SKEIN_ASSIGN_OR_RETURN(info.config, LoadModelConfig(dir));
  const std::string path = std::filesystem::absolute(dir).lexically_normal().string();
  SKEIN_ASSIGN_OR_RETURN(info.use, LoadModelTraits(dir, path, info.config));
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, OpenModelFiles(dir));
  if (HasOwnOutputMatrix(files)) info.config.tie_embeddings = false;
  for (const std::string& name : files.Names()) {
    const TensorInfo& tensor = files.Info(name);
    const auto bytes = static_cast<int64_t>(tensor.end - tensor.begin);
    info.weight_bytes_by_dtype[tensor.file_dtype] += bytes;
    info.weight_bytes += bytes;
  }
  const bool f32 = info.config.file_dtype == DType::kF32;
  info.compute_dtype = f32 ? DType::kF32 : DType::kBf16;
  int64_t in_memory = 0;
  for (const ModelTensor& tensor : ListTensors(info.config)) {
    const auto bytes = BytesInMemory(files, tensor, info.config.quantization, info.compute_dtype);
    if (bytes.ok()) {
      in_memory += bytes.value();
    } else {
      const std::string& problem = bytes.status().message();
      // A tensor may hold the matrices of many experts.
      if (info.problems.empty() || info.problems.back() != problem) {
        info.problems.push_back(problem);
      }
    }
  }
  info.kv_bytes_per_token = info.config.KvBytesPerToken(info.compute_dtype);
  info.memory_bytes = MemoryBytes(info, in_memory);
  info.int8_memory_bytes = MemoryBytes(info, Int8WeightBytes(info.config, info.compute_dtype));
  const std::string tokenizer_dir = TokenizerDirOf(dir);
  info.has_tokenizer = std::filesystem::exists(tokenizer_dir + "/tokenizer.json");
  info.has_chat_template = HasChatTemplate(tokenizer_dir);
  return info;
}

nlohmann::ordered_json ToJson(const ModelInfo& info) {
  const ModelConfig& c = info.config;
  nlohmann::ordered_json json = {
      {"dir", info.dir},
      {"architecture", c.ArchitectureName()},
      {"num_layers", c.num_layers},
      {"hidden_size", c.hidden_size},
      {"intermediate_size", c.intermediate_size},
      {"num_experts", c.num_experts},
      {"experts_per_token", c.experts_per_token},
      {"expert_size", c.expert_size},
      {"shared_expert_size", c.decoder.shared_expert_size},
      {"num_heads", c.num_heads},
      {"num_kv_heads", c.num_kv_heads},
      {"head_dim", c.head_dim},
      {"vocab_size", c.vocab_size},
      {"context_length", c.max_position},
      {"tie_embeddings", c.tie_embeddings},
      {"rope_type", !c.has_rope() ? nullptr : nlohmann::ordered_json(NameOf(c.rope.type))},
      {"rope_theta", !c.has_rope() ? nullptr : nlohmann::ordered_json(c.rope.theta)},
      {"generates", info.use.traits.generates},
      {"embeds", info.use.traits.embeds},
      {"embedding_size", info.use.traits.embedding_size},
      {"classifies", info.use.traits.classifies},
      {"class_labels", info.use.traits.class_labels},
      {"decision_model", info.use.traits.decision_model
                             ? DecisionModelJson(*info.use.traits.decision_model)
                             : nlohmann::ordered_json()},
      {"qwen3_reranker", info.use.traits.qwen3_reranker},
      {"file_dtype", NameOf(c.file_dtype)},
      {"eos_token_ids", c.eos_token_ids},
      {"num_parameters", c.NumParameters()},
      {"weight_bytes", info.weight_bytes},
      {"weight_bytes_by_dtype", info.weight_bytes_by_dtype},
      {"compute_dtype", NameOf(info.compute_dtype)},
      {"kv_bytes_per_token", info.kv_bytes_per_token},
      {"linear_layers", c.num_linear_layers()},
      {"state_bytes", c.StateBytes()},
      {"memory_bytes", info.memory_bytes},
      {"int8_memory_bytes", info.int8_memory_bytes},
      {"has_tokenizer", info.has_tokenizer},
      {"has_chat_template", info.has_chat_template},
      {"problems", info.problems},
  };
  return json;
}

std::string ToText(const ModelInfo& info) {
  const ModelConfig& c = info.config;
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<16} {}\n", name, value);
  };
  line("model", info.dir);
  line("architecture", c.ArchitectureName());
  line("layers",
       fmt::format("{}, {} wide, MLP {} wide", c.num_layers, c.hidden_size, c.intermediate_size));
  if (c.num_experts > 0) {
    const int32_t shared = c.decoder.shared_expert_size;
    line("experts",
         fmt::format("{} of {} for a token, {} wide{}", c.experts_per_token, c.num_experts,
                     c.expert_size,
                     shared > 0 ? fmt::format(", and a shared one, {} wide", shared) : ""));
  }
  line("attention", fmt::format("{} heads of {}, {} of keys and values", c.num_heads, c.head_dim,
                                c.num_kv_heads));
  if (c.has_linear_layers()) {
    const LinearLayers& linear = c.decoder.linear;
    line("linear layers",
         fmt::format("{}, {} heads of {} x {}, state of a sequence {}", c.num_linear_layers(),
                     linear.num_v_heads, linear.k_dim, linear.v_dim, Size(c.StateBytes())));
  }
  line("positions", Positions(c));
  const char* output = !c.has_output_matrix() ? "none"
                       : c.tie_embeddings     ? "tied to the embedding"
                                              : "of its own";
  line("vocabulary", fmt::format("{} tokens, output matrix {}", c.vocab_size, output));
  line("answers", Answers(info.use));
  if (info.use.traits.decision_model) AddDecisionModel(c, *info.use.traits.decision_model, line);
  line("context", fmt::format("{} tokens", c.max_position));
  line("parameters", fmt::format("{}", c.NumParameters()));
  for (const auto& [dtype, bytes] : info.weight_bytes_by_dtype) {
    line("weights", dtype + ", " + Size(bytes));
  }
  line("KV per token",
       fmt::format("{} bytes in {}{}", info.kv_bytes_per_token, NameOf(info.compute_dtype),
                   c.bidirectional ? ", for one layer at a time" : ""));
  line("memory", Size(info.memory_bytes) + " for weights and one full context");
  if (info.int8_memory_bytes > 0) {
    line("  with int8", Size(info.int8_memory_bytes) + " under --quantization int8");
  }
  line("tokenizer", info.has_tokenizer ? "yes" : "no");
  line("chat template", info.has_chat_template ? "yes" : "no");
  for (const std::string& problem : info.problems) line("PROBLEM", problem);
  return text;
}

}  // namespace skein
