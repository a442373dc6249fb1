#include "apps/bench_onednn.h"

#ifdef SKEIN_HAVE_ONEDNN

#include <omp.h>

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace skein {
namespace {

using dnnl::memory;

class Product final : public OneDnnProduct {
 public:
  Product(int32_t m, int32_t n, int32_t k, std::span<const Bf16> a, std::span<const Bf16> w,
          int num_weights)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), out_(size_t(m) * n) {
    const memory::desc a_desc({m, k}, memory::data_type::bf16, memory::format_tag::ab);
    const memory::desc w_any({k, n}, memory::data_type::bf16, memory::format_tag::any);
    const memory::desc w_plain({k, n}, memory::data_type::bf16, memory::format_tag::ba);
    const memory::desc out_desc({m, n}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a_desc, w_any, out_desc), engine_);
    product_ = dnnl::matmul(desc);
    a_ = memory(a_desc, engine_);
    std::memcpy(a_.get_data_handle(), a.data(), a.size_bytes());
    memory plain(w_plain, engine_);
    std::memcpy(plain.get_data_handle(), w.data(), w.size_bytes());
    for (int i = 0; i < num_weights; ++i) {
      weights_.emplace_back(desc.weights_desc(), engine_);
      dnnl::reorder(plain, weights_.back()).execute(stream_, plain, weights_.back());
    }
    result_ = memory(out_desc, engine_, out_.data());
    stream_.wait();
  }

  void Run(int weights) override {
    product_.execute(
        stream_,
        {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, weights_[weights]}, {DNNL_ARG_DST, result_}});
    stream_.wait();
  }
  std::span<const float> out() const override { return out_; }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  memory a_, result_;
  std::vector<memory> weights_;
  std::vector<float> out_;
};

}  // namespace

std::unique_ptr<OneDnnProduct> OneDnnProduct::Make(int32_t m, int32_t n, int32_t k,
                                                   std::span<const Bf16> a, std::span<const Bf16> w,
                                                   int num_weights, int num_threads) {
  omp_set_num_threads(num_threads);
  return std::make_unique<Product>(m, n, k, a, w, num_weights);
}

}  // namespace skein

#else

namespace skein {

std::unique_ptr<OneDnnProduct> OneDnnProduct::Make(int32_t, int32_t, int32_t, std::span<const Bf16>,
                                                   std::span<const Bf16>, int, int) {
  return nullptr;
}

}  // namespace skein

#endif
