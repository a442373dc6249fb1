#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

enum class QualityType { kPredicate, kChoice, kScore, kRelevance };
inline constexpr std::array<QualityType, 4> kQualityTypes = {
    QualityType::kPredicate, QualityType::kChoice, QualityType::kScore, QualityType::kRelevance};
const char* NameOf(QualityType type);

// A labelled item of a test set (bench/quality/README.md).
struct QualityItem {
  std::string id;
  std::string task;
  QualityType type = QualityType::kPredicate;
  int half = 0;  // which half of its task the item belongs to: 0 or 1

  // For all types except relevance.
  Json input;                       // in the form of /v1/decisions
  Json question;                    // in the form of /v1/decisions
  std::vector<std::string> labels;  // of the options, in order; for a predicate: true, false
  size_t answer = 0;                // index of the right option
  Json answer_value;                // in the form of `examples` of /v1/decisions

  // For relevance.
  std::string query;
  std::vector<std::string> documents;
  std::vector<size_t> relevant;  // ascending, at least one
};

// Reads JSON lines. Each is an item, or a row that gives an item for each of its questions
// (bench/quality/labelled_rows.h); empty lines are skipped. Each task is split into halves, in the
// same way in every run: its items are sorted by a hash of their ids, and every second one belongs
// to the second half, so that the halves differ by at most one item. kInvalidArgument names `name`,
// the line and the field.
Result<std::vector<QualityItem>> ParseQualityItems(const std::string& text,
                                                   const std::string& name);
// Reads a file; kNotFound if it cannot be read.
Result<std::vector<QualityItem>> LoadQualityItems(const std::string& path);

// Keeps the first `count` items of each task and splits them into halves.
void LimitQualityItems(int32_t count, std::vector<QualityItem>* items);

// Chooses at most `count` items as examples for a question about items[index]. They have the same
// task and the same question (in any order of its options) and belong to the other half. Their
// labels alternate. The choice depends on the items alone.
std::vector<size_t> ExamplesFor(const std::vector<QualityItem>& items, size_t index, size_t count);

// The question with its choices in reverse order. REQUIRES: the question is a choice.
Json ReversedQuestion(const Json& question);

}  // namespace skein
