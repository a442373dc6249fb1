#include "io/model_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"
#include "io/gguf_names.h"
#include "io/json_file.h"

namespace skein {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr char kGgufFile[] = "model.gguf";

// The name of a shard must be a plain file name: an index must not lead out of the model's
// directory.
bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name[0] != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// The spellings of the prefix "model." in the names of a decoder's tensors. Files of a model
// without a head may omit it; files of a multimodal model add the name of the part.
constexpr std::string_view kPrefixes[] = {"", "model.language_model.", "language_model.model."};
constexpr std::string_view kPlainPrefix = "model.", kEmbedding = "embed_tokens.weight";
constexpr std::string_view kOutputs[] = {"language_model.lm_head."};
constexpr std::string_view kOutput = "lm_head.";
constexpr std::string_view kExperts = ".mlp.experts.";

std::string Joined(std::string_view a, std::string_view b) { return std::string(a).append(b); }

// The name of a tensor of a file, in the plain spelling. `prefix` is the prefix in that file.
std::string PlainName(const std::string& name, std::string_view prefix) {
  for (const std::string_view output : kOutputs) {
    if (name.starts_with(output)) return Joined(kOutput, name.substr(output.size()));
  }
  const std::string_view parts[] = {"embed_tokens.", "layers.", "norm."};
  const std::string_view rest = std::string_view(name).substr(std::min(prefix.size(), name.size()));
  const bool is_part = name.starts_with(prefix) && std::ranges::any_of(parts, [&](auto part) {
                         return rest.starts_with(part);
                       });
  return is_part ? Joined(kPlainPrefix, rest) : name;
}

// In Mixtral's files, the parts of a layer's names and what other mixtures have in their place.
constexpr std::string_view kMixtralMlp = ".block_sparse_moe.", kMlp = ".mlp.";
constexpr std::pair<std::string_view, std::string_view> kMixtralParts[] = {
    {".w1.", ".gate_proj."}, {".w3.", ".up_proj."}, {".w2.", ".down_proj."}};

// Replaces the last occurrence of `from`, if there is one.
bool ReplaceLast(std::string_view from, std::string_view to, std::string* name) {
  const size_t at = name->rfind(from);
  if (at == std::string::npos) return false;
  name->replace(at, from.size(), to);
  return true;
}

}  // namespace

std::string MixtralName(const std::string& weight) {
  std::string name = weight;
  if (!ReplaceLast(kMlp, kMixtralMlp, &name)) return name;
  for (const auto& [of_mixtral, part] : kMixtralParts) ReplaceLast(part, of_mixtral, &name);
  return name;
}

Status ModelFiles::UseNamesOfMixtures() {
  std::vector<std::string> names;
  for (const auto& entry : tensors_) {
    if (entry.first.find(kMixtralMlp) != std::string::npos) names.push_back(entry.first);
  }
  for (const std::string& name : names) {
    std::string plain = name;
    ReplaceLast(kMixtralMlp, kMlp, &plain);
    for (const auto& [of_mixtral, part] : kMixtralParts) ReplaceLast(of_mixtral, part, &plain);
    if (!tensors_.emplace(plain, tensors_.at(name)).second) {
      return Status(StatusCode::kInvalidArgument,
                    "tensor '" + name + "' is there, and '" + plain + "', which is the same");
    }
    tensors_.erase(name);
  }
  return Status::Ok();
}

void ModelFiles::UsePlainNames() {
  // BERT's first checkpoints use TensorFlow's names.
  for (const auto& [old_end, end] : {std::pair(".LayerNorm.gamma", ".LayerNorm.weight"),
                                     std::pair(".LayerNorm.beta", ".LayerNorm.bias")}) {
    std::vector<std::string> old_names;
    for (const auto& entry : tensors_) {
      if (entry.first.ends_with(old_end)) old_names.push_back(entry.first);
    }
    for (const std::string& name : old_names) {
      const std::string stem = name.substr(0, name.size() - std::string_view(old_end).size());
      tensors_.emplace(stem + end, tensors_.at(name));
      tensors_.erase(name);
    }
  }
  if (Has(Joined(kPlainPrefix, kEmbedding))) return;
  const auto* const prefix =
      std::ranges::find_if(kPrefixes, [&](auto text) { return Has(Joined(text, kEmbedding)); });
  if (prefix == std::end(kPrefixes)) return;
  std::map<std::string, Entry, std::less<>> plain;
  for (auto& [name, entry] : tensors_) plain.emplace(PlainName(name, *prefix), std::move(entry));
  tensors_ = std::move(plain);
}

Status ModelFiles::SplitExperts() {
  // A tensor of all experts, with the names of the matrices that it has of each.
  const std::pair<std::string_view, std::vector<std::string_view>> kTensors[] = {
      {"gate_up_proj", {"gate_proj", "up_proj"}}, {"down_proj", {"down_proj"}}};
  for (const auto& [tensor, matrices] : kTensors) {
    const std::string end = Joined(kExperts, tensor);
    std::vector<std::string> names;
    for (const auto& [name, entry] : tensors_) {
      if (name.ends_with(end) && entry.info.shape.size() == 3) names.push_back(name);
    }
    for (const std::string& name : names) {
      SKEIN_RETURN_IF_ERROR(SplitExperts(name, tensor.size(), matrices));
    }
  }
  return Status::Ok();
}

Status ModelFiles::SplitExperts(const std::string& name, size_t end,
                                const std::vector<std::string_view>& matrices) {
  // With biases it is a tensor of gpt-oss, whose experts have another layout.
  if (Has(name + "_bias")) return Status::Ok();
  const Entry all = tensors_.at(name);
  const auto count = static_cast<int64_t>(matrices.size());
  const int64_t num_experts = all.info.shape[0], rows = all.info.shape[1];
  const bool is_empty = all.info.begin == all.info.end;
  if (num_experts < 1 || num_experts > kMaxExperts || rows % count != 0 || is_empty) {
    return Status(StatusCode::kInvalidArgument,
                  "tensor '" + name + "' has shape " + ShapeString(all.info.shape) +
                      "; allowed are 1 to " + std::to_string(kMaxExperts) + " experts of " +
                      std::to_string(count) + " equal matrices");
  }
  const uint64_t bytes =
      (all.info.end - all.info.begin) / static_cast<uint64_t>(num_experts * count);
  Entry part = all;
  part.info.shape = {rows / count, all.info.shape[2]};
  part.info.end = all.info.begin;
  for (int64_t expert = 0; expert < num_experts; ++expert) {
    for (const std::string_view matrix : matrices) {
      part.info.begin = part.info.end;
      part.info.end = part.info.begin + bytes;
      const std::string weight = name.substr(0, name.size() - end) + std::to_string(expert) + "." +
                                 std::string(matrix) + ".weight";
      if (!tensors_.emplace(weight, part).second) {
        return Status(StatusCode::kInvalidArgument,
                      "tensor '" + weight + "' is there, but '" + name + "' holds it, too");
      }
    }
  }
  tensors_.erase(name);
  return Status::Ok();
}

Result<ModelFiles> ModelFiles::Open(const std::string& model_dir) {
  const std::string single = model_dir + "/" + kSingleFile, index = model_dir + "/" + kIndexFile;
  const std::string gguf = model_dir + "/" + kGgufFile;
  ModelFiles files;
  std::error_code error;
  if (std::filesystem::exists(single, error)) {
    SKEIN_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(single));
    for (const auto& [name, info] : file.header().tensors) files.tensors_[name] = {0, info, name};
    files.files_.push_back(std::move(file));
  } else if (std::filesystem::exists(index, error)) {
    SKEIN_RETURN_IF_ERROR(files.OpenShards(model_dir, index));
  } else if (std::filesystem::exists(gguf, error)) {
    // Follows a link, since the parts of a model are in the same directory as the first file
    // itself.
    const std::filesystem::path path = std::filesystem::canonical(gguf, error);
    return OpenGguf(error ? gguf : path.string());
  } else {
    return Status(StatusCode::kNotFound,
                  model_dir + " has neither " + kSingleFile + " nor " + kIndexFile);
  }
  files.UsePlainNames();
  SKEIN_RETURN_IF_ERROR(files.UseNamesOfMixtures());
  SKEIN_RETURN_IF_ERROR(files.SplitExperts());
  return files;
}

Status ModelFiles::OpenShards(const std::string& model_dir, const std::string& index_path) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile json, JsonFile::Load(index_path));
  SKEIN_ASSIGN_OR_RETURN(const std::optional<JsonObject> weight_map,
                         json.root().Object("weight_map"));
  if (!weight_map) return json.root().Error("weight_map", "is missing");
  std::map<std::string, size_t, std::less<>> index_of_shard;
  for (const auto& member : weight_map->members()) {
    std::string_view shard;
    if (member.value.get(shard) != simdjson::SUCCESS) {
      return weight_map->Error(member.key, "must name a file");
    }
    if (!IsPlainFileName(shard)) {
      return weight_map->Error(
          member.key, "names the file '" + std::string(shard) + "'; it must be a plain file name");
    }
    auto it = index_of_shard.find(shard);
    if (it == index_of_shard.end()) {
      Result<SafetensorsFile> file = SafetensorsFile::Open(model_dir + "/" + std::string(shard));
      if (!file.ok()) {
        return Status(file.status().code(), index_path + " names a shard that cannot be used: " +
                                                file.status().message());
      }
      it = index_of_shard.emplace(shard, files_.size()).first;
      files_.push_back(std::move(file).value());
    }
    const auto& tensors = files_[it->second].header().tensors;
    const auto found = tensors.find(member.key);
    if (found == tensors.end()) {
      return weight_map->Error(member.key,
                               "is not in " + std::string(shard) + ", where the index says it is");
    }
    const std::string name(member.key);
    if (!tensors_.try_emplace(name, it->second, found->second, name).second) {
      return weight_map->Error(member.key, "appears twice");
    }
  }
  return Status::Ok();
}

Result<ModelFiles> ModelFiles::OpenGguf(const std::string& path) {
  ModelFiles files;
  SKEIN_ASSIGN_OR_RETURN(GgufModel gguf, GgufModel::Open(path));
  SKEIN_RETURN_IF_ERROR(files.ReadGguf(std::move(gguf)));
  return files;
}

// The facts in the metadata of a GGUF file about its tensors.
struct GgufLayout {
  std::string architecture;
  int64_t heads = 0, kv_heads = 0;  // above 0: of q, and of k, whose rows are interleaved
  // Layers from this one on guess further tokens. They are left out.
  int64_t num_layers = std::numeric_limits<int64_t>::max();
  std::string decision_type;  // of a decision model, else empty
  int64_t num_experts = 0;
  int64_t num_encoder_layers = 0;  // of the type laya: the layers behind them are the head's

  bool is_laya() const { return decision_type == "laya"; }
  std::string WeightOf(std::string_view tensor) const {
    return is_laya() ? WeightOfLayaTensor(tensor, num_encoder_layers)
                     : WeightOfGgufTensor(tensor, architecture);
  }
  std::string TensorOf(std::string_view weight) const {
    return is_laya() ? LayaTensorName(weight, num_encoder_layers)
                     : GgufTensorName(weight, architecture);
  }

  static Result<GgufLayout> Read(const GgufMetadata& metadata) {
    GgufLayout layout;
    SKEIN_ASSIGN_OR_RETURN(const auto architecture, metadata.String("general.architecture"));
    layout.architecture = architecture.value_or("");
    const std::string at = layout.architecture + ".";
    SKEIN_ASSIGN_OR_RETURN(const auto type, metadata.String(at + "decision.type"));
    layout.decision_type = type.value_or("");
    SKEIN_ASSIGN_OR_RETURN(const auto experts, metadata.Int(at + "expert_count"));
    layout.num_experts = experts.value_or(0);
    if (layout.num_experts < 0 || layout.num_experts > kMaxExperts) {
      return metadata.Error(at + "expert_count", "is " + std::to_string(layout.num_experts) +
                                                     "; 0 to " + std::to_string(kMaxExperts) +
                                                     " are allowed");
    }
    SKEIN_ASSIGN_OR_RETURN(const auto layers, metadata.Int(at + "block_count"));
    SKEIN_ASSIGN_OR_RETURN(const auto further, metadata.Int(at + "nextn_predict_layers"));
    if (layers && further.value_or(0) > 0) layout.num_layers = *layers - *further;
    SKEIN_ASSIGN_OR_RETURN(const auto of_head, metadata.Int(at + "decision.block_count"));
    const int64_t head_layers = of_head.value_or(0);  // a file may state any number
    if (head_layers > 0 && layers.value_or(0) > head_layers) {
      layout.num_encoder_layers = *layers - head_layers;
    }
    if (!InterleavesHeads(layout.architecture)) return layout;
    SKEIN_ASSIGN_OR_RETURN(const auto heads, metadata.Int(at + "attention.head_count"));
    SKEIN_ASSIGN_OR_RETURN(const auto kv_heads, metadata.Int(at + "attention.head_count_kv"));
    layout.heads = heads.value_or(0);
    layout.kv_heads = kv_heads.value_or(layout.heads);
    return layout;
  }
};

Status ModelFiles::ReadGguf(GgufModel gguf) {
  gguf_ = std::move(gguf);
  SKEIN_ASSIGN_OR_RETURN(const GgufLayout layout, GgufLayout::Read(gguf_->metadata()));
  for (const std::string& name : gguf_->Names()) {
    SKEIN_ASSIGN_OR_RETURN(const GgufTensor tensor, gguf_->Find(name));
    if (LayerOfGgufTensor(name) >= layout.num_layers) continue;
    SKEIN_RETURN_IF_ERROR(AddGgufTensor(layout, tensor, name));
  }
  return Status::Ok();
}

Status ModelFiles::AddGgufTensor(const GgufLayout& layout, const GgufTensor& tensor,
                                 const std::string& name) {
  const GgufMetadata& metadata = gguf_->metadata();
  const std::string weight = layout.WeightOf(name);
  Entry entry = {.file = 0, .info = {}, .name_in_file = name};
  const bool is_q = weight.ends_with(".q_proj.weight");
  if (InterleavesHeads(layout.architecture) && (is_q || weight.ends_with(".k_proj.weight"))) {
    const int64_t count = is_q ? layout.heads : layout.kv_heads;
    if (count < 1 || tensor.num_rows() % (2 * count) != 0) {
      return metadata.Error(layout.architecture + ".attention.head_count",
                            "does not divide the rows of " + name);
    }
    entry.interleaved_head_rows = tensor.num_rows() / count;
  }
  const std::string_view type = tensor.type->name;
  entry.info.file_dtype = type;
  entry.info.dtype = type == "F32"    ? DType::kF32
                     : type == "BF16" ? DType::kBf16
                     : type == "F16"  ? DType::kF16
                                      : DType::kBlocks;
  entry.info.shape = tensor.shape;
  // The taps of a convolution, which HuggingFace has as [channels, 1, taps].
  if (weight.ends_with(".conv1d.weight") && tensor.shape.size() == 2) {
    entry.info.shape.insert(entry.info.shape.begin() + 1, 1);
  }
  // A matrix of one row, of which files may state the columns alone.
  const bool is_row = (layout.is_laya() && weight == "scorer.3.weight") ||
                      weight.ends_with(".mlp.shared_expert_gate.weight");
  if (is_row && tensor.shape.size() == 1) {
    entry.info.shape.insert(entry.info.shape.begin(), 1);
  }
  const int64_t row_bytes =
      tensor.row_elements() / tensor.type->block_elements * tensor.type->block_bytes;
  const auto bytes = static_cast<uint64_t>(tensor.num_rows() * row_bytes);
  entry.info.end = bytes;
  const std::vector<std::string> parts =
      PartsOfGgufTensor(name, layout.architecture, layout.decision_type, layout.num_experts);
  if (parts.empty()) {
    tensors_.emplace(weight.empty() ? name : weight, std::move(entry));
    return Status::Ok();
  }
  // A matrix has no less than whole rows, and a vector no less than whole blocks.
  const auto count = static_cast<int64_t>(parts.size());
  int64_t& size = entry.info.shape.front();
  if (size % count != 0 || (tensor.shape.size() == 1 && tensor.type->block_elements != 1)) {
    const bool experts = layout.decision_type.empty();
    return metadata.Error(layout.architecture + (experts ? ".expert_count" : ".decision.type"),
                          "asks for " + std::to_string(count) + " parts of " + name +
                              ", which has shape " + ShapeString(tensor.shape) + " of " +
                              tensor.type->name);
  }
  size /= count;
  const bool biases = tensor.shape.size() == 2 && name.ends_with(".bias");
  if ((tensor.shape.size() == 3 || biases) && size == 1)
    entry.info.shape.erase(entry.info.shape.begin());
  const uint64_t part_bytes = bytes / parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    entry.info.begin = part_bytes * i;
    entry.info.end = part_bytes * (i + 1);
    tensors_.emplace(parts[i], entry);
  }
  return Status::Ok();
}

Status ModelFiles::CheckShape(const std::string& name, const std::vector<int64_t>& shape,
                              const std::string& where) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return Status(StatusCode::kInvalidArgument,
                  where + " is not part of the base model, which has no '" + name + "'");
  }
  if (found->second.info.shape == shape) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, where + " has shape " + ShapeString(shape) +
                                                  "; the base model's is " +
                                                  ShapeString(found->second.info.shape));
}

Status ModelFiles::Replace(SafetensorsFile file, const std::string& prefix) {
  for (const auto& [name, info] : file.header().tensors) {
    SKEIN_RETURN_IF_ERROR(
        CheckShape(prefix + name, info.shape, file.path() + ": tensor '" + name + "'"));
  }
  return Add(std::move(file), prefix);
}

Status ModelFiles::Add(SafetensorsFile file, const std::string& prefix) {
  if (gguf_) {
    return Status(StatusCode::kUnsupported,
                  file.path() + ": the base model is a GGUF file; supported is safetensors");
  }
  for (const auto& [name, info] : file.header().tensors) {
    tensors_[prefix + name] = {files_.size(), info, name};
  }
  files_.push_back(std::move(file));
  return Status::Ok();
}

Status ModelFiles::Change(LoraAdapter adapter, const std::string& prefix) {
  for (const auto& [weight, shape] : adapter.Weights()) {
    SKEIN_RETURN_IF_ERROR(CheckShape(prefix + weight, shape, "the adapter's '" + weight + "'"));
  }
  adapter_ = std::make_shared<const LoraAdapter>(std::move(adapter));
  for (const auto& [weight, shape] : adapter_->Weights()) {
    tensors_.at(prefix + weight).name_in_adapter = weight;
  }
  return Status::Ok();
}

std::vector<std::string> ModelFiles::Names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& entry : tensors_) names.push_back(entry.first);
  return names;
}

Result<TensorView> ModelFiles::Find(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end() && gguf_) {
    SKEIN_ASSIGN_OR_RETURN(const GgufLayout layout, GgufLayout::Read(gguf_->metadata()));
    const std::string tensor = layout.TensorOf(name);
    if (!tensor.empty() && !gguf_->Has(tensor)) return gguf_->Find(tensor).status();
  }
  if (it == tensors_.end()) {
    return Status(StatusCode::kNotFound,
                  "the model's files have no tensor '" + std::string(name) + "'");
  }
  const Entry& entry = it->second;
  if (!gguf_) {
    SKEIN_ASSIGN_OR_RETURN(TensorView view, files_[entry.file].Find(entry.name_in_file));
    const std::span<const std::byte> bytes = files_[entry.file].Bytes(entry.info);
    view.shape = entry.info.shape;
    view.data = bytes.data();
    view.bytes = bytes.size();
    if (!entry.name_in_adapter.empty()) {
      view.adapter = adapter_.get();
      view.weight = entry.name_in_adapter;
    }
    return view;
  }
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor tensor, gguf_->Find(entry.name_in_file));
  TensorView view = {*entry.info.dtype, entry.info.shape, tensor.data + entry.info.begin,
                     static_cast<size_t>(entry.info.end - entry.info.begin)};
  if (view.dtype == DType::kBlocks) view.blocks = tensor.type;
  view.interleaved_head_rows = entry.interleaved_head_rows;
  return view;
}

Result<TensorView> ModelFiles::Find(std::string_view name,
                                    const std::vector<int64_t>& shape) const {
  SKEIN_ASSIGN_OR_RETURN(TensorView view, Find(name));
  if (view.shape != shape) {
    const std::string& in_file = tensors_.find(name)->second.name_in_file;
    return Status(StatusCode::kInvalidArgument, "tensor '" + (gguf_ ? in_file : std::string(name)) +
                                                    "' has shape " + ShapeString(view.shape) +
                                                    "; the config asks for " + ShapeString(shape));
  }
  return view;
}

Result<std::span<const std::byte>> ModelFiles::Bytes(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end() || gguf_) {
    return Status(StatusCode::kNotFound,
                  "the model's files have no tensor '" + std::string(name) + "'");
  }
  return files_[it->second.file].Bytes(it->second.info);
}

const TensorInfo& ModelFiles::Info(std::string_view name) const {
  const auto it = tensors_.find(name);
  SKEIN_CHECK(it != tensors_.end());
  return it->second.info;
}

void ModelFiles::ReleasePages(const TensorView& view) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(view.data);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + view.bytes) / page * page;
  if (first < last) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace skein
