#include "model/forward/outputs/option_places.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace skein {
namespace {

// The definition of places, computed token by token.
struct PlaceDefinition {
  std::vector<int32_t> positions, options;  // option 0: shared tokens

  PlaceDefinition(const std::vector<int32_t>& bounds, int32_t num_tokens) {
    int32_t longest = 0;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      longest = std::max(longest, bounds[i + 1] - bounds[i]);
    }
    for (int32_t place = 0; place < num_tokens; ++place) {
      int32_t option = 0, position = place;
      for (size_t i = 0; i + 1 < bounds.size(); ++i) {
        if (place < bounds[i] || place >= bounds[i + 1]) continue;
        option = static_cast<int32_t>(i) + 1;
        position = bounds.front() + place - bounds[i];
      }
      if (!bounds.empty() && place >= bounds.back()) {
        position = bounds.front() + longest + place - bounds.back();
      }
      positions.push_back(position);
      options.push_back(option);
    }
  }

  bool Sees(int32_t q, int32_t k, bool bidirectional, const LocalLayers* local) const {
    if (!bidirectional && k > q) return false;
    if (options[q] > 0 && options[k] > 0 && options[q] != options[k]) return false;
    if (local == nullptr) return true;
    const int32_t distance = positions[q] - positions[k];
    return distance <= local->before && -distance <= local->after;
  }
};

TEST(OptionPlacesTest, PositionsAndVisibleKeysAreThoseOfTheDefinition) {
  std::mt19937 random(7);
  const auto integer = [&](int32_t min, int32_t max) {
    return std::uniform_int_distribution<int32_t>(min, max)(random);
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> bounds;
    const int32_t num_options = integer(0, 6);
    int32_t place = integer(1, 40);
    for (int32_t i = 0; i <= num_options && num_options > 0; ++i) {
      bounds.push_back(place);
      if (i < num_options) place += integer(1, 20);
    }
    const int32_t num_tokens = place + integer(round % 3 == 0 ? 0 : 1, 60);
    const PlaceDefinition definition(bounds, num_tokens);
    const OptionPlaces places(bounds, num_tokens);
    LocalLayers local;
    local.before = integer(0, 30);
    local.after = integer(0, 30);
    for (int32_t q = 0; q < num_tokens; ++q) {
      ASSERT_EQ(places.PositionOf(q), definition.positions[q]);
      for (const bool bidirectional : {false, true}) {
        for (const LocalLayers* layer :
             {static_cast<const LocalLayers*>(nullptr), static_cast<const LocalLayers*>(&local)}) {
          std::vector<uint32_t> words((num_tokens + 31) / 32, 0xdeadbeef);
          int32_t first = -1, end = -1;
          const bool hides =
              places.FindVisible(q, bidirectional, layer, words.data(), &first, &end);
          bool has_hidden = false;
          for (int32_t k = 0; k < num_tokens; ++k) {
            const bool sees = definition.Sees(q, k, bidirectional, layer);
            ASSERT_EQ((words[k / 32] >> (k % 32) & 1) != 0, sees) << q << " " << k;
            ASSERT_TRUE(!sees || (k >= first && k < end));
            if (!sees && k >= first && k < end) has_hidden = true;
          }
          ASSERT_EQ(hides, has_hidden);
          ASSERT_TRUE(definition.Sees(q, first, bidirectional, layer));
          ASSERT_TRUE(definition.Sees(q, end - 1, bidirectional, layer));
        }
      }
    }
  }
}

}  // namespace
}  // namespace skein
