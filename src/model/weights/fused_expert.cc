#include "model/weights/fused_expert.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/convert.h"

namespace skein {

// The place of an expert's matrix in the files.
struct FusedExpert::Place {
  std::string tensor;  // empty: the name is not that of an expert's matrix
  int64_t expert = 0;
  int32_t first = 0, step = 1;

  explicit Place(std::string_view name) {
    constexpr std::string_view kExperts = ".experts.";
    const size_t at = name.find(kExperts);
    if (at == std::string_view::npos) return;
    const std::string_view rest = name.substr(at + kExperts.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), expert);
    if (error != std::errc() || end == rest.data() + rest.size() || *end != '.') return;
    const std::string_view matrix = rest.substr(static_cast<size_t>(end + 1 - rest.data()));
    const bool is_up = matrix == "up_proj", is_down = matrix == "down_proj";
    if (!is_up && !is_down && matrix != "gate_proj") return;
    tensor = std::string(name.substr(0, at + kExperts.size())) + (is_down ? "down" : "gate_up") +
             "_proj";
    first = is_up ? 1 : 0;
    step = is_down ? 1 : 2;
  }
};

namespace {

constexpr int64_t kBlockBytes = kBlockTerms / 2;  // of the numbers, without their scale

// The part of expert `expert` in a tensor [experts, shape...].
Result<std::span<const std::byte>> PartOf(const ModelFiles& files, const std::string& name,
                                          int64_t expert, const std::vector<int64_t>& shape) {
  SKEIN_ASSIGN_OR_RETURN(const auto bytes, files.Bytes(name));
  const std::vector<int64_t>& found = files.Info(name).shape;
  if (found.size() != shape.size() + 1 ||
      !std::equal(shape.begin(), shape.end(), found.begin() + 1)) {
    return Status(StatusCode::kInvalidArgument, "tensor '" + name + "' has shape " +
                                                    ShapeString(found) + "; the config asks for " +
                                                    ShapeString(shape) + " for each expert");
  }
  if (expert >= found[0]) {
    return Status(StatusCode::kInvalidArgument, "tensor '" + name + "' has " +
                                                    std::to_string(found[0]) +
                                                    " experts; the config asks for more");
  }
  const size_t size = bytes.size() / static_cast<size_t>(found[0]);
  return bytes.subspan(static_cast<size_t>(expert) * size, size);
}

Result<DType> PlainType(const ModelFiles& files, const std::string& name) {
  const std::string& type = files.Info(name).file_dtype;
  if (type == "BF16") return DType::kBf16;
  if (type == "F16") return DType::kF16;
  if (type == "F32") return DType::kF32;
  return Status(StatusCode::kUnsupported,
                "tensor '" + name + "' has dtype " + type + "; supported are BF16, F16 and F32");
}

}  // namespace

std::vector<std::string> FusedExpert::TensorNames(const ModelFiles& files,
                                                  const std::string& name) {
  const Place place(name);
  if (place.tensor.empty() || files.Has(name + ".weight")) return {};
  if (files.Has(place.tensor + "_blocks")) {
    return {place.tensor + "_blocks", place.tensor + "_scales"};
  }
  if (files.Has(place.tensor)) return {place.tensor};
  return {};
}

std::string FusedExpert::BiasName(const ModelFiles& files, const std::string& name) {
  const Place place(name);
  const std::string biases = place.tensor + "_bias";
  return !place.tensor.empty() && files.Has(biases) ? biases : "";
}

Result<std::vector<float>> FusedExpert::ReadBias(const ModelFiles& files, const std::string& name,
                                                 int32_t n) {
  const Place place(name);
  const std::string biases = BiasName(files, name);
  SKEIN_ASSIGN_OR_RETURN(const DType type, PlainType(files, biases));
  SKEIN_ASSIGN_OR_RETURN(const auto part,
                         PartOf(files, biases, place.expert, {int64_t{n} * place.step}));
  std::vector<float> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = static_cast<size_t>(place.first) + i * static_cast<size_t>(place.step);
    Widen(part.data() + at * SizeOf(type), type, 1, &out[i]);
  }
  return out;
}

Result<std::shared_ptr<const StoredMatrix>> FusedExpert::Open(const ModelFiles& files,
                                                              const std::string& name, int32_t n,
                                                              int32_t k) {
  const Place place(name);
  std::shared_ptr<FusedExpert> expert(new FusedExpert);
  expert->n_ = n;
  expert->k_ = k;
  expert->first_ = place.first;
  expert->step_ = place.step;
  SKEIN_RETURN_IF_ERROR(files.Has(place.tensor) ? expert->OpenPlain(files, place)
                                                : expert->OpenBlocks(files, place));
  return std::shared_ptr<const StoredMatrix>(std::move(expert));
}

Status FusedExpert::OpenBlocks(const ModelFiles& files, const Place& place) {
  const int64_t rows = int64_t{n_} * step_, blocks = k_ / kBlockTerms;
  const std::string names[] = {place.tensor + "_blocks", place.tensor + "_scales"};
  const std::vector<int64_t> shapes[] = {{rows, blocks, kBlockBytes}, {rows, blocks}};
  const std::byte** const parts[] = {&data_, &scales_};
  if (k_ % kBlockTerms != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "tensor '" + names[0] + "' has blocks of " + std::to_string(kBlockTerms) +
                      " numbers; the config asks for rows of " + std::to_string(k_));
  }
  for (int i = 0; i < 2; ++i) {
    if (!files.Has(names[i])) {
      return Status(StatusCode::kInvalidArgument, "the model lacks the tensor " + names[i]);
    }
    const std::string& type = files.Info(names[i]).file_dtype;
    if (type != "U8") {
      return Status(StatusCode::kUnsupported,
                    "tensor '" + names[i] + "' has dtype " + type + "; MXFP4 is of type U8");
    }
    SKEIN_ASSIGN_OR_RETURN(const auto part, PartOf(files, names[i], place.expert, shapes[i]));
    *parts[i] = part.data();
    bytes_ += part.size() / static_cast<size_t>(step_);
  }
  return Status::Ok();
}

Status FusedExpert::OpenPlain(const ModelFiles& files, const Place& place) {
  SKEIN_ASSIGN_OR_RETURN(dtype_, PlainType(files, place.tensor));
  SKEIN_ASSIGN_OR_RETURN(const auto part,
                         PartOf(files, place.tensor, place.expert, {k_, int64_t{n_} * step_}));
  data_ = part.data();
  bytes_ = part.size() / static_cast<size_t>(step_);
  return Status::Ok();
}

std::optional<BlockFormat> FusedExpert::format() const {
  if (scales_ == nullptr) return std::nullopt;
  return BlockFormat::kMxfp4;
}

void FusedExpert::ReadRows(int32_t first_row, int32_t num_rows, float* out) const {
  SKEIN_CHECK(first_row >= 0 && num_rows >= 0 && num_rows <= n_ - first_row);
  if (scales_ != nullptr) {
    constexpr BlockFormat kFormat = BlockFormat::kMxfp4;
    const int64_t blocks = int64_t{num_rows} * (k_ / kBlockTerms);
    std::vector<std::byte> packed(static_cast<size_t>(blocks) * TraitsOf(kFormat).file_bytes);
    ReadBlocks(first_row, num_rows, packed.data());
    return DequantizeBlocks(kFormat, packed.data(), blocks, out);
  }
  if (num_rows == 0) return;
  // The rows' elements of one index of k lie side by side, or in turn with the other matrix's.
  const int64_t rows = int64_t{n_} * step_, begin = TensorRow(first_row);
  std::vector<float> strip(static_cast<size_t>((num_rows - 1) * step_ + 1));
  for (int64_t i = 0; i < k_; ++i) {
    Widen(data_ + (i * rows + begin) * static_cast<int64_t>(SizeOf(dtype_)), dtype_, strip.size(),
          strip.data());
    for (int32_t r = 0; r < num_rows; ++r) {
      out[int64_t{r} * k_ + i] = strip[static_cast<size_t>(r) * step_];
    }
  }
}

void FusedExpert::ReadBlocks(int32_t first_row, int32_t num_rows, std::byte* out) const {
  SKEIN_CHECK(scales_ != nullptr);
  SKEIN_CHECK(first_row >= 0 && num_rows >= 0 && num_rows <= n_ - first_row);
  constexpr std::byte kLow{15};
  const int64_t blocks = k_ / kBlockTerms;
  for (int32_t row = first_row; row < first_row + num_rows; ++row) {
    const int64_t begin = TensorRow(row) * blocks;
    for (int64_t b = begin; b < begin + blocks; ++b) {
      *out++ = scales_[b];
      // Elements 2 i and 2 i + 1 of each half come to bytes 2 i and 2 i + 1.
      const std::byte* const first = data_ + b * kBlockBytes;
      const std::byte* const second = first + kBlockBytes / 2;
      for (int64_t i = 0; i < kBlockBytes / 2; ++i) {
        *out++ = (first[i] & kLow) | second[i] << 4;
        *out++ = first[i] >> 4 | (second[i] & ~kLow);
      }
    }
  }
}

}  // namespace skein
