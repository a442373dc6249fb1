#include "kernels/packed_weight.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/convert.h"
#include "kernels/quantize.h"

namespace skein {
namespace {

constexpr int32_t kTileRowBytes = 64;  // of the matrix unit
constexpr int32_t kQuad = 4;           // elements of k that are adjacent in int8

int32_t RoundUp(int32_t x, int32_t unit) { return (x + unit - 1) / unit * unit; }

// The index in a panel of element i of the panel's row `column`.
template <typename T>
size_t IndexInPanel(int32_t column, int32_t i);
template <>
size_t IndexInPanel<float>(int32_t column, int32_t i) {
  return size_t(i) * kPanelCols + column;
}
template <>
size_t IndexInPanel<Bf16>(int32_t column, int32_t i) {
  return (size_t(i / 2) * kPanelCols + column) * 2 + i % 2;
}

template <>
size_t IndexInPanel<int8_t>(int32_t column, int32_t i) {
  return (size_t(i / kQuad) * kPanelCols + column) * kQuad + i % kQuad;
}

float ToFloat(float x) { return x; }
float ToFloat(int8_t x) { return x; }

int32_t PadOf(DType dtype) { return dtype == DType::kInt8 ? kTileRowBytes : kTileRowBytes / 2; }

template <typename T>
T LoadElement(const std::byte* from, size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

// Converts elements of a matrix to elements of a panel. Elements of the same type keep their bits,
// even NaN and denormals.
template <typename To, typename From>
void ConvertElements(const std::byte* from, int32_t count, To* to) {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, from, count * sizeof(To));
  } else if constexpr (std::is_same_v<To, Bf16>) {
    RoundToBf16(from, count, to);
  } else {
    Widen(from, DType::kBf16, count, to);
  }
}

// Packs src [k] as row `column` of a panel.
template <typename To, typename From>
void PackRow(int32_t column, int32_t k, const std::byte* src, std::byte* panel) {
  constexpr int32_t kElements = 64;
  for (int32_t first = 0; first < k; first += kElements) {
    const int32_t count = std::min(kElements, k - first);
    To elements[kElements];
    ConvertElements<To, From>(src + first * sizeof(From), count, elements);
    for (int32_t i = 0; i < count; ++i) {
      std::memcpy(panel + IndexInPanel<To>(column, first + i) * sizeof(To), elements + i,
                  sizeof(To));
    }
  }
}

// Packs a whole panel from src [kPanelCols, k], a few elements of each row at a time. So the
// written part stays in the first-level cache, and every cache line of the source is read once.
template <typename To, typename From>
void PackPanel(int32_t k, const std::byte* src, std::byte* panel) {
  constexpr int32_t kWords = 16;  // words of 32 bits: one f32, or a pair of bf16
  constexpr int32_t kPerWord = sizeof(uint32_t) / sizeof(To);
  const int32_t num_words = k / kPerWord;
  for (int32_t first = 0; first < num_words; first += kWords) {
    const int32_t count = std::min(kWords, num_words - first);
    std::byte* out = panel + size_t(first) * kPanelCols * sizeof(uint32_t);
    for (int32_t column = 0; column < kPanelCols; ++column) {
      const std::byte* row = src + (size_t(column) * k + first * kPerWord) * sizeof(From);
      To converted[kWords * kPerWord];
      const std::byte* words = row;
      if constexpr (!std::is_same_v<To, From>) {
        ConvertElements<To, From>(row, count * kPerWord, converted);
        words = reinterpret_cast<const std::byte*>(converted);
      }
      for (int32_t word = 0; word < count; ++word) {
        std::memcpy(out + (word * kPanelCols + column) * sizeof(uint32_t),
                    words + word * sizeof(uint32_t), sizeof(uint32_t));
      }
    }
  }
  if (k % kPerWord == 0) return;
  for (int32_t column = 0; column < kPanelCols; ++column) {  // the half pair at the end of an odd k
    To value;
    ConvertElements<To, From>(src + (size_t(column) * k + k - 1) * sizeof(From), 1, &value);
    std::memcpy(panel + IndexInPanel<To>(column, k - 1) * sizeof(To), &value, sizeof(To));
  }
}

// Packs rows [row_begin, row_begin + num_rows) of the panels from src [num_rows, k].
template <typename To, typename From>
void PackRowsAs(int32_t row_begin, int32_t num_rows, int32_t k, const std::byte* src,
                std::byte* panels, size_t panel_bytes) {
  const size_t row_bytes = size_t(k) * sizeof(From);
  for (int32_t r = 0; r < num_rows;) {
    const int32_t column = (row_begin + r) % kPanelCols;
    std::byte* panel = panels + (row_begin + r) / kPanelCols * panel_bytes;
    if (column == 0 && num_rows - r >= kPanelCols) {
      PackPanel<To, From>(k, src + r * row_bytes, panel);
      r += kPanelCols;
    } else {
      PackRow<To, From>(column, k, src + r * row_bytes, panel);
      ++r;
    }
  }
}

template <typename T>
void UnpackRowAs(const std::byte* panel, int32_t column, int32_t k, float* out) {
  for (int32_t i = 0; i < k; ++i) {
    out[i] = ToFloat(LoadElement<T>(panel, IndexInPanel<T>(column, i)));
  }
}

}  // namespace

PackedWeight::PackedWeight(int32_t n, int32_t k, DType dtype)
    : n_(n), k_(k), k_padded_(RoundUp(k, PadOf(dtype))), dtype_(dtype) {
  SKEIN_CHECK(n >= 1 && k >= 1);
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kInt8);
  const int32_t n_padded = RoundUp(n, kPanelCols);
  panel_bytes_ = size_t(k_padded_) * kPanelCols * SizeOf(dtype);
  buffer_ = AlignedBuffer(n_padded / kPanelCols * panel_bytes_);
  if (dtype != DType::kInt8) return;
  SKEIN_CHECK(k <= kMaxInt8Terms);
  scales_.resize(n_padded);
  offsets_.resize(n_padded);
}

PackedWeight::PackedWeight(int32_t n, int32_t k, std::vector<BlockFormat> formats)
    : n_(n), k_(k), k_padded_(k), dtype_(DType::kBlocks) {
  SKEIN_CHECK(n >= 1 && k >= 1 && k % kBlockTerms == 0);
  SKEIN_CHECK(std::ssize(formats) == RoundUp(n, kPanelCols) / kPanelCols);
  size_t end = 0;
  for (const BlockFormat format : formats) {
    const size_t scales = end + PanelValueBytes(format, k);
    places_.push_back({format, end, scales});
    end = (scales + PanelScaleBytes(format, k) + 63) / 64 * 64;
  }
  buffer_ = AlignedBuffer(end);
}

size_t PackedWeight::bytes() const {
  const size_t panel_bytes =
      copies_.empty() ? buffer_.size() : copies_.size() * copies_.front().size();
  return panel_bytes + scales_.size() * sizeof(float) + offsets_.size() * sizeof(int32_t) +
         places_.size() * sizeof(PanelPlace);
}

Status PackedWeight::Interleave(const std::vector<NumaNode>& nodes) {
  if (buffer_.size() == 0) return Status::Ok();
  // Fresh pages: the system does not move every page that is written already.
  AlignedBuffer pages(buffer_.size());
  SKEIN_RETURN_IF_ERROR(InterleavePages(pages.data(), pages.size(), nodes));
  SKEIN_RETURN_IF_ERROR(OnEachNode(nodes, [&](int32_t index) {
    const size_t begin = pages.size() * index / nodes.size();
    const size_t end = pages.size() * (index + 1) / nodes.size();
    std::memcpy(pages.data() + begin, buffer_.data() + begin, end - begin);
  }));
  buffer_ = std::move(pages);
  return Status::Ok();
}

Status PackedWeight::CopyToNodes(const std::vector<NumaNode>& nodes) {
  if (buffer_.size() == 0) return Status::Ok();
  std::vector<AlignedBuffer> copies;
  for (size_t i = 0; i < nodes.size(); ++i) copies.emplace_back(buffer_.size());
  SKEIN_RETURN_IF_ERROR(OnEachNode(nodes, [&](int32_t index) {
    std::memcpy(copies[index].data(), buffer_.data(), buffer_.size());
  }));
  copies_ = std::move(copies);
  buffer_ = AlignedBuffer();
  return Status::Ok();
}

void PackedWeight::PackBlocks(int32_t row_begin, int32_t num_rows, const std::byte* src,
                              BlockFormat format) {
  SKEIN_CHECK(row_begin >= 0 && num_rows >= 0 && num_rows <= n_ - row_begin);
  const BlockTraits& traits = TraitsOf(format);
  const size_t row_bytes = size_t(k_ / traits.file_elements) * traits.file_bytes;
  const int32_t row_end = row_begin + num_rows;
  for (int32_t row = row_begin; row < row_end;) {
    const PanelPlace& place = places_[row / kPanelCols];
    SKEIN_CHECK(place.format == format);
    const int32_t column = row % kPanelCols;
    const int32_t count = std::min(row_end - row, kPanelCols - column);
    PackBlockRows(format, src, count, k_, column, buffer_.data() + place.values,
                  buffer_.data() + place.scales);
    row += count;
    src += count * row_bytes;
  }
}

void PackedWeight::UnpackBlockRow(int32_t row, float* out) const {
  const BlockPanel panel = block_panel(row / kPanelCols);
  const bool has_minimum = TraitsOf(panel.format).has_minimum();
  for (int32_t block = 0; block < k_ / kBlockTerms; ++block) {
    const BlockTerms terms =
        ReadBlockTerms(panel.format, panel.values, panel.scales, row % kPanelCols, block);
    for (int32_t i = 0; i < kBlockTerms; ++i) {
      const float scaled = terms.scales[i / 16] * terms.values[i];
      out[kBlockTerms * block + i] = has_minimum ? scaled + terms.minimum : scaled;
    }
  }
}

void PackedWeight::PackRows(int32_t row_begin, int32_t num_rows, const void* src, DType src_dtype) {
  SKEIN_CHECK(row_begin >= 0 && num_rows >= 0 && num_rows <= n_ - row_begin);
  SKEIN_CHECK(src_dtype == DType::kF32 || src_dtype == DType::kBf16);
  const auto* from = static_cast<const std::byte*>(src);
  if (dtype_ == DType::kInt8) {
    std::vector<float> values(k_);
    std::vector<int8_t> quantized(RoundUp(k_, kQuad));
    for (int32_t r = 0; r < num_rows; ++r) {
      Widen(from + size_t(r) * k_ * SizeOf(src_dtype), src_dtype, k_, values.data());
      PackInt8(row_begin + r, values.data(), quantized.data());
    }
    return;
  }
  const auto pack = dtype_ == DType::kF32      ? src_dtype == DType::kF32 ? PackRowsAs<float, float>
                                                                          : PackRowsAs<float, Bf16>
                         : src_dtype == DType::kF32 ? PackRowsAs<Bf16, float>
                                               : PackRowsAs<Bf16, Bf16>;
  pack(row_begin, num_rows, k_, from, buffer_.data(), panel_bytes_);
}

// values [k]; quantized: memory for k elements, rounded up to whole quads, with zeros from k on.
void PackedWeight::PackInt8(int32_t row, const float* values, int8_t* quantized) {
  scales_[row] = QuantizeRow(values, k_, quantized);
  offsets_[row] = -128 * std::accumulate(quantized, quantized + k_, int32_t{0});
  std::byte* panel = buffer_.data() + row / kPanelCols * panel_bytes_;
  for (int32_t i = 0; i < k_; i += kQuad) {
    std::memcpy(panel + IndexInPanel<int8_t>(row % kPanelCols, i), quantized + i, kQuad);
  }
}

void PackedWeight::UnpackRow(int32_t row, float* out) const {
  SKEIN_CHECK(row >= 0 && row < n_);
  if (dtype_ == DType::kBlocks) return UnpackBlockRow(row, out);
  const auto unpack = dtype_ == DType::kF32    ? UnpackRowAs<float>
                      : dtype_ == DType::kBf16 ? UnpackRowAs<Bf16>
                                               : UnpackRowAs<int8_t>;
  unpack(panel(row / kPanelCols), row % kPanelCols, k_, out);
  if (dtype_ != DType::kInt8) return;
  for (int32_t i = 0; i < k_; ++i) out[i] *= scales_[row];
}

}  // namespace skein
