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

// One possible answer. A choice's options are its values, a score's its levels' labels (may be
// empty), a predicate's yes and no.
struct DecisionOption {
  std::string name;
  std::string description;  // empty: none

  // The text that stands for the option where it is written out.
  const std::string& text() const { return name.empty() ? description : name; }
};

enum class DecisionKind { kPredicate, kChoice, kScore };

// A typed question about an input, whichever route it came by.
struct DecisionQuestion {
  DecisionKind kind = DecisionKind::kPredicate;
  std::string instructions;
  // In the order of the answer's probabilities. A predicate's are {yes, no}.
  std::vector<DecisionOption> options;
  std::string cue;  // of PromptForm::kCue; empty: a noun of the instructions
};

// An input whose answer is known, shown to the model before the one that is asked about.
struct SolvedInput {
  std::string input;
  size_t option = 0;  // index of the right one
};

// A question with all that its prompt tells.
struct AskedQuestion {
  const DecisionQuestion* question = nullptr;
  std::string_view instructions;  // for all questions of a request; may be empty
  std::string_view input;
  std::vector<SolvedInput> examples;
  std::string_view field;  // of the question, for messages
};

}  // namespace skein
