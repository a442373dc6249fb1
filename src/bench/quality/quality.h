#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bench/quality/quality_items.h"
#include "bench/quality/quality_methods.h"
#include "server/http/http_message.h"

namespace skein {

// Posts a body to a path; `done` may run on any thread, also before this returns.
using QualityAsk = std::function<void(const std::string& path, std::string body,
                                      std::function<void(HttpResponse)> done)>;

// A model's answer about one item.
struct QualityAnswer {
  std::string refusal;                // why it cannot be asked; empty: it was
  std::vector<double> probabilities;  // [labels] at temperature 1; relevance: scores [documents]
  std::optional<double> label_mass;
  int64_t input_tokens = 0;
  std::optional<bool> flipped;  // a choice: another answer with the choices in reverse order
  size_t num_examples = 0;
};

// The answers of one method about the items of one type.
struct QualityRun {
  QualityType type = QualityType::kPredicate;
  QualityMethod method;
  std::vector<size_t> items;           // indices of the test set
  std::vector<QualityAnswer> answers;  // [items]
  double ms_per_item = 0;              // wall time of all, divided; without the reversed choices
};

struct QualityLoad {
  int32_t window = 16;  // requests in flight
  size_t num_examples = 0;
  bool reverse_choices = true;  // asks choices twice
};

// Asks about all items of `type`, at most `window` at a time, after the first item was asked once
// for warming up. Answers stand in the items' order. An item that is answered by a 4xx counts as
// refused; any other error ends the run. Blocks until all are answered.
Result<QualityRun> RunQuality(const std::vector<QualityItem>& items, QualityType type,
                              const QualityMethod& method, const QualityLoad& load,
                              const Clock& clock, const QualityAsk& ask);

// The body of /v1/decisions or, for relevance, of /rerank.
Json QualityBody(const std::vector<QualityItem>& items, size_t index, const QualityMethod& method,
                 size_t num_examples);

}  // namespace skein
