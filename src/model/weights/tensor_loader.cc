#include "model/weights/tensor_loader.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/ceil_div.h"
#include "base/convert.h"
#include "kernels/kernels.h"
#include "model/weights/fused_expert.h"

namespace skein {
namespace {

// The format of each panel; nullopt if the blocks cannot be kept. All tensors must have blocks that
// the kernels multiply, and no panel may have rows of two tensors.
std::optional<std::vector<BlockFormat>> KeptFormats(const std::vector<RowSource>& sources,
                                                    int32_t n, int32_t k) {
  std::vector<std::optional<BlockFormat>> found(CeilDiv(n, kPanelCols));
  for (const RowSource& source : sources) {
    if (source.row_begin % kPanelCols != 0) return std::nullopt;
    const std::optional<BlockFormat> format = source.format();
    if (!format || k % TraitsOf(*format).file_elements != 0) return std::nullopt;
    const int32_t first = source.row_begin / kPanelCols;
    for (int32_t i = 0; i < CeilDiv(source.num_rows, kPanelCols); ++i) {
      if (found[first + i]) return std::nullopt;
      found[first + i] = format;
    }
  }
  std::vector<BlockFormat> formats;
  for (const auto& format : found) formats.push_back(format.value_or(BlockFormat::kQ4_0));
  return formats;
}

}  // namespace

TensorLoader::TensorLoader(const ModelFiles& files, const QuantizationConfig& quantization,
                           WeightTypes types, ThreadTeam& team, const LoadProgress& progress)
    : files_(files),
      quantization_(quantization),
      dtype_(types.compute),
      matrix_dtype_(types.matrices),
      block_format_(types.block_format),
      keep_blocks_(types.keep_blocks),
      team_(team),
      progress_(progress) {}

Result<TensorView> TensorLoader::Find(const std::string& name, const std::vector<int64_t>& shape) {
  known_.insert(name);
  // A GGUF file has other names, which Find tells.
  if (!files_.Has(name) && !files_.is_gguf()) {
    return Status(StatusCode::kInvalidArgument, "the model lacks the tensor " + name +
                                                    ", expected of shape " + ShapeString(shape));
  }
  SKEIN_ASSIGN_OR_RETURN(TensorView view, files_.Find(name, shape));
  if (checking_) bytes_total_ += static_cast<int64_t>(view.bytes);
  return view;
}

Status TensorLoader::Vector(const std::string& name, int32_t size, std::vector<float>& out,
                            float offset) {
  SKEIN_RETURN_IF_ERROR(Tensor(name, {size}, out));
  if (offset != 0) {
    for (float& element : out) element += offset;
  }
  return Status::Ok();
}

Status TensorLoader::Tensor(const std::string& name, const std::vector<int64_t>& shape,
                            std::vector<float>& out) {
  SKEIN_ASSIGN_OR_RETURN(const TensorView view, Find(name, shape));
  if (checking_) return Status::Ok();
  out.resize(static_cast<size_t>(view.num_rows() * view.row_elements()));
  view.ReadRows(0, view.num_rows(), out.data());
  Report(view.bytes);
  return Status::Ok();
}

Status TensorLoader::Bias(const std::vector<TensorPart>& parts, int32_t size,
                          std::vector<float>& out) {
  std::vector<float> all(size, 0.0f);
  for (const TensorPart& part : parts) {
    std::vector<float> one;
    const std::string fused = FusedExpert::BiasName(files_, part.name);
    if (fused.empty()) {
      SKEIN_RETURN_IF_ERROR(Vector(part.name + ".bias", part.RowsOfTensor(), one));
    } else {
      known_.insert(fused);
      SKEIN_ASSIGN_OR_RETURN(one, FusedExpert::ReadBias(files_, part.name, part.RowsOfTensor()));
    }
    if (checking_) continue;
    std::copy_n(one.begin() + part.tensor_row, part.num_rows, all.begin() + part.row_begin);
  }
  if (!checking_) out = std::move(all);
  return Status::Ok();
}

Status TensorLoader::Matrix(const std::vector<TensorPart>& parts, int32_t n, int32_t k,
                            PackedWeight& out) {
  SKEIN_ASSIGN_OR_RETURN(const std::vector<RowSource> sources, FindRows(parts, k));
  if (keep_blocks_) {
    auto formats = KeptFormats(sources, n, k);
    CountQuantized(sources, !formats);
    if (!formats) return PlainMatrix(parts, n, k, out);
    matrix_dtype_ = DType::kBlocks;
    return Fill(
        sources, [&] { return PackedWeight(n, k, *std::move(formats)); }, out);
  }
  if (matrix_dtype_ != DType::kBlocks) return MatrixAs(matrix_dtype_, parts, n, k, out);
  if (k % kBlockTerms != 0) return PlainMatrix(parts, n, k, out);
  std::vector<BlockFormat> formats(CeilDiv(n, kPanelCols), block_format_);
  return Fill(
      sources, [&] { return PackedWeight(n, k, std::move(formats)); }, out);
}

void TensorLoader::CountQuantized(const std::vector<RowSource>& sources, bool widened) {
  if (checking_) return;
  for (const RowSource& source : sources) {
    if (!source.stored || !source.stored->is_quantized()) continue;
    ++widening_.num_quantized;
    if (!widened) continue;
    ++widening_.num_widened;
    if (widening_.because.empty()) widening_.because = source.stored->widened_because();
  }
}

Status TensorLoader::PlainMatrix(const std::vector<TensorPart>& parts, int32_t n, int32_t k,
                                 PackedWeight& out) {
  return MatrixAs(dtype_, parts, n, k, out);
}

Status TensorLoader::MatrixAs(DType dtype, const std::vector<TensorPart>& parts, int32_t n,
                              int32_t k, PackedWeight& out) {
  SKEIN_ASSIGN_OR_RETURN(const std::vector<RowSource> sources, FindRows(parts, k));
  return Fill(
      sources, [&] { return PackedWeight(n, k, dtype); }, out);
}

Status TensorLoader::Linear(const std::vector<TensorPart>& parts, int32_t n, int32_t k,
                            PackedWeight& weight, std::vector<float>& bias, bool has_bias) {
  SKEIN_RETURN_IF_ERROR(PlainMatrix(parts, n, k, weight));
  return has_bias ? Bias(parts, n, bias) : Status::Ok();
}

Status TensorLoader::Product(std::span<const float> x, const std::string& name, int32_t n,
                             int32_t k, std::vector<float>& out) {
  constexpr int32_t kRowsPerTicket = 16;
  PackedWeight weight;
  std::vector<float> bias;
  SKEIN_RETURN_IF_ERROR(MatrixAs(DType::kF32, {{name, 0, n}}, n, k, weight));
  SKEIN_RETURN_IF_ERROR(Bias({{name, 0, n}}, n, bias));
  if (checking_) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<Kernels> kernels, MakeKernels(isa));
  const auto m = static_cast<int32_t>(x.size()) / k;
  out.resize(size_t(m) * n);
  const auto multiply = [&](int ticket, int) {
    const int32_t row = ticket * kRowsPerTicket;
    kernels->Gemm({.a = x.data() + size_t(row) * k,
                   .lda = k,
                   .m = std::min(kRowsPerTicket, m - row),
                   .w = &weight,
                   .n_end = n,
                   .bias = bias.data(),
                   .out = out.data() + size_t(row) * n,
                   .ldo = n});
  };
  team_.Run(0, CeilDiv(m, kRowsPerTicket), multiply);
  return Status::Ok();
}

Status TensorLoader::FloatTable(const std::string& name, int32_t begin, int32_t count,
                                int32_t width, std::vector<float>& out) {
  SKEIN_ASSIGN_OR_RETURN(const TensorView view, Find(name + ".weight", {begin + count, width}));
  if (checking_) return Status::Ok();
  out.resize(size_t(count) * width);
  view.ReadRows(begin, count, out.data());
  Report(view.bytes);
  return Status::Ok();
}

Result<std::vector<RowSource>> TensorLoader::FindRows(const std::vector<TensorPart>& parts,
                                                      int32_t k) {
  std::vector<RowSource> sources;
  for (const TensorPart& part : parts) {
    RowSource source = {{}, nullptr, part.row_begin, part.num_rows, part.tensor_row};
    std::vector<std::string> tensors;
    SKEIN_ASSIGN_OR_RETURN(source.stored, OpenStoredMatrix(files_, part.name, part.RowsOfTensor(),
                                                           k, quantization_, &tensors));
    known_.insert(tensors.begin(), tensors.end());
    if (source.stored == nullptr) {
      const std::string name = part.name + ".weight";
      known_.insert(name);
      if (!files_.Has(name)) return Find(name, {part.RowsOfTensor(), k}).status();
      SKEIN_ASSIGN_OR_RETURN(source.view, files_.Find(name, {part.RowsOfTensor(), k}));
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

template <typename Make>
Status TensorLoader::Fill(const std::vector<RowSource>& sources, const Make& make,
                          PackedWeight& out) {
  if (checking_) {
    for (const RowSource& source : sources) bytes_total_ += static_cast<int64_t>(source.bytes());
    return Status::Ok();
  }
  out = make();
  Pack(sources, out);
  for (const RowSource& source : sources) {
    ModelFiles::ReleasePages(source.view);
    Report(source.bytes());
  }
  return Status::Ok();
}

// A ticket fills whole panels, from any number of tensors, so that no two threads share a panel.
void TensorLoader::Pack(const std::vector<RowSource>& sources, PackedWeight& out) {
  constexpr int32_t kRowsPerTicket = 4 * kPanelCols;
  const auto pack_rows = [&](int ticket, int) {
    const int32_t begin = ticket * kRowsPerTicket;
    const int32_t end = std::min(begin + kRowsPerTicket, out.n());
    for (const RowSource& source : sources) {
      const int32_t first = std::max(begin, source.row_begin);
      const int32_t last = std::min(end, source.row_begin + source.num_rows);
      if (first < last) source.Pack(first, last - first, keep_blocks_, &out);
    }
  };
  team_.Run(0, CeilDiv(out.n(), kRowsPerTicket), pack_rows);
}

Status TensorLoader::Embedding(const std::string& name, ModelWeights* weights) {
  const ModelConfig& config = weights->config;
  SKEIN_ASSIGN_OR_RETURN(const TensorView view,
                         Find(name, {config.vocab_size, config.hidden_size}));
  if (checking_) return Status::Ok();
  if (keep_blocks_ && view.blocks != nullptr) {
    weights->embedding_blocks = view.blocks;
    CopyBytes({view.data, view.bytes}, &weights->embedding);
  } else {
    CopyEmbedding(view, weights);
  }
  ModelFiles::ReleasePages(view);
  Report(view.bytes);
  return Status::Ok();
}

void TensorLoader::CopyBytes(std::span<const std::byte> from, AlignedBuffer* to) {
  constexpr size_t kBytesPerTicket = size_t{4} << 20;
  *to = AlignedBuffer(from.size());
  const auto copy = [&](int ticket, int) {
    const size_t begin = ticket * kBytesPerTicket;
    std::memcpy(to->data() + begin, from.data() + begin,
                std::min(kBytesPerTicket, from.size() - begin));
  };
  team_.Run(0, static_cast<int>(CeilDiv(from.size(), kBytesPerTicket)), copy);
}

void TensorLoader::CopyEmbedding(const TensorView& view, ModelWeights* weights) {
  constexpr int32_t kRowsPerTicket = 64;
  const size_t hidden = weights->config.hidden_size, row_bytes = hidden * SizeOf(dtype_);
  const int32_t vocab = weights->config.vocab_size;
  weights->embedding = AlignedBuffer(vocab * row_bytes);
  const auto copy_rows = [&](int ticket, int) {
    std::vector<float> wide(hidden);
    const int32_t begin = ticket * kRowsPerTicket;
    for (int32_t row = begin; row < std::min(begin + kRowsPerTicket, vocab); ++row) {
      std::byte* const to = weights->embedding.data() + row * row_bytes;
      if (view.dtype == dtype_) {
        std::memcpy(to, view.Row(row), row_bytes);
      } else if (dtype_ == DType::kF32) {
        view.ReadRows(row, 1, reinterpret_cast<float*>(to));
      } else {
        view.ReadRows(row, 1, wide.data());
        RoundToBf16(reinterpret_cast<const std::byte*>(wide.data()), hidden,
                    reinterpret_cast<Bf16*>(to));
      }
    }
  };
  team_.Run(0, CeilDiv(vocab, kRowsPerTicket), copy_rows);
}

void TensorLoader::Report(size_t bytes) {
  bytes_done_ += static_cast<int64_t>(bytes);
  if (progress_) progress_(bytes_done_, bytes_total_);
}

}  // namespace skein
