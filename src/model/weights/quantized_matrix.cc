#include "model/weights/quantized_matrix.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/ceil_div.h"
#include "base/check.h"
#include "base/dtype.h"

namespace skein {
namespace {

using Method = QuantizationMethod;

constexpr int32_t kWordBits = 32;
// In AWQ's order, the nibble of a word that holds column c % 8.
constexpr int32_t kAwqNibbles[8] = {0, 4, 1, 5, 2, 6, 3, 7};

struct Names {
  const char *values, *scales, *zeros, *groups;  // null: the method has no such tensor
};

Names NamesOf(Method method) {
  switch (method) {
    case Method::kGptq:
      return {".qweight", ".scales", ".qzeros", ".g_idx"};
    case Method::kAwq:
      return {".qweight", ".scales", ".qzeros", nullptr};
    case Method::kPacked:
      return {".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_g_idx"};
    case Method::kInteger:
    case Method::kFloat8:
    case Method::kMxfp4:
    case Method::kNone:
      break;
  }
  return {".weight", ".weight_scale", nullptr, nullptr};
}

// FP8 E4M3 has a sign bit, four bits of exponent and three of mantissa; it has no infinities.
constexpr float Float8(uint8_t bits) {
  const int32_t exponent = bits >> 3 & 15, mantissa = bits & 7;
  float magnitude = std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) {
    magnitude = static_cast<float>(mantissa) * 0x1p-9f;
  } else if (exponent != 15 || mantissa != 7) {
    magnitude = std::bit_cast<float>(static_cast<uint32_t>(exponent + 120) << 23 |
                                     static_cast<uint32_t>(mantissa) << 20);
  }
  return bits & 0x80 ? -magnitude : magnitude;
}

constexpr std::array<float, 256> MakeFloat8Table() {
  std::array<float, 256> table = {};
  for (size_t i = 0; i < table.size(); ++i) table[i] = Float8(static_cast<uint8_t>(i));
  return table;
}
constexpr std::array<float, 256> kFloat8Table = MakeFloat8Table();

Status WrongShape(const std::string& name, const std::vector<int64_t>& shape,
                  const std::string& wanted) {
  return Status(
      StatusCode::kInvalidArgument,
      "tensor '" + name + "' has shape " + ShapeString(shape) + "; the config asks for " + wanted);
}

// The bytes of a tensor. Fails if the file has it in another type than `dtype`.
Result<std::span<const std::byte>> FindBytes(const ModelFiles& files, const std::string& name,
                                             const char* dtype) {
  SKEIN_ASSIGN_OR_RETURN(const auto bytes, files.Bytes(name));
  const std::string& found = files.Info(name).file_dtype;
  if (found == dtype) return bytes;
  return Status(StatusCode::kUnsupported, "tensor '" + name + "' has dtype " + found +
                                              "; the quantization_config asks for " + dtype);
}

}  // namespace

uint32_t QuantizedMatrix::Words::At(int64_t row, int64_t column, int32_t index) const {
  uint32_t word;
  std::memcpy(&word, data + (row * columns + column) * static_cast<int64_t>(sizeof(word)),
              sizeof(word));
  return word >> (bits * index) & ((1u << bits) - 1);
}

std::vector<std::string> QuantizedMatrix::TensorNames(const ModelFiles& files,
                                                      const std::string& name,
                                                      QuantizationMethod method) {
  const Names names = NamesOf(method);
  const std::string values = name + names.values;
  if (method == Method::kNone || method == Method::kMxfp4 || !files.Has(values)) return {};
  if (names.zeros == nullptr) {
    const std::string& dtype = files.Info(values).file_dtype;
    if (dtype != "I8" && dtype != "F8_E4M3") return {};
  }
  std::vector<std::string> found;
  for (const char* suffix :
       {names.values, names.scales, names.zeros, names.groups, ".weight_scale_inv", ".input_scale",
        ".weight_shape", ".weight_zero_point"}) {
    if (suffix != nullptr && files.Has(name + suffix)) found.push_back(name + suffix);
  }
  return found;
}

Result<QuantizedMatrix> QuantizedMatrix::Open(const ModelFiles& files, const std::string& name,
                                              int32_t n, int32_t k,
                                              const QuantizationConfig& config) {
  QuantizedMatrix matrix;
  matrix.config_ = config;
  matrix.n_ = n;
  matrix.k_ = k;
  switch (config.method) {
    case Method::kGptq:
    case Method::kAwq:
      SKEIN_RETURN_IF_ERROR(matrix.OpenColumns(files, name));
      break;
    case Method::kPacked:
      SKEIN_RETURN_IF_ERROR(matrix.OpenPacked(files, name));
      break;
    case Method::kInteger:
    case Method::kFloat8:
      SKEIN_RETURN_IF_ERROR(matrix.OpenRows(files, name));
      break;
    case Method::kMxfp4:
    case Method::kNone:
      SKEIN_CHECK(false);
  }
  for (const std::string& part : TensorNames(files, name, config.method)) {
    matrix.bytes_ += files.Info(part).end - files.Info(part).begin;
  }
  matrix.ChooseFormat();
  return matrix;
}

Result<QuantizedMatrix::Words> QuantizedMatrix::FindWords(const ModelFiles& files,
                                                          const std::string& name, int64_t rows,
                                                          int64_t columns) const {
  SKEIN_ASSIGN_OR_RETURN(const auto bytes, FindBytes(files, name, "I32"));
  const std::vector<int64_t> wanted = {rows, columns};
  if (files.Info(name).shape != wanted) {
    return WrongShape(name, files.Info(name).shape, ShapeString(wanted));
  }
  return Words{bytes.data(), columns, config_.bits};
}

// qweight packs k in GPTQ, [k / 8, n], and n in AWQ, [k, n / 8]; qzeros is [groups, n / 8].
Status QuantizedMatrix::OpenColumns(const ModelFiles& files, const std::string& name) {
  const bool gptq = config_.method == Method::kGptq;
  const int32_t per_word = kWordBits / config_.bits;
  if (n_ % per_word != 0 || k_ % per_word != 0) {
    return Status(StatusCode::kUnsupported, name + " has the shape " + ShapeString({n_, k_}) +
                                                ", which is no multiple of " +
                                                std::to_string(per_word));
  }
  SKEIN_ASSIGN_OR_RETURN(values_, gptq ? FindWords(files, name + ".qweight", k_ / per_word, n_)
                                       : FindWords(files, name + ".qweight", k_, n_ / per_word));
  SKEIN_RETURN_IF_ERROR(ReadScales(files, name + ".scales", /*transposed=*/true));
  SKEIN_ASSIGN_OR_RETURN(zeros_, FindWords(files, name + ".qzeros", scale_columns_, n_ / per_word));
  return gptq ? ReadGroups(files, name + ".g_idx") : Status::Ok();
}

// The tensors are weight_packed [n, k / 8], weight_scale [n, groups] and weight_zero_point
// [n / 8, groups].
Status QuantizedMatrix::OpenPacked(const ModelFiles& files, const std::string& name) {
  const int32_t per_word = kWordBits / config_.bits;
  SKEIN_ASSIGN_OR_RETURN(values_,
                         FindWords(files, name + ".weight_packed", n_, CeilDiv(k_, per_word)));
  SKEIN_RETURN_IF_ERROR(ReadScales(files, name + ".weight_scale", /*transposed=*/false));
  const std::string zeros = name + ".weight_zero_point";
  if (files.Has(zeros)) {
    SKEIN_ASSIGN_OR_RETURN(zeros_, FindWords(files, zeros, CeilDiv(n_, per_word), scale_columns_));
  }
  return ReadGroups(files, name + ".weight_g_idx");
}

Status QuantizedMatrix::OpenRows(const ModelFiles& files, const std::string& name) {
  const std::string weight = name + ".weight";
  const bool is_float = config_.method == Method::kFloat8;
  SKEIN_ASSIGN_OR_RETURN(const auto bytes, FindBytes(files, weight, is_float ? "F8_E4M3" : "I8"));
  const std::vector<int64_t> wanted = {n_, k_};
  if (files.Info(weight).shape != wanted) {
    return WrongShape(weight, files.Info(weight).shape, ShapeString(wanted));
  }
  elements_ = bytes.data();
  if (files.Has(name + ".weight_zero_point")) {
    return Status(StatusCode::kUnsupported,
                  "tensor '" + name + ".weight_zero_point': int8 is supported without zero points");
  }
  const std::string inverse = name + ".weight_scale_inv";
  return ReadScales(files, files.Has(inverse) ? inverse : name + ".weight_scale", false);
}

// Scales may be one number, [n] or [n, 1], [n, groups], or for blocks [n / rows, k / columns].
// Those of AWQ and GPTQ are transposed: [groups, n].
Status QuantizedMatrix::ReadScales(const ModelFiles& files, const std::string& name,
                                   bool transposed) {
  SKEIN_ASSIGN_OR_RETURN(TensorView view, files.Find(name));
  const std::vector<int64_t> shape = view.shape;
  int64_t rows = shape.empty() ? 1 : shape[0], columns = shape.size() > 1 ? shape[1] : 1;
  if (transposed) std::swap(rows, columns);
  const bool blocks = config_.block_rows > 0;
  const bool fits = blocks ? rows == CeilDiv(n_, config_.block_rows) &&
                                 columns == CeilDiv(k_, config_.block_columns)
                           : (rows == n_ || (rows == 1 && columns == 1 && !transposed)) &&
                                 columns >= 1 && k_ % columns == 0;
  if (shape.size() > 2 || !fits) {
    return WrongShape(name, shape, "one for each row of " + std::to_string(n_) + " and group");
  }
  scale_rows_ = static_cast<int32_t>(rows);
  scale_columns_ = static_cast<int32_t>(columns);
  group_size_ = blocks ? config_.block_columns : k_ / scale_columns_;
  if (view.shape.empty()) view.shape = {1};
  std::vector<float> found(static_cast<size_t>(rows * columns));
  view.ReadRows(0, view.num_rows(), found.data());
  scales_ = found;
  if (!transposed) return Status::Ok();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      scales_[static_cast<size_t>(row * columns + column)] =
          found[static_cast<size_t>(column * rows + row)];
    }
  }
  return Status::Ok();
}

Status QuantizedMatrix::ReadGroups(const ModelFiles& files, const std::string& name) {
  if (!files.Has(name)) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const auto bytes, FindBytes(files, name, "I32"));
  if (files.Info(name).shape != std::vector<int64_t>{k_}) {
    return WrongShape(name, files.Info(name).shape, ShapeString({k_}));
  }
  groups_.resize(static_cast<size_t>(k_));
  std::memcpy(groups_.data(), bytes.data(), bytes.size());
  for (const int32_t group : groups_) {
    if (group < 0 || group >= scale_columns_) {
      return Status(StatusCode::kInvalidArgument, "tensor '" + name + "' holds " +
                                                      std::to_string(group) + "; there are " +
                                                      std::to_string(scale_columns_) + " groups");
    }
  }
  // Many files list the groups although their columns are in order.
  bool in_order = true;
  for (int32_t i = 0; i < k_; ++i) in_order = in_order && groups_[i] == i / group_size_;
  if (in_order) groups_.clear();
  return Status::Ok();
}

// A block has one f16 scale and lies in one group. The zero point of Q4_0 and Q8_0 is always the
// middle.
void QuantizedMatrix::ChooseFormat() {
  if (config_.method == Method::kFloat8) {
    widened_because_ = "FP8 has no integers";
  } else if (!groups_.empty()) {
    widened_because_ = "its columns are in the order of their importance (desc_act)";
  } else if (k_ % kBlockTerms != 0 || group_size_ % kBlockTerms != 0) {
    widened_because_ = "its groups have " + std::to_string(group_size_) +
                       " columns, no multiple of " + std::to_string(kBlockTerms);
  } else {
    for (const float scale : scales_) {
      if (ToFloat(ToF16(scale)) == scale) continue;
      widened_because_ = "its scale " + std::to_string(scale) + " is not a number of f16";
      return;
    }
    const int32_t middle = config_.method == Method::kInteger ? 0 : 1 << (config_.bits - 1);
    bool has_middle = true;
    for (int32_t row = 0; row < n_; ++row) {
      for (int32_t group = 0; group < scale_columns_; ++group) {
        has_middle = has_middle && Zero(row, group) == middle;
      }
    }
    if (config_.bits == 4) {
      format_ = has_middle ? BlockFormat::kQ4_0 : BlockFormat::kInt4;
    } else if (has_middle) {
      format_ = BlockFormat::kQ8_0;
    } else {
      widened_because_ = "its 8 bits have zero points other than 128";
    }
  }
}

float QuantizedMatrix::Scale(int32_t row, int32_t group) const {
  const int32_t rows_of_scale = config_.block_rows > 0 ? config_.block_rows : 1;
  const int32_t scale_row = scale_rows_ == 1 ? 0 : row / rows_of_scale;
  return scales_[static_cast<size_t>(scale_row) * scale_columns_ + group];
}

int32_t QuantizedMatrix::Zero(int32_t row, int32_t group) const {
  const int32_t per_word = kWordBits / config_.bits, middle = 1 << (config_.bits - 1);
  const int32_t in_word = row % per_word, word = row / per_word;
  switch (config_.method) {
    case Method::kGptq: {
      const auto zero = static_cast<int32_t>(zeros_->At(group, word, in_word));
      return config_.zeros_are_one_less ? (zero + 1) % (2 * middle) : zero;
    }
    case Method::kAwq:
      return static_cast<int32_t>(zeros_->At(group, word, kAwqNibbles[in_word]));
    case Method::kPacked:
      return zeros_ ? static_cast<int32_t>(zeros_->At(word, group, in_word)) : middle;
    case Method::kInteger:
    case Method::kFloat8:
    case Method::kMxfp4:
    case Method::kNone:
      break;
  }
  return 0;
}

int32_t QuantizedMatrix::Integer(int32_t row, int32_t i) const {
  const int32_t per_word = kWordBits / config_.bits;
  switch (config_.method) {
    case Method::kGptq:
      return static_cast<int32_t>(values_.At(i / per_word, row, i % per_word));
    case Method::kAwq:
      return static_cast<int32_t>(values_.At(i, row / per_word, kAwqNibbles[row % per_word]));
    case Method::kPacked:
      return static_cast<int32_t>(values_.At(row, i / per_word, i % per_word));
    case Method::kInteger:
    case Method::kFloat8:
    case Method::kMxfp4:
    case Method::kNone:
      break;
  }
  return static_cast<int8_t>(elements_[int64_t{row} * k_ + i]);
}

void QuantizedMatrix::ReadRows(int32_t first_row, int32_t num_rows, float* out) const {
  SKEIN_CHECK(first_row >= 0 && num_rows >= 0 && num_rows <= n_ - first_row);
  const bool is_float = config_.method == Method::kFloat8;
  for (int32_t row = first_row; row < first_row + num_rows; ++row, out += k_) {
    for (int32_t i = 0; i < k_; ++i) {
      const int32_t group = groups_.empty() ? i / group_size_ : groups_[static_cast<size_t>(i)];
      const float element =
          is_float ? kFloat8Table[std::to_integer<uint8_t>(elements_[int64_t{row} * k_ + i])]
                   : static_cast<float>(Integer(row, i) - Zero(row, group));
      out[i] = element * Scale(row, group);
    }
  }
}

void QuantizedMatrix::ReadBlocks(int32_t first_row, int32_t num_rows, std::byte* out) const {
  SKEIN_CHECK(format_ && first_row >= 0 && num_rows >= 0 && num_rows <= n_ - first_row);
  const bool signed_bytes = config_.method == Method::kInteger;
  for (int32_t row = first_row; row < first_row + num_rows; ++row) {
    for (int32_t i = 0; i < k_; i += kBlockTerms) {
      const int32_t group = i / group_size_;
      const F16 scale = ToF16(Scale(row, group));
      std::memcpy(out, &scale.bits, sizeof(scale.bits));
      out += sizeof(scale.bits);
      if (*format_ == BlockFormat::kQ8_0) {
        for (int32_t e = i; e < i + kBlockTerms; ++e) {
          *out++ = static_cast<std::byte>(Integer(row, e) - (signed_bytes ? 0 : 128));
        }
        continue;
      }
      if (*format_ == BlockFormat::kInt4) *out++ = static_cast<std::byte>(Zero(row, group));
      for (int32_t e = i; e < i + kBlockTerms / 2; ++e) {
        *out++ = static_cast<std::byte>(Integer(row, e) | Integer(row, e + kBlockTerms / 2) << 4);
      }
    }
  }
}

}  // namespace skein
