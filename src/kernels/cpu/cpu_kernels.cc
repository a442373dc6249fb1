#include "kernels/cpu/cpu_kernels.h"

#include <cmath>

#include "base/check.h"
#include "base/fp_mode.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/ops.h"

namespace skein {
namespace {

// VNNI is checked even for kAmx: tests emulate the matrix unit on machines without VNNI, too.
auto BlocksOf512() { return CpuHasVnni() ? Avx512VnniGemmBlocks : Avx2Ops().gemm_blocks; }
auto Int8AttentionOf512() { return CpuHasVnni() ? Avx512VnniAttention : Avx2Ops().attention_int8; }

void GemmBlocksOfAmx(const GemmCall& call) {
  const bool fits = call.m >= kAmxBlockRows && call.w->k() <= kMaxAmxBlockTerms;
  fits ? AmxGemmBlocks(call) : BlocksOf512()(call);
}

CpuOps OpsOf(Isa isa) {
  switch (isa) {
    case Isa::kAmx: {
      CpuOps ops = AmxOps();
      ops.gemm_blocks = GemmBlocksOfAmx;
      ops.attention_int8 = Int8AttentionOf512();
      return ops;
    }
    case Isa::kAvx512Bf16: {
      CpuOps ops = OpsOf(Isa::kAvx512);
      ops.gemm_bf16 = Avx512Bf16Gemm;
      ops.attention_bf16 = Avx512Bf16Attention;
      return ops;
    }
    case Isa::kAvx512Bf16Fma: {
      CpuOps ops = OpsOf(Isa::kAvx512);
      ops.gemm_bf16 = Avx512Bf16FmaGemm;
      ops.attention_bf16 = Avx512Bf16FmaAttention;
      return ops;
    }
    case Isa::kAvx512: {
      CpuOps ops = Avx512Ops();
      ops.gemm_int8 = CpuHasVnni() ? Avx512VnniGemm : Avx2Ops().gemm_int8;
      ops.gemm_blocks = BlocksOf512();
      ops.attention_int8 = Int8AttentionOf512();
      return ops;
    }
    case Isa::kAvxVnni:
      return AvxVnniOps();
    case Isa::kAvx2:
      return Avx2Ops();
    case Isa::kScalar:
      break;
  }
  return ScalarOps();
}

bool IsComputeType(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBf16; }

// Checks the shapes, sets the floating-point mode and calls the instruction set's functions.
class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(Isa isa) : isa_(isa), ops_(OpsOf(isa)) {}

  Isa isa() const override { return isa_; }

  void Gemm(const GemmCall& call) const override {
    SKEIN_CHECK(call.w != nullptr && call.a != nullptr && call.out != nullptr);
    SKEIN_CHECK(call.m >= 1 && call.lda >= call.w->k());
    SKEIN_CHECK(call.n_begin >= 0 && call.n_begin % kPanelCols == 0);
    SKEIN_CHECK(call.out_begin >= 0 && call.out_begin <= call.n_begin);
    SKEIN_CHECK(call.ldo >= call.n_end - call.out_begin);
    SKEIN_CHECK(call.n_begin < call.n_end && call.n_end <= call.w->n());
    SKEIN_CHECK(call.n_end % kPanelCols == 0 || call.n_end == call.w->n());
    SKEIN_CHECK(IsComputeType(call.out_dtype));
    SKEIN_CHECK(!call.add_to_out || (call.out_dtype == DType::kF32 && call.up_begin == 0 &&
                                     call.activation == Activation::kNone));
    SKEIN_CHECK(call.up_begin > 0 || call.activation != Activation::kClampedSwiglu);
    if (call.up_begin != 0) {
      SKEIN_CHECK(call.up_begin % kPanelCols == 0 && call.n_end % kPanelCols == 0);
      SKEIN_CHECK(call.n_end <= call.up_begin && call.n_end <= call.w->n() - call.up_begin);
    }
    SKEIN_CHECK((call.a_scales != nullptr) == (call.w->dtype() == DType::kInt8));
    SKEIN_CHECK((call.a_blocks != nullptr) == (call.w->dtype() == DType::kBlocks));
    SKEIN_CHECK(call.a_blocks == nullptr || call.lda % kBlockTerms == 0);
    if (call.a_tiles) {
      SKEIN_CHECK(NumericClassOf(isa_, call.w->dtype()) == NumericClass::kAmx);
      SKEIN_CHECK(call.lda == call.w->k_padded());
    }
    SKEIN_CHECK(!call.out_tiles || (call.out_dtype == DType::kBf16 && call.ldo % kRowPiece == 0 &&
                                    call.out_begin % kPanelCols == 0));
    const ScopedFpMode fp_mode;
    if (call.w->dtype() == DType::kInt8) return ops_.gemm_int8(call);
    if (call.w->dtype() == DType::kBlocks) return ops_.gemm_blocks(call);
    call.w->dtype() == DType::kBf16 ? ops_.gemm_bf16(call) : ops_.gemm_f32(call);
  }

  void Attention(const AttentionCall& call) const override {
    const KvLayout& layout = *call.layout;
    SKEIN_CHECK(!call.rows.empty() && call.rows.size() <= size_t{kMaxQueryRows});
    SKEIN_CHECK(layout.head_dim >= 1 && layout.head_dim <= kMaxHeadDim);
    const bool int8 = layout.dtype == DType::kInt8;
    const DType dtype = int8 ? call.dtype : layout.dtype;
    SKEIN_CHECK(IsComputeType(dtype) && call.soft_cap >= 0);
    SKEIN_CHECK(call.piece_stride == kRowPiece ||
                NumericClassOf(isa_, dtype) == NumericClass::kAmx);
    for (const AttentionRow& row : call.rows) {
      SKEIN_CHECK(row.q != nullptr && row.out != nullptr && row.block_table != nullptr);
      SKEIN_CHECK(row.num_keys >= 1 && row.num_keys <= row.num_blocks * kKvBlockTokens);
      SKEIN_CHECK(row.window.first >= 0 && row.window.first < row.num_keys);
      SKEIN_CHECK(row.window.first < row.window.end);
      const int32_t first = row.window.first;
      SKEIN_CHECK(row.visible == nullptr || (row.visible[first / 32] >> (first % 32) & 1) != 0);
      SKEIN_CHECK((row.terms == nullptr) == (call.rows.front().terms == nullptr));
    }
    const AttentionArgs args = {
        .rows = call.rows.data(),
        .num_rows = static_cast<int32_t>(call.rows.size()),
        .kv = call.kv,
        .own_kv = call.own_kv,
        .num_blocks = layout.num_blocks,
        .block_bytes = layout.block_stride(),
        .k_bytes = layout.k_bytes(),
        .head_dim = layout.head_dim,
        .head_dim_padded = layout.head_dim_padded(),
        .scale = call.scale,
        .soft_cap = call.soft_cap,
        .piece_stride = call.piece_stride,
        .dtype = dtype,
    };
    const ScopedFpMode fp_mode;
    if (int8) return ops_.attention_int8(args);
    layout.dtype == DType::kBf16 ? ops_.attention_bf16(args) : ops_.attention_f32(args);
  }

  void RmsNorm(const float* x, const float* weight, float eps, int32_t n, void* out,
               DType out_dtype, int64_t piece_stride) const override {
    SKEIN_CHECK(n >= 1 && IsComputeType(out_dtype));
    SKEIN_CHECK(piece_stride == kRowPiece || out_dtype == DType::kBf16);
    const ScopedFpMode fp_mode;
    ops_.rms_norm(x, weight, eps, n, out, out_dtype, piece_stride);
  }

  void LayerNorm(const float* x, const float* weight, const float* bias, float eps, int32_t n,
                 void* out, DType out_dtype) const override {
    SKEIN_CHECK(n >= 1 && IsComputeType(out_dtype));
    const ScopedFpMode fp_mode;
    ops_.layer_norm(x, weight, bias, eps, n, out, out_dtype);
  }

  void Activate(Activation activation, const float* x, int32_t n, void* out,
                DType out_dtype) const override {
    SKEIN_CHECK(n >= 1 && IsComputeType(out_dtype));
    const ScopedFpMode fp_mode;
    ops_.activate(activation, x, n, out, out_dtype);
  }

  void Rotate(const RotateCall& call) const override {
    SKEIN_CHECK(call.head_dim >= 2 && call.head_dim % 2 == 0 && call.head_dim <= kMaxHeadDim);
    SKEIN_CHECK(call.num_heads >= 1 && call.out != call.x && IsComputeType(call.dtype));
    SKEIN_CHECK(call.piece_stride == kRowPiece ||
                (call.dtype == DType::kBf16 && call.head_dim % kRowPiece == 0 &&
                 call.rotary_dim % kRowPiece == 0));
    SKEIN_CHECK(call.rotary_dim >= 0 && call.rotary_dim % 2 == 0);
    SKEIN_CHECK(call.rotary_dim <= call.head_dim);
    const ScopedFpMode fp_mode;
    ops_.rotate(call);
  }

  void SiluMul(const float* gate, const float* up, int32_t n, void* out,
               DType out_dtype) const override {
    SKEIN_CHECK(n >= 1 && IsComputeType(out_dtype));
    const ScopedFpMode fp_mode;
    ops_.silu_mul(gate, up, n, out, out_dtype);
  }

  void SigmoidMul(const float* gate, int32_t n, void* x, DType dtype) const override {
    SKEIN_CHECK(n >= 1 && IsComputeType(dtype));
    const ScopedFpMode fp_mode;
    ops_.sigmoid_mul(gate, n, x, dtype);
  }

  void SoftCap(float* x, int32_t n, float cap) const override {
    SKEIN_CHECK(n >= 1 && cap > 0);
    const ScopedFpMode fp_mode;
    ops_.soft_cap(x, n, cap);
  }

  void Conv(const ConvCall& call) const override {
    SKEIN_CHECK(call.num_tokens >= 1 && call.n >= 1 && call.ldx >= call.n && call.ldw >= call.n);
    const ScopedFpMode fp_mode;
    ops_.conv(call);
  }

  void Delta(const DeltaCall& call) const override {
    SKEIN_CHECK(call.num_tokens >= 1 && call.ld >= kDeltaCols && call.ld >= call.k_dim);
    SKEIN_CHECK(call.k_dim >= 4 && call.k_dim % 4 == 0 && call.k_dim <= kMaxDeltaDim);
    const ScopedFpMode fp_mode;
    ops_.delta(call);
  }

  void Convert(const float* x, int32_t n, void* out, DType out_dtype) const override {
    SKEIN_CHECK(n >= 1 && IsComputeType(out_dtype));
    const ScopedFpMode fp_mode;
    ops_.convert(x, n, out, out_dtype);
  }

  float Quantize(const void* x, DType dtype, int32_t n, int8_t* out) const override {
    SKEIN_CHECK(n >= 1 && IsComputeType(dtype));
    const ScopedFpMode fp_mode;
    return ops_.quantize(x, dtype, n, out);
  }

  void QuantizeBlocks(const void* x, DType dtype, int32_t n, int8_t* out,
                      RowBlock* blocks) const override {
    SKEIN_CHECK(n >= 1 && n % kBlockTerms == 0 && IsComputeType(dtype));
    const ScopedFpMode fp_mode;
    ops_.quantize_blocks(x, dtype, n, out, blocks);
  }

  Largest FindLargest(const float* x, int32_t n, float* group_max) const override {
    SKEIN_CHECK(n >= 1);
    const ScopedFpMode fp_mode;
    return ops_.find_largest(x, n, group_max);
  }

  float LogSumExp(const float* x, float max, int32_t n) const override {
    SKEIN_CHECK(n >= 1 && std::isfinite(max));
    const ScopedFpMode fp_mode;
    // The logarithm is computed in double: the last bit of the library's result, which may vary, is
    // rounded away.
    return static_cast<float>(double{max} + std::log(double{ops_.sum_exp(x, max, n)}));
  }

  void ExpShifted(const float* x, float shift, int32_t n, float* out) const override {
    SKEIN_CHECK(n >= 1);
    const ScopedFpMode fp_mode;
    ops_.exp_shifted(x, shift, n, out);
  }

  void Weigh(const float* x, float max, float temperature, int32_t n, float* weights,
             double* group_sums) const override {
    SKEIN_CHECK(n >= 1 && std::isfinite(max));
    SKEIN_CHECK(std::isnormal(temperature) && temperature > 0.0f);
    const ScopedFpMode fp_mode;
    ops_.weigh(x, max, temperature, n, weights, group_sums);
  }

  int32_t FindAtLeast(const float* x, int32_t n, float floor, const float* group_max,
                      int32_t* ids) const override {
    SKEIN_CHECK(n >= 1);
    const ScopedFpMode fp_mode;
    return ops_.find_at_least(x, n, floor, group_max, ids);
  }

  int32_t RankOf(const float* x, int32_t n, int32_t index) const override {
    SKEIN_CHECK(index >= 0 && index < n);
    const ScopedFpMode fp_mode;
    return ops_.rank_of(x, n, index);
  }

 private:
  const Isa isa_;
  const CpuOps ops_;
};

}  // namespace

std::unique_ptr<Kernels> MakeCpuKernels(Isa isa) { return std::make_unique<CpuKernels>(isa); }

}  // namespace skein
