#pragma once

#include <memory>
#include <string>
#include <utility>

#include "server/decisions/baseline_cache.h"
#include "server/decisions/question_reading.h"

namespace skein {

// The scores of another reading minus its scores for inputs without content ("N/A", "", "[MASK]").
// The latter show what the model answers regardless of the input (Zhao et al. 2021, "Calibrate
// Before Use", section 4; here the mean of log-probabilities). The cache keeps the scores of inputs
// without content.
class CalibratedReading final : public QuestionReading {
 public:
  // `inner` outlives this object. `name` names the inner reading and its prompt; the cache keeps
  // the scores of different names apart.
  CalibratedReading(const QuestionReading* inner, std::string name,
                    std::shared_ptr<BaselineCache> cache)
      : inner_(inner), name_(std::move(name)), cache_(std::move(cache)) {}
  Result<QuestionReads> Plan(const AskedQuestion& asked) const override;

 private:
  std::string KeyOf(const AskedQuestion& asked) const;

  const QuestionReading* inner_;
  std::string name_;
  std::shared_ptr<BaselineCache> cache_;
};

// The mean of another reading's probabilities over several orders. Each option of a choice stands
// at each position once, and so does each example, up to kOrdersMax orders in all. Options and
// examples are sorted first, so that the answer does not depend on their order in the request.
// Options of predicates and scores keep their order. Lu et al. 2022, "Fantastically Ordered
// Prompts", section 2: the order of examples alone can move a small model from good accuracy to
// chance.
class PermutedReading final : public QuestionReading {
 public:
  static constexpr size_t kOrdersMax = 8;

  // `inner` outlives this object.
  explicit PermutedReading(const QuestionReading* inner) : inner_(inner) {}
  Result<QuestionReads> Plan(const AskedQuestion& asked) const override;

 private:
  const QuestionReading* inner_;
};

}  // namespace skein
