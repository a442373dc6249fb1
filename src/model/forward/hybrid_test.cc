// Hybrid prefilling: chunks of any size outside attention, keys and values of one layer at a time,
// and every way to store the chunks' outputs. The bits are always those of the plain pass.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::kAllOutputs;
using testing::LoadedModel;
using testing::Logits;
using testing::SameBits;

constexpr int32_t kMaxTokens = 512;

// A row to compute: tokens [begin, size) of a sequence. The tokens before `begin` are in the cache.
struct Row {
  std::vector<int32_t> tokens;
  int32_t begin = 0;
  std::vector<int32_t> blocks;  // of the whole sequence
  ForwardFork fork = {};
};

class ForwardHybridTest
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, Isa>> {
 protected:
  ForwardHybridTest() {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    model_ = Load(1);
  }

  static std::unique_ptr<LoadedModel> Load(int threads) {
    const auto& [name, dtype, isa] = GetParam();
    return std::make_unique<LoadedModel>(
        std::string(SKEIN_SOURCE_DIR "/tests/data/") + name,
        LoadedModel::Options{.dtype = dtype, .isa = isa, .threads = threads, .num_blocks = 64});
  }

  std::vector<int32_t> RandomTokens(int32_t n) {
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % model_->vocab());
    return tokens;
  }

  bool encoder() const { return model_->config().is_encoder(); }
  int32_t Limit() const { return encoder() ? model_->config().max_position : 1000; }

  // A batch with every kind of row: a long row, a row after a cached prefix that ends at a block,
  // two children of a parent in the batch (one of them shares a part of a block), and a row of one
  // token. An encoder's rows are whole sequences.
  std::vector<Row> MakeRows() {
    std::vector<Row> rows;
    const auto add = [&](int32_t size, int32_t begin, int32_t first_block) {
      rows.push_back({RandomTokens(std::min(size, Limit())), begin, Blocks(first_block, size)});
    };
    add(150, 0, 0);
    add(1, 0, 30);
    add(70 + static_cast<int32_t>(random_() % 20), encoder() ? 0 : 64, 8);
    if (encoder()) return rows;
    // The parent's blocks are in the pool.
    add(45, 0, 12);
    for (int32_t child = 0; child < 2; ++child) {
      const int32_t shared = child == 0 ? 32 : 45;
      add(shared + 40, shared, 16 + 6 * child);
      Row& row = rows.back();
      std::copy_n(rows[3].tokens.begin(), shared, row.tokens.begin());
      row.blocks[0] = rows[3].blocks[0];
      if (child == 1) row.fork = {rows[3].blocks[1], 13};
    }
    return rows;
  }

  // Computes the prefix of the third row, whose keys and values go to the pool of `model`.
  static void ComputePrefixes(const LoadedModel& model, const std::vector<Row>& rows) {
    if (rows[2].begin == 0) return;
    ForwardPass pass(model.context(), {.max_tokens = kMaxTokens});
    pass.batch().AddRow(std::span(rows[2].tokens).first(rows[2].begin), 0, rows[2].blocks, false);
    testing::RunPass(&pass, model.vocab());
  }

  // Lays the rows end to end. The pool keeps all of each row, only the row's prefix, or a part.
  enum class Keep { kAll, kNothing, kSome };
  void Fill(ForwardPass* pass, const std::vector<Row>& rows, Keep keep) {
    ForwardBatch& batch = pass->batch();
    batch.Clear();
    for (size_t r = 0; r < rows.size(); ++r) {
      const Row& row = rows[r];
      const size_t least = r == 3 ? row.blocks.size() : row.begin / kKvBlockTokens;
      const size_t some = least + random_() % (row.blocks.size() - least + 1);
      const size_t count = keep == Keep::kAll       ? row.blocks.size()
                           : keep == Keep::kNothing ? least
                                                    : some;
      batch.AddRow(std::span(row.tokens).subspan(row.begin), row.begin,
                   std::span(row.blocks).first(count), false);
      batch.rows.back().fork = row.fork;
      if (model_->weights().output.n() == 0) {
        const bool classifies = model_->weights().head_out.n() > 0;
        (classifies ? batch.classified_rows : batch.embedded_rows)
            .push_back(static_cast<int32_t>(r));
        continue;
      }
      for (int32_t i = batch.rows.back().first_token; i < batch.num_tokens(); i += 3) {
        batch.logit_tokens.push_back(i);
      }
    }
  }

  static int32_t WidthOf(OutputKind kind, const LoadedModel& model) {
    if (kind == OutputKind::kLogits) return model.vocab();
    return kind == OutputKind::kClasses ? model.config().num_classes : model.config().hidden_size;
  }

  // Runs the pass, and continues it after every stop. Returns all outputs.
  static std::vector<Logits> RunAll(ForwardPass* pass, const LoadedModel& model,
                                    std::atomic<bool>* stop = nullptr, int* num_stops = nullptr) {
    std::vector<Logits> all;
    pass->Begin();
    for (;;) {
      const ForwardStatus status = pass->Run(stop);
      if (status == ForwardStatus::kDone) return all;
      if (status == ForwardStatus::kStopped) {
        *stop = false;
        ++*num_stops;
        continue;
      }
      const int32_t width = WidthOf(pass->chunk().kind, model);
      for (int32_t i = 0; i < pass->chunk().count; ++i) {
        all.emplace_back(pass->output(i), pass->output(i) + width);
      }
    }
  }

  static void ExpectSame(const std::vector<Logits>& a, const std::vector<Logits>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(SameBits(a[i], b[i])) << "output " << i;
  }

  std::vector<Logits> Reference(const std::vector<Row>& rows) {
    ComputePrefixes(*model_, rows);
    ForwardPass pass(model_->context(), {.max_tokens = kMaxTokens, .max_logit_rows = 24});
    Fill(&pass, rows, Keep::kAll);
    return RunAll(&pass, *model_);
  }

  static ForwardLimits Limits(int32_t chunk, ChunkOutputs outputs) {
    return {.max_tokens = kMaxTokens,
            .max_logit_rows = 24,
            .chunk_tokens = chunk,
            .max_own_blocks = 40,
            .chunk_outputs = outputs};
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  std::unique_ptr<LoadedModel> model_;
};

TEST_P(ForwardHybridTest, EveryChunkSizeAndEveryWayToKeepHasThePlainBits) {
  const std::vector<Row> rows = MakeRows();
  const std::vector<Logits> reference = Reference(rows);
  ASSERT_GT(reference.size(), rows.size() - 1);
  for (const int threads : {1, 2}) {
    const auto model = Load(threads);
    ComputePrefixes(*model, rows);
    for (const ChunkOutputs outputs : kAllOutputs) {
      for (const int32_t chunk : {1, 32, 50, 150, 0}) {
        for (const Keep keep : {Keep::kAll, Keep::kNothing, Keep::kSome}) {
          SCOPED_TRACE(std::to_string(chunk) + " tokens, outputs " + std::to_string(int(outputs)) +
                       ", keep " + std::to_string(int(keep)) + ", threads " +
                       std::to_string(threads));
          ForwardPass pass(model->context(), Limits(chunk, outputs));
          Fill(&pass, rows, keep);
          ASSERT_NO_FATAL_FAILURE(ExpectSame(RunAll(&pass, *model), reference));
        }
      }
    }
  }
}

TEST_P(ForwardHybridTest, StopsEveryFewKernelCallsWithOtherPassesBetween) {
  const std::vector<Row> rows = MakeRows();
  const std::vector<Logits> reference = Reference(rows);
  std::atomic<bool>& stop = model_->kernels().stop();
  for (const ChunkOutputs outputs : kAllOutputs) {
    ForwardPass pass(model_->context(), Limits(64, outputs));
    const int64_t before = model_->kernels().num_calls();
    Fill(&pass, rows, Keep::kNothing);
    RunAll(&pass, *model_);
    const int64_t num_calls = model_->kernels().num_calls() - before;
    const int64_t step = static_cast<int64_t>(random_() % 5);  // number of calls between stops
    int num_stops = 0;
    std::vector<Logits> all;
    Fill(&pass, rows, Keep::kNothing);
    pass.Begin();
    ForwardPass other(model_->context(), Limits(32, outputs));
    model_->kernels().StopAfter(step);
    for (ForwardStatus status; (status = pass.Run(&stop)) != ForwardStatus::kDone;) {
      if (status == ForwardStatus::kStopped) {
        ++num_stops;
        stop = false;
        // A pass that runs in between uses its own memory.
        if (num_stops % 64 == 0) {
          Fill(&other, rows, Keep::kNothing);
          model_->kernels().StopAfter(-1);
          ExpectSame(RunAll(&other, *model_), reference);
        }
      } else {
        const int32_t width = WidthOf(pass.chunk().kind, *model_);
        for (int32_t i = 0; i < pass.chunk().count; ++i) {
          all.emplace_back(pass.output(i), pass.output(i) + width);
        }
      }
      model_->kernels().StopAfter(step);
    }
    stop = false;
    EXPECT_GT(num_stops, 20 * model_->config().num_layers) << num_calls << " calls";
    ASSERT_NO_FATAL_FAILURE(ExpectSame(all, reference));
  }
}

// Keys and values that the pool keeps are read by a later pass.
TEST_P(ForwardHybridTest, WhatIsKeptIsTheSameAsThatOfThePlainPass) {
  if (encoder()) return;  // an encoder keeps nothing
  const std::vector<int32_t> tokens = RandomTokens(150);
  const std::vector<int32_t> blocks = Blocks(0, 150);
  ForwardPass plain(model_->context(), {.max_tokens = kMaxTokens, .max_logit_rows = 24});
  const std::vector<Logits> reference =
      testing::RunAlone(&plain, tokens, 0, 150, blocks, model_->vocab());
  for (const int32_t kept : {1, 3, 4}) {
    const std::vector<int32_t> own = Blocks(10 + 5 * kept, 150);
    ForwardPass hybrid(model_->context(), Limits(48, ChunkOutputs::kInPlace));
    hybrid.batch().AddRow(tokens, 0, std::span(own).first(kept), true);
    EXPECT_TRUE(SameBits(testing::RunPass(&hybrid, model_->vocab()).at(0), reference[149]));
    const int32_t begin = kept * kKvBlockTokens;
    const auto logits = testing::RunAlone(&plain, tokens, begin, 150, own, model_->vocab());
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_TRUE(SameBits(logits[i], reference[begin + i])) << begin + i;
    }
  }
}

TEST(ForwardWorkspace, HybridNeedsTheHiddenStateQAndOneLayersKeysAndValues) {
  const ModelConfig config = testing::Qwen3Shape();
  const auto per_token = [&](int32_t chunk, ChunkOutputs outputs) {
    const auto bytes = [&](int32_t tokens) {
      return ForwardWorkspace::Bytes(config, DType::kBf16,
                                     {.max_tokens = tokens,
                                      .max_logit_rows = 1,
                                      .chunk_tokens = chunk,
                                      .max_own_blocks = tokens / kKvBlockTokens,
                                      .chunk_outputs = outputs});
    };
    return static_cast<double>(bytes(65536) - bytes(32768)) / 32768;
  };
  EXPECT_EQ(per_token(512, ChunkOutputs::kInPlace), 4096 + 4096 + 4096);
  EXPECT_EQ(per_token(512, ChunkOutputs::kPreallocated), 4 * 4096);
  EXPECT_EQ(per_token(512, ChunkOutputs::kCollected), 5 * 4096);
  EXPECT_EQ(per_token(0, ChunkOutputs::kInPlace), 12288 + 2048 + 6144);
}

INSTANTIATE_TEST_SUITE_P(
    Models, ForwardHybridTest,
    ::testing::Combine(::testing::Values("models/llama-linear", "models/qwen3-bf16",
                                         "models/gemma2-bf16", "models/gemma3-bf16",
                                         "models/olmo2-bf16", "models/qwen3-moe",
                                         "models/qwen2-moe", "models/gpt-oss", "encoders/bert",
                                         "encoders/modernbert", "encoders/modernbert-biases"),
                       ::testing::Values("f32", "bf16"),
                       ::testing::ValuesIn(testing::VectorIsas())),
    [](const auto& param) {
      std::string name = std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param) +
                         "_" + NameOf(std::get<2>(param.param));
      for (char& c : name) {
        if (c == '-' || c == '/') c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace skein
