#include <omp.h>

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "bench/kernels/onednn.h"

namespace skein {
namespace {

using dnnl::memory;

struct Descriptions {
  Descriptions(int32_t m, int32_t n, int32_t k, memory::data_type dtype)
      : a({m, k}, dtype, memory::format_tag::ab),
        w({k, n}, dtype, memory::format_tag::any),
        w_rows({k, n}, dtype, memory::format_tag::ba),
        out({m, n}, memory::data_type::f32, memory::format_tag::ab) {}

  dnnl::matmul::primitive_desc ProductIn(const dnnl::engine& engine) const {
    return {dnnl::matmul::desc(a, w, out), engine};
  }

  memory::desc a, w, w_rows, out;
};

// bf16 if the processor has instructions that multiply it. Otherwise f32: on AVX-512 alone oneDNN
// emulates bf16, at a fourth of the speed of f32.
DType BestType() {
  const auto bf16 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);  // a set of features
  const auto here = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (here & bf16) == bf16 ? DType::kBf16 : DType::kF32;
}

void Fill(memory& to, std::span<const Bf16> values, DType dtype) {
  if (dtype == DType::kBf16) {
    std::memcpy(to.get_data_handle(), values.data(), values.size_bytes());
    return;
  }
  auto* out = static_cast<float*>(to.get_data_handle());
  for (size_t i = 0; i < values.size(); ++i) out[i] = ToFloat(values[i]);
}

class Product final : public OneDnnProduct {
 public:
  Product(int32_t m, int32_t n, int32_t k, std::span<const Bf16> a, std::span<const Bf16> w,
          int num_weights)
      : engine_(dnnl::engine::kind::cpu, 0),
        dtype_(BestType()),
        stream_(engine_),
        out_(size_t(m) * n) {
    const Descriptions descriptions(
        m, n, k, dtype_ == DType::kBf16 ? memory::data_type::bf16 : memory::data_type::f32);
    const dnnl::matmul::primitive_desc desc = descriptions.ProductIn(engine_);
    product_ = dnnl::matmul(desc);
    a_ = memory(descriptions.a, engine_);
    Fill(a_, a, dtype_);
    memory plain(descriptions.w_rows, engine_);
    Fill(plain, w, dtype_);
    for (int i = 0; i < num_weights; ++i) {
      weights_.emplace_back(desc.weights_desc(), engine_);
      dnnl::reorder(plain, weights_.back()).execute(stream_, plain, weights_.back());
    }
    result_ = memory(descriptions.out, engine_, out_.data());
    stream_.wait();
  }

  void Run(int weights) override {
    product_.execute(
        stream_,
        {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, weights_[weights]}, {DNNL_ARG_DST, result_}});
    stream_.wait();
  }
  std::span<const float> out() const override { return out_; }
  DType dtype() const override { return dtype_; }

 private:
  dnnl::engine engine_;
  DType dtype_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  memory a_, result_;
  std::vector<memory> weights_;
  std::vector<float> out_;
};

}  // namespace

OneDnnProduct* skein_make_onednn_product(int32_t m, int32_t n, int32_t k, std::span<const Bf16> a,
                                         std::span<const Bf16> w, int num_weights,
                                         int num_threads) {
  omp_set_num_threads(num_threads);
  return new Product(m, n, k, a, w, num_weights);
}

}  // namespace skein
