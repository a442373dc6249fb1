#include "apps/gguf/gguf_export.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "apps/gguf/config_entries.h"
#include "apps/gguf/tokenizer_entries.h"
#include "apps/model/adapter_fit.h"
#include "base/blocks/block_quantizer.h"
#include "base/ceil_div.h"
#include "base/threads/thread_team.h"
#include "io/gguf_names.h"
#include "io/gguf_writer.h"
#include "io/lora_adapter.h"
#include "model/config/config.h"
#include "model/weights/decoder_loader.h"
#include "model/weights/tensor_list.h"

namespace skein {
namespace {

constexpr char kRopeFactorsName[] = "rope_freqs.weight";

// general.file_type, which follows from the type of most tensors.
struct FileType {
  const char* name;
  uint32_t id;
};
constexpr FileType kFileTypes[] = {{"F32", 0},  {"F16", 1},   {"Q4_0", 2},
                                   {"Q8_0", 7}, {"Q4_K", 14}, {"BF16", 32}};

const GgufType* TypeNamed(std::string_view name) {
  const auto types = GgufTypes();
  const auto found =
      std::ranges::find_if(types, [&](const GgufType& type) { return type.name == name; });
  SKEIN_CHECK(found != types.end());
  return &*found;
}

// A weight of the model, and its place in the file.
struct Export {
  std::string weight;  // name of the weight in the model
  TensorView view;
  size_t tensor = 0;      // index of the file's tensor
  int64_t first_row = 0;  // of the tensor: a tensor of a mixture holds the weights of all experts
  float offset = 0;       // added to each element
  // Above 0: the file interleaves the rows of heads of this many rows.
  int64_t interleaved_head_rows = 0;

  // The model's row that becomes row `row` of the file's tensor.
  int64_t ModelRow(int64_t row) const {
    if (interleaved_head_rows == 0) return row;
    const int64_t in_head = row % interleaved_head_rows;
    return row - in_head + in_head % 2 * (interleaved_head_rows / 2) + in_head / 2;
  }
};

// Rounds a row to the type. Returns false if a number is beyond f16's range.
bool EncodeRow(const GgufType& type, std::span<const float> row, std::byte* out) {
  if (type.format) {
    QuantizeBlocks(*type.format, row, out);
    return true;
  }
  const std::string_view name = type.name;
  if (name == "F32") {
    std::ranges::copy(std::as_bytes(row), out);
    return true;
  }
  bool fits = true;
  for (const float element : row) {
    uint16_t bits = ToBf16(element).bits;
    if (name == "F16") {
      bits = ToF16(element).bits;
      fits = fits && std::isfinite(ToFloat(F16{bits})) == std::isfinite(element);
    }
    std::memcpy(out, &bits, sizeof(bits));
    out += sizeof(bits);
  }
  return fits;
}

class Exporter {
 public:
  explicit Exporter(const GgufExportOptions& options) : options_(options) {}

  Result<GgufExportSummary> Run() {
    SKEIN_RETURN_IF_ERROR(ReadModel());
    SKEIN_RETURN_IF_ERROR(PlanTensors());
    SKEIN_ASSIGN_OR_RETURN(GgufWriter writer, CreateFile());
    SKEIN_RETURN_IF_ERROR(CheckReadsBack(writer));
    SKEIN_RETURN_IF_ERROR(WriteTensors(writer));
    SKEIN_RETURN_IF_ERROR(writer.Close());
    summary_.file_bytes = writer.file_bytes();
    return summary_;
  }

 private:
  Status ReadModel() {
    std::error_code error;
    if (!options_.force && std::filesystem::exists(options_.file, error)) {
      return Status(StatusCode::kInvalidArgument, options_.file + " is there; --force replaces it",
                    "file");
    }
    SKEIN_ASSIGN_OR_RETURN(config_, LoadModelConfig(options_.dir));
    SKEIN_ASSIGN_OR_RETURN(architecture_, GgufArchitectureOf(config_));
    SKEIN_ASSIGN_OR_RETURN(files_, ModelFiles::Open(options_.dir));
    if (config_.tie_embeddings && HasOwnOutputMatrix(*files_)) config_.tie_embeddings = false;
    if (options_.adapter_dir.empty()) return Status::Ok();
    SKEIN_ASSIGN_OR_RETURN(adapter_, LoraAdapter::Open(options_.adapter_dir));
    return CheckAdapterFits(*adapter_, ListTensors(config_), options_.adapter_dir);
  }

  // The row that is the gate of a shared expert. A file has it without its first
  // dimension.
  static bool IsSharedGate(const ModelTensor& tensor) {
    return tensor.name.ends_with(".mlp.shared_expert_gate.weight");
  }

  // The type for a weight. An error names the weight if its rows are not whole blocks and there is
  // no fallback. A router chooses among experts by small differences, so it is not rounded.
  Result<const GgufType*> TypeOf(const ModelTensor& tensor) {
    const bool is_router = IsSharedGate(tensor) ||
                           (config_.num_experts > 0 && tensor.name.ends_with(".mlp.gate.weight"));
    if (tensor.shape.size() == 1 || is_router) return TypeNamed("F32");
    const bool vocabulary = tensor.role == TensorRole::kEmbedding;
    const GgufType* type =
        vocabulary && options_.embedding_type != nullptr ? options_.embedding_type : options_.type;
    const int64_t row = tensor.shape.back();
    if (row % type->block_elements == 0) return type;
    const GgufType* fallback = options_.fallback_type;
    if (fallback != nullptr && row % fallback->block_elements == 0) {
      ++summary_.num_fallbacks;
      return fallback;
    }
    std::string fitting;
    for (const GgufType* other : WritableGgufTypes()) {
      if (row % other->block_elements != 0) continue;
      fitting += (fitting.empty() ? "" : ", ") + std::string(other->name);
    }
    return Status(StatusCode::kInvalidArgument,
                  "tensor '" + tensor.name + "' has rows of " + std::to_string(row) +
                      " elements; " + type->name + " takes multiples of " +
                      std::to_string(type->block_elements) + ". Types for such rows: " + fitting,
                  vocabulary ? "embedding-dtype" : "fallback-dtype");
  }

  Status PlanTensors() {
    for (const ModelTensor& tensor : ListTensors(config_)) {
      const std::string name = GgufTensorName(tensor.name, architecture_->name);
      if (name.empty()) {
        return Status(StatusCode::kUnsupported,
                      "tensor '" + tensor.name + "' has no name in a GGUF file");
      }
      Export source = {.weight = tensor.name};
      SKEIN_ASSIGN_OR_RETURN(source.view, files_->Find(tensor.name, tensor.shape));
      // A GGUF file holds the factors of norms themselves, not their difference to 1.
      if (tensor.role == TensorRole::kNorm && !files_->is_gguf()) {
        source.offset = config_.decoder.norm_offset;
      }
      const bool is_q = tensor.name.ends_with(".q_proj.weight");
      if (InterleavesHeads(architecture_->name) &&
          (is_q || tensor.name.ends_with(".k_proj.weight"))) {
        source.interleaved_head_rows = config_.head_dim;
      }
      SKEIN_RETURN_IF_ERROR(Place(name, tensor, &source));
      summary_.num_parameters += source.view.num_rows() * source.view.row_elements();
      exports_.push_back(std::move(source));
    }
    rope_factors_ = RopeFactors(config_);
    if (!rope_factors_.empty()) {
      specs_.push_back({kRopeFactorsName, TypeNamed("F32"), {std::ssize(rope_factors_)}});
    }
    return Status::Ok();
  }

  // Adds a tensor to the file, or one expert's matrix to a tensor that is there: experts come in
  // the order of their numbers.
  Status Place(const std::string& name, const ModelTensor& weight, Export* source) {
    const auto [found, is_new] = tensors_.try_emplace(name, specs_.size());
    source->tensor = found->second;
    if (!is_new) {
      SKEIN_CHECK(HoldsExperts(name, architecture_->name));
      GgufTensorSpec& spec = specs_[found->second];
      source->first_row = spec.shape[0]++ * spec.shape[1];
      return Status::Ok();
    }
    SKEIN_ASSIGN_OR_RETURN(const GgufType* const type, TypeOf(weight));
    specs_.push_back({name, type, weight.shape});
    if (IsSharedGate(weight)) specs_.back().shape.erase(specs_.back().shape.begin());
    if (HoldsExperts(name, architecture_->name)) {
      std::vector<int64_t>& shape = specs_.back().shape;
      shape.insert(shape.begin(), 1);
    }
    return Status::Ok();
  }

  Result<GgufWriter> CreateFile() {
    GgufEntries entries;
    AddConfigEntries(config_, *architecture_, &entries);
    const auto* file_type = std::ranges::find_if(kFileTypes, [&](const FileType& type) {
      return options_.type->name == std::string_view(type.name);
    });
    SKEIN_CHECK(file_type != std::end(kFileTypes));
    entries.Text("general.name", std::filesystem::path(options_.file).stem().string());
    entries.U32("general.file_type", file_type->id);
    entries.U32("general.quantization_version", 2);
    SKEIN_RETURN_IF_ERROR(AddTokenizerEntries(options_.dir, config_, &entries));
    SKEIN_ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::Create(options_.file, entries, specs_));
    if (!rope_factors_.empty()) {
      SKEIN_RETURN_IF_ERROR(
          writer.Write(specs_.size() - 1, 0, std::as_bytes(std::span(rope_factors_))));
    }
    return writer;
  }

  // Reads the header back as for serving. If the file lost a setting, the model would compute
  // something else.
  Status CheckReadsBack(const GgufWriter& writer) const {
    SKEIN_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(writer.unfinished_path()));
    SKEIN_ASSIGN_OR_RETURN(const auto json, GgufConfigJson(file, DType::kF32));
    SKEIN_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(json.dump()));
    const std::string lost = FirstDifference(config_, config);
    if (lost.empty()) return Status::Ok();
    return Status(StatusCode::kUnsupported,
                  "config.json: '" + lost + "' is one that a GGUF file of the architecture " +
                      architecture_->name + " cannot say",
                  lost);
  }

  Status WriteTensors(const GgufWriter& writer) {
    ThreadTeam team(options_.num_threads);
    int64_t done = 0;
    for (size_t i = 0; i < exports_.size(); ++i) {
      SKEIN_RETURN_IF_ERROR(WriteTensor(writer, i, &team));
      ModelFiles::ReleasePages(exports_[i].view);
      done += exports_[i].view.num_rows() * exports_[i].view.row_elements();
      if (options_.progress) options_.progress(done, summary_.num_parameters);
    }
    return Status::Ok();
  }

  Status WriteTensor(const GgufWriter& writer, size_t index, ThreadTeam* team) const {
    constexpr int64_t kElementsPerTicket = int64_t{1} << 18;
    const int64_t num_rows = exports_[index].view.num_rows();
    const int64_t rows =
        std::max<int64_t>(1, kElementsPerTicket / exports_[index].view.row_elements());
    std::mutex mutex;
    Status failure;
    team->Run(0, static_cast<int>(CeilDiv(num_rows, rows)), [&](int ticket, int) {
      const int64_t first = ticket * rows;
      const Status status = WriteRows(writer, index, first, std::min(rows, num_rows - first));
      if (status.ok()) return;
      const std::lock_guard lock(mutex);
      failure = status;
    });
    return failure;
  }

  // Writes rows [first, first + count) of a tensor of the file.
  Status WriteRows(const GgufWriter& writer, size_t index, int64_t first, int64_t count) const {
    const Export& source = exports_[index];
    const GgufTensorSpec& spec = specs_[source.tensor];
    const bool changed = adapter_ && adapter_->Find(source.weight) != nullptr;
    std::vector<float> values(static_cast<size_t>(source.view.row_elements()));
    std::vector<std::byte> bytes(static_cast<size_t>(count * spec.row_bytes()));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = source.ModelRow(first + i);
      source.view.ReadRows(row, 1, values.data());
      for (float& value : values) value += source.offset;
      if (changed) adapter_->AddTo(source.weight, row, 1, values.data());
      if (!EncodeRow(*spec.type, values, bytes.data() + i * spec.row_bytes())) {
        return Status(StatusCode::kUnsupported,
                      "tensor '" + source.weight +
                          "' holds a number beyond 65504, the largest of f16; bf16 and f32 hold it",
                      "dtype");
      }
    }
    return writer.Write(source.tensor, (source.first_row + first) * spec.row_bytes(), bytes);
  }

  const GgufExportOptions& options_;
  ModelConfig config_;
  const GgufArchitecture* architecture_ = nullptr;
  std::optional<ModelFiles> files_;
  std::optional<LoraAdapter> adapter_;
  std::vector<Export> exports_;
  // The tensors of weights, then the factors of the rotation if there are any.
  std::vector<GgufTensorSpec> specs_;
  std::map<std::string, size_t> tensors_;  // of weights: indices in specs_
  std::vector<float> rope_factors_;
  GgufExportSummary summary_;
};

}  // namespace

std::vector<const GgufType*> WritableGgufTypes() {
  std::vector<const GgufType*> types;
  for (const FileType& type : kFileTypes) types.push_back(TypeNamed(type.name));
  return types;
}

const GgufType* FindWritableGgufType(const std::string& name) {
  std::string upper;
  for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const GgufType* type : WritableGgufTypes()) {
    if (upper == type->name) return type;
  }
  return nullptr;
}

Result<GgufExportSummary> ExportGguf(const GgufExportOptions& options) {
  SKEIN_CHECK(options.type != nullptr && options.num_threads >= 1);
  return Exporter(options).Run();
}

}  // namespace skein
