// Rope tables made from the text of a config, compared with those of transformers'
// ROPE_INIT_FUNCTIONS.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/config/config.h"
#include "model/config/rope.h"

namespace skein {
namespace {

using Json = nlohmann::json;

// Both sides compute in f64: a power, a logarithm and a dozen products, each within an ulp or two.
// The exponent of the power is rounded before, which adds up to |ln theta| <= 14 ulp.
constexpr double kRelativeError = 64 * 0x1p-53;

Result<ModelConfig> ConfigWithRope(const Json& golden) {
  const Json& rope = golden["rope_parameters"];
  const double context =
      rope.value("original_max_position_embeddings", 4096) * rope.value("factor", 1.0);
  const Json config = {{"architectures", {"LlamaForCausalLM"}},
                       {"vocab_size", 100},
                       {"hidden_size", 64},
                       {"intermediate_size", 64},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 4},
                       {"head_dim", golden["head_dim"]},
                       {"max_position_embeddings", static_cast<int>(context)},
                       {"rms_norm_eps", 1e-6},
                       {"dtype", "float32"},
                       {"rope_parameters", rope}};
  return ParseModelConfig(config.dump());
}

TEST(RopeGolden, TablesAgreeWithTheReference) {
  std::ifstream file(SKEIN_SOURCE_DIR "/tests/data/rope.json");
  const Json tables = Json::parse(file);
  ASSERT_GE(tables.size(), 13u);
  for (const Json& golden : tables) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const Result<ModelConfig> config = ConfigWithRope(golden);
    ASSERT_TRUE(config.ok()) << config.status().message();
    const RopeTable table = MakeRopeTable(config.value().rope, config.value().head_dim);
    ASSERT_EQ(table.inv_freq.size(), golden["inv_freq"].size());
    for (size_t i = 0; i < table.inv_freq.size(); ++i) {
      const double expected = golden["inv_freq"][i];
      EXPECT_NEAR(table.inv_freq[i], expected, kRelativeError * expected) << "pair " << i;
    }
    const double factor = golden["attention_factor"];
    EXPECT_NEAR(table.attention_factor, factor, kRelativeError * factor);
  }
}

}  // namespace
}  // namespace skein
