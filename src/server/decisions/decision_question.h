#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

// The limits of a request for decisions (docs/api.md).
inline constexpr size_t kQuestionsMax = 200;
inline constexpr size_t kChoicesMin = 2;
inline constexpr size_t kChoicesMax = 255;
inline constexpr size_t kLevelsMin = 2;
inline constexpr size_t kLevelsMax = 10;

// One possible answer. The options of a choice are its values, those of a score are the labels of
// its levels (may be empty), those of a predicate are yes and no.
struct DecisionOption {
  std::string name;
  std::string description;  // empty: none
  // For models that read descriptions as JSON: the description as the client wrote it, with sorted
  // keys. Empty: `description` is all there is.
  std::string json = {};

  // The text that is written out for the option.
  const std::string& text() const { return name.empty() ? description : name; }
};

enum class DecisionKind { kPredicate, kChoice, kScore };

// A typed question about an input, from any route.
struct DecisionQuestion {
  DecisionKind kind = DecisionKind::kPredicate;
  std::string instructions;
  // In the order of the answer's probabilities. The options of a predicate are {yes, no}.
  std::vector<DecisionOption> options;
  std::string cue;  // for PromptForm::kCue; empty: a noun of the instructions
};

// An input with a known answer, shown to the model before the input that is asked about.
struct SolvedInput {
  std::string input;
  size_t option = 0;  // the index of the right option
};

// A question with everything that its prompt contains.
struct AskedQuestion {
  const DecisionQuestion* question = nullptr;
  std::string_view instructions;  // for all questions of a request; may be empty
  std::string_view input;
  std::vector<SolvedInput> examples;
  std::string_view field;  // the name of the question's field, for messages
};

}  // namespace skein
