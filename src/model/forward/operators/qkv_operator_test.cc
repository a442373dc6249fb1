// The product for q, k and v is cut into tickets by columns, at heads. Wherever a ticket begins and
// ends, each head is stored in its place, with the bits of the uncut product.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "testing/isas.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;
using testing::SameBits;

// Two rows of different lengths, so that the second row begins inside a ticket.
struct Rows {
  std::vector<std::vector<int32_t>> tokens, blocks;
};

// The parts of the product in which columns [begin, end) lie: q is [0, k), k is [k, v), v follows.
std::set<std::string> PlacesOf(int32_t begin, int32_t end, int32_t k, int32_t v) {
  std::set<std::string> places;
  if (begin > 0 && begin < k) places.insert("begins in q");
  if (begin == k) places.insert("begins at k");
  if (begin > k && begin < v) places.insert("begins in k");
  if (begin == v) places.insert("begins at v");
  if (begin > v) places.insert("begins in v");
  if (begin < k && end > k) places.insert("goes over into k");
  if (begin < v && end > v) places.insert("goes over into v");
  return places;
}

class ForwardQkvTest : public ::testing::TestWithParam<std::tuple<const char*, const char*, Isa>> {
 protected:
  static std::unique_ptr<LoadedModel> Load(int threads) {
    const auto& [name, dtype, isa] = GetParam();
    return std::make_unique<LoadedModel>(
        std::string(SKEIN_SOURCE_DIR "/tests/data/models/") + name,
        LoadedModel::Options{.dtype = dtype, .isa = isa, .threads = threads, .num_blocks = 16});
  }

  static Rows MakeRows(int32_t length, int32_t vocab) {
    std::mt19937_64 random(length);
    Rows rows;
    for (const int32_t size : {5, length}) {
      std::vector<int32_t>& tokens = rows.tokens.emplace_back(size);
      for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocab);
      rows.blocks.push_back(Blocks(static_cast<int32_t>(8 * rows.blocks.size()), size));
    }
    return rows;
  }

  // The logits after every token: in one pass, or with a pass for each token.
  static std::vector<Logits> Run(const LoadedModel& model, const Rows& rows, bool one_by_one) {
    ForwardPass pass(model.context(), {.max_tokens = 256});
    std::vector<Logits> all;
    for (size_t r = 0; r < rows.tokens.size(); ++r) {
      const std::span tokens = rows.tokens[r];
      if (!one_by_one) {
        pass.batch().AddRow(tokens, 0, rows.blocks[r], false);
        continue;
      }
      for (size_t i = 0; i < tokens.size(); ++i) {
        pass.batch().Clear();
        pass.batch().AddRow(tokens.subspan(i, 1), static_cast<int32_t>(i), rows.blocks[r], true);
        all.push_back(testing::RunPass(&pass, model.vocab()).at(0));
      }
    }
    if (one_by_one) return all;
    for (int32_t i = 0; i < pass.batch().num_tokens(); ++i) pass.batch().logit_tokens.push_back(i);
    return testing::RunPass(&pass, model.vocab());
  }

  // The keys and values of the first layer by definition (docs/numerics.md), token by token.
  static AlignedBuffer FirstLayer(const LoadedModel& model, const std::vector<int32_t>& tokens,
                                  const KvLayout& layout) {
    const ForwardContext& context = model.context();
    const LayerWeights& layer = model.weights().layers[0];
    const ModelConfig& c = model.config();
    const auto weight = [](const std::vector<float>& w) { return w.empty() ? nullptr : w.data(); };
    const RopeAngles& rope = *(c.IsLocal(0) ? context.local_rope : context.rope);
    // Gemma scales the embedding, in the compute type.
    const float exact = c.decoder.embedding_scale;
    const float scale = layout.dtype == DType::kBf16 ? ToFloat(ToBf16(exact)) : exact;
    AlignedBuffer kv(layout.total_bytes());
    std::vector<float> x(c.hidden_size), h(c.hidden_size), sums(layer.qkv.n());
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto position = static_cast<int32_t>(i);
      model.weights().EmbeddingRow(tokens[i], x.data());
      for (float& element : x) element *= scale;
      context.kernels->RmsNorm(x.data(), layer.attn_norm.data(), c.decoder.rms_norm_eps,
                               c.hidden_size, h.data(), layout.dtype, kRowPiece);
      context.kernels->Gemm({.a = h.data(),
                             .lda = c.hidden_size,
                             .m = 1,
                             .w = &layer.qkv,
                             .n_end = layer.qkv.n(),
                             .bias = weight(layer.qkv_bias),
                             .out = sums.data(),
                             .ldo = layer.qkv.n()});
      for (int32_t head = 0; head < c.num_kv_heads; ++head) {
        alignas(64) std::byte rounded[kMaxHeadDim * sizeof(float)];
        const float* k = sums.data() + (c.num_heads + head) * c.head_dim;
        std::byte* block = kv.data() + layout.Offset(0, position / kKvBlockTokens, head);
        context.kernels->Rotate({.x = k,
                                 .norm = weight(layer.k_norm),
                                 .eps = c.decoder.rms_norm_eps,
                                 .cos = rope.cos(position),
                                 .sin = rope.sin(position),
                                 .num_heads = 1,
                                 .head_dim = c.head_dim,
                                 .out = rounded,
                                 .dtype = layout.dtype});
        layout.StoreK(block, position % kKvBlockTokens, rounded);
        context.kernels->Convert(k + c.num_kv_heads * c.head_dim, c.head_dim, rounded,
                                 layout.dtype);
        layout.StoreV(block, position % kKvBlockTokens, rounded);
      }
    }
    return kv;
  }

  static const std::byte* Block(const LoadedModel& model, int32_t layer, int32_t block) {
    return model.context().kv + model.context().kv_layout.Offset(layer, block, 0);
  }
};

TEST_P(ForwardQkvTest, EveryCutOfTheColumnsStoresTheSameHeads) {
  const auto reference = Load(1);
  const ModelConfig& c = reference->config();
  const KvLayout& layout = reference->context().kv_layout;
  const int32_t k = c.num_heads * c.head_dim, v = k + c.num_kv_heads * c.head_dim;
  std::set<std::string> seen;
  for (const int32_t length : {20, 200}) {
    const Rows rows = MakeRows(length, reference->vocab());
    // With a pass for each token, one ticket has all columns.
    reference->kernels().set_gemm_observer([&](const GemmCall& call) {
      if (call.w != &reference->weights().layers[0].qkv) return;
      EXPECT_EQ(call.n_begin, 0);
      EXPECT_EQ(call.n_end, v + c.num_kv_heads * c.head_dim);
    });
    const std::vector<Logits> expected = Run(*reference, rows, true);
    reference->kernels().set_gemm_observer({});
    for (size_t r = 0; r < rows.blocks.size(); ++r) {
      const KvLayout one = {layout.dtype, 1, static_cast<int32_t>(rows.blocks[r].size()),
                            layout.num_kv_heads, layout.head_dim};
      const AlignedBuffer defined = FirstLayer(*reference, rows.tokens[r], one);
      for (size_t i = 0; i < rows.blocks[r].size(); ++i) {
        EXPECT_EQ(std::memcmp(Block(*reference, 0, rows.blocks[r][i]),
                              defined.data() + i * one.block_bytes(), one.block_bytes()),
                  0)
            << "row " << r << " block " << i;
      }
    }
    for (const int threads : {1, 2, 4, 8}) {
      SCOPED_TRACE(std::to_string(length) + " tokens, threads " + std::to_string(threads));
      const auto model = Load(threads);
      model->kernels().set_gemm_observer([&](const GemmCall& call) {
        if (call.w == &model->weights().layers[0].qkv) {
          seen.merge(PlacesOf(call.n_begin, call.n_end, k, v));
        }
      });
      const std::vector<Logits> logits = Run(*model, rows, false);
      ASSERT_EQ(logits.size(), expected.size());
      for (size_t i = 0; i < logits.size(); ++i) {
        ASSERT_TRUE(SameBits(logits[i], expected[i])) << "token " << i;
      }
      for (int32_t layer = 0; layer < layout.num_layers; ++layer) {
        for (const std::vector<int32_t>& blocks : rows.blocks) {
          for (const int32_t block : blocks) {
            EXPECT_EQ(std::memcmp(Block(*model, layer, block), Block(*reference, layer, block),
                                  layout.block_bytes()),
                      0)
                << "layer " << layer << " block " << block;
          }
        }
      }
    }
  }
  // Makes sure that the cuts tested something. Only one model is wide enough for all cases.
  std::set<std::string> wanted;
  if (c.decoder.embedding_scale == 1) wanted = {"begins in q", "goes over into k"};
  if (std::string_view(std::get<0>(GetParam())) == "qwen3-bf16") {
    wanted.merge(std::set<std::string>{"begins at k", "begins in k", "begins at v", "begins in v",
                                       "goes over into v"});
  }
  EXPECT_TRUE(std::ranges::includes(seen, wanted));
}

INSTANTIATE_TEST_SUITE_P(
    Models, ForwardQkvTest,
    ::testing::Combine(::testing::Values("llama-linear", "qwen2-tied", "qwen3-bf16", "gemma3"),
                       ::testing::Values("f32", "bf16"), ::testing::ValuesIn(IsasHere())),
    [](const auto& param) {
      std::string name = std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param) +
                         "_" + NameOf(std::get<2>(param.param));
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace skein
