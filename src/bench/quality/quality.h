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

// Posts a body to a path. `done` may run on any thread, even before the call returns.
using QualityAsk = std::function<void(const std::string& path, std::string body,
                                      std::function<void(HttpResponse)> done)>;

// The answer of a model to one item.
struct QualityAnswer {
  std::string refusal;  // why the item cannot be asked; empty: it was asked
  // [labels] at temperature 1; for relevance the scores [documents]
  std::vector<double> probabilities;
  std::optional<double> label_mass;
  int64_t input_tokens = 0;
  // For a choice: whether the answer changes when the choices are in reverse order.
  std::optional<bool> flipped;
  size_t num_examples = 0;
};

// The answers of one method to the items of one type.
struct QualityRun {
  QualityType type = QualityType::kPredicate;
  QualityMethod method;
  std::vector<size_t> items;           // indices in the test set
  std::vector<QualityAnswer> answers;  // [items]
  double ms_per_item = 0;              // wall time per item, without the reversed choices
};

struct QualityLoad {
  int32_t window = 16;  // requests in flight
  size_t num_examples = 0;
  bool reverse_choices = true;  // ask choices a second time, in reverse order
};

// Asks about all items of `type`, at most `window` at a time. The first item is asked once before,
// as a warm-up. Answers are in the items' order. An item that gets a 4xx counts as refused; any
// other error ends the run. Blocks until all items are answered.
Result<QualityRun> RunQuality(const std::vector<QualityItem>& items, QualityType type,
                              const QualityMethod& method, const QualityLoad& load,
                              const Clock& clock, const QualityAsk& ask);

// The body of a request to /v1/decisions or, for relevance, to /rerank.
Json QualityBody(const std::vector<QualityItem>& items, size_t index, const QualityMethod& method,
                 size_t num_examples);

}  // namespace skein
