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
  int half = 0;  // 0 or 1: which half of its task

  // All but relevance.
  Json input;                       // as /v1/decisions takes it
  Json question;                    // of /v1/decisions
  std::vector<std::string> labels;  // of the options, in order; of a predicate true, false
  size_t answer = 0;                // the right option
  Json answer_value;                // as `examples` of /v1/decisions take it

  // Relevance.
  std::string query;
  std::vector<std::string> documents;
  std::vector<size_t> relevant;  // ascending, at least one
};

// Reads JSON lines, each an item or a row with the items of its questions
// (bench/quality/labelled_rows.h); empty lines are skipped. Each task is split in halves by a hash
// of the ids, the same in every run: the odd and the even of the hashes' order, so that they differ
// by at most one item. kInvalidArgument names `name`, the line and the field.
Result<std::vector<QualityItem>> ParseQualityItems(const std::string& text,
                                                   const std::string& name);
// Reads a file; kNotFound if it cannot be read.
Result<std::vector<QualityItem>> LoadQualityItems(const std::string& path);

// Keeps the first `count` items of each task and splits what is left in halves.
void LimitQualityItems(int32_t count, std::vector<QualityItem>* items);

// At most `count` items whose answers may be shown with a question about items[index]: of the same
// task and question (in whatever order of its options) but the other half. Their labels alternate.
// A function of the items alone.
std::vector<size_t> ExamplesFor(const std::vector<QualityItem>& items, size_t index, size_t count);

// The question with its choices in reverse order. REQUIRES: a choice.
Json ReversedQuestion(const Json& question);

}  // namespace skein
