#include "apps/gguf/gguf_convert.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "apps/gguf/description_files.h"
#include "apps/gguf/gguf_architecture.h"
#include "apps/gguf/gguf_decision.h"
#include "apps/gguf/gguf_modules.h"
#include "apps/gguf/gguf_source.h"
#include "apps/gguf/gguf_tokenizer.h"
#include "apps/model/adapter_fit.h"
#include "apps/model/output_dir.h"
#include "io/gguf_model.h"
#include "io/lora_adapter.h"
#include "io/model_files.h"
#include "io/safetensors_writer.h"
#include "model/config/config.h"
#include "model/config/kev_config.h"
#include "model/config/laya_config.h"
#include "model/config/linear_config.h"
#include "model/weights/tensor_list.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 20;  // converted at a time: 4 MiB of f32
constexpr int64_t kMaxShardBytes = 5'000'000'000;

Status Invalid(const std::string& message) { return Status(StatusCode::kInvalidArgument, message); }

Status WriteWeights(const std::vector<GgufSource>& sources, const LoraAdapter* adapter,
                    const GgufConvertOptions& options, GgufConvertSummary* summary) {
  std::vector<TensorSpec> specs;
  for (const GgufSource& source : sources) {
    summary->num_parameters += source.spec().num_elements();
    specs.push_back(source.spec());
  }
  const auto element_bytes = static_cast<int64_t>(SizeOf(options.dtype));
  summary->weight_bytes = summary->num_parameters * element_bytes;
  SKEIN_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                         SafetensorsWriter::Create(options.dir, specs, kMaxShardBytes));
  std::vector<float> values;
  std::vector<Bf16> rounded;
  int64_t done_bytes = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const GgufSource& source = sources[i];
    const int64_t row_elements = source.row_elements();
    const int64_t chunk_rows = std::max<int64_t>(1, kChunkElements / row_elements);
    for (int64_t row = 0; row < source.num_rows(); row += chunk_rows) {
      const int64_t num_rows = std::min(chunk_rows, source.num_rows() - row);
      values.resize(static_cast<size_t>(num_rows * row_elements));
      SKEIN_RETURN_IF_ERROR(source.ReadRows(row, num_rows, values.data()));
      if (adapter != nullptr && adapter->Find(source.spec().name) != nullptr) {
        adapter->AddTo(source.spec().name, row, num_rows, values.data());
      }
      auto bytes = std::as_bytes(std::span(values));
      if (options.dtype == DType::kBf16) {
        rounded.resize(values.size());
        std::ranges::transform(values, rounded.begin(), ToBf16);
        bytes = std::as_bytes(std::span(rounded));
      }
      SKEIN_RETURN_IF_ERROR(writer.Write(i, row * row_elements * element_bytes, bytes));
      done_bytes += std::ssize(bytes);
      if (options.progress) options.progress(done_bytes, summary->weight_bytes);
    }
  }
  return writer.Close();
}

Json GenerationConfig(const Json& config) {
  Json generation = Json::object();
  for (const char* member : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (config.contains(member)) generation[member] = config[member];
  }
  return generation;
}

// A model's directory without the weights.
struct Description {
  ModelConfig config;
  Json config_json;
  GgufTokenizerFiles tokenizer;
  std::optional<GgufDecision> decision;  // of a decision model

  // The file that makes a directory one of a model is written last.
  Status Write(const std::string& dir) const {
    if (decision && decision->family == GgufDecision::Family::kLaya) return WriteLaya(dir);
    if (decision) {
      SKEIN_RETURN_IF_ERROR(WriteJson(dir + "/" + kKevHeadJson, decision->config));
    }
    SKEIN_RETURN_IF_ERROR(WriteFile(dir + "/tokenizer.json", tokenizer.tokenizer_json));
    SKEIN_RETURN_IF_ERROR(
        WriteFile(dir + "/tokenizer_config.json", tokenizer.tokenizer_config_json));
    SKEIN_RETURN_IF_ERROR(
        WriteJson(dir + "/generation_config.json", GenerationConfig(config_json)));
    return WriteJson(dir + "/config.json", config_json);
  }

 private:
  // Encoder and tokenizer have folders of their own.
  Status WriteLaya(const std::string& dir) const {
    const std::string encoder = dir + "/encoder", tokens = dir + "/tokenizer";
    for (const std::string& folder : {encoder, tokens}) {
      SKEIN_RETURN_IF_ERROR(MakeDirectory(folder));
    }
    Json tokenizer_config = Json::parse(tokenizer.tokenizer_config_json);
    tokenizer_config.update(decision->tokens);
    SKEIN_RETURN_IF_ERROR(WriteFile(tokens + "/tokenizer.json", tokenizer.tokenizer_json));
    SKEIN_RETURN_IF_ERROR(WriteJson(tokens + "/tokenizer_config.json", tokenizer_config));
    SKEIN_RETURN_IF_ERROR(WriteJson(encoder + "/config.json", config_json));
    return WriteJson(dir + "/" + kLayaConfigFile, decision->config);
  }
};

Result<Description> Describe(const GgufModel& file, DType dtype) {
  Description description;
  SKEIN_ASSIGN_OR_RETURN(description.decision, ReadGgufDecision(file));
  SKEIN_ASSIGN_OR_RETURN(description.config_json, GgufConfigJson(file, dtype));
  SKEIN_ASSIGN_OR_RETURN(description.tokenizer, ReadGgufTokenizer(file.metadata()));
  Result<ModelConfig> config = ParseModelConfig(description.config_json.dump());
  if (!config.ok()) {
    return Status(config.status().code(), file.path() + ": as " + config.status().message());
  }
  description.config = std::move(config).value();
  if (description.tokenizer.num_tokens > description.config.vocab_size) {
    return Invalid(file.path() + ": the tokenizer has " +
                   std::to_string(description.tokenizer.num_tokens) +
                   " tokens, the embedding only " + std::to_string(description.config.vocab_size));
  }
  return description;
}

}  // namespace

Status WriteGgufDescription(const std::string& file, const std::string& dir) {
  SKEIN_ASSIGN_OR_RETURN(const GgufModel gguf, GgufModel::Open(file));
  SKEIN_ASSIGN_OR_RETURN(const Description description, Describe(gguf, DType::kBf16));
  SKEIN_ASSIGN_OR_RETURN(const GgufArchitecture* const architecture,
                         FindGgufArchitecture(gguf.metadata()));
  SKEIN_RETURN_IF_ERROR(WriteGgufModules(gguf, *architecture, dir));
  return description.Write(dir);
}

Result<GgufConvertSummary> ConvertGguf(const GgufConvertOptions& options) {
  SKEIN_CHECK(options.dtype == DType::kBf16 || options.dtype == DType::kF32);
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::OpenGguf(options.file));
  SKEIN_ASSIGN_OR_RETURN(Description description, Describe(files.gguf(), options.dtype));
  if (description.decision) {
    return Status(StatusCode::kUnsupported,
                  options.file +
                      " is a decision model; it is served as it is, and its directory is "
                      "what its trainer wrote");
  }
  if (description.config.is_encoder() || description.config.head == Head::kNone) {
    return Status(StatusCode::kUnsupported,
                  options.file +
                      " is an encoder; it is served as it is, and only language models "
                      "are converted");
  }
  if (description.config.architecture == Architecture::kGptOss) {
    return Status(StatusCode::kUnsupported,
                  options.file +
                      " is of gpt-oss, which is served as it is: directories of it have "
                      "the experts of a layer in one tensor, which is not written");
  }
  // The directory has the model's own order and matrices.
  description.config.decoder.linear.fused_qkvz = description.config.decoder.linear.fused_ba;
  SKEIN_ASSIGN_OR_RETURN(const std::vector<GgufSource> sources,
                         FindGgufSources(files, options.file, description.config, options.dtype));
  description.config_json.erase(kTiledValueHeads);
  description.config_json.erase(kSplitLinearInputs);
  std::optional<LoraAdapter> adapter;
  if (!options.adapter_dir.empty()) {
    SKEIN_ASSIGN_OR_RETURN(adapter, LoraAdapter::Open(options.adapter_dir));
    SKEIN_RETURN_IF_ERROR(
        CheckAdapterFits(*adapter, ListTensors(description.config), options.adapter_dir));
    if (adapter->decision_temperature()) {
      description.config_json["decision_temperature"] = *adapter->decision_temperature();
    }
  }

  SKEIN_RETURN_IF_ERROR(PrepareModelDirectory(options.dir, options.force));
  GgufConvertSummary summary;
  SKEIN_RETURN_IF_ERROR(WriteWeights(sources, adapter ? &*adapter : nullptr, options, &summary));
  SKEIN_RETURN_IF_ERROR(description.Write(options.dir));
  return summary;
}

}  // namespace skein
