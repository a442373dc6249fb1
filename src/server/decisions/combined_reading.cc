#include "server/decisions/combined_reading.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include "server/decisions/decision_answer.h"

namespace skein {
namespace {

constexpr std::array<std::string_view, 3> kNoContent = {"N/A", "", "[MASK]"};

// The rows of several readings, end to end.
struct Pieces {
  std::vector<size_t> num_rows;
  std::vector<std::function<OptionScores(std::span<const RowOutput>)>> reads;

  void Add(QuestionReads piece, std::vector<DecisionRow>* rows) {
    num_rows.push_back(piece.rows.size());
    reads.push_back(std::move(piece.read));
    std::ranges::move(piece.rows, std::back_inserter(*rows));
  }

  std::vector<OptionScores> Read(std::span<const RowOutput> outputs) const {
    std::vector<OptionScores> scores;
    for (size_t i = 0; i < reads.size(); ++i) {
      scores.push_back(reads[i](outputs.first(num_rows[i])));
      outputs = outputs.subspan(num_rows[i]);
    }
    return scores;
  }
};

// The options' indices, sorted by text and description.
std::vector<size_t> SortedOptions(const DecisionQuestion& question) {
  std::vector<size_t> order(question.options.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return std::tie(question.options[i].name, question.options[i].description);
  });
  return order;
}

// Examples sorted by input, then by the text of the right option.
std::vector<SolvedInput> SortedExamples(const AskedQuestion& asked) {
  std::vector<SolvedInput> examples = asked.examples;
  std::ranges::stable_sort(examples, {}, [&](const SolvedInput& example) {
    const DecisionOption& option = asked.question->options[example.option];
    return std::tie(example.input, option.name, option.description);
  });
  return examples;
}

// Rotation `k` of the `num_turns` rotations of a list: it begins at another element and wraps
// around.
template <typename T>
std::vector<T> Turned(std::vector<T> list, size_t k, size_t num_turns) {
  std::ranges::rotate(list,
                      list.begin() + static_cast<std::ptrdiff_t>(k * list.size() / num_turns));
  return list;
}

// A copy of a question with its options and its examples in another order.
struct Reordered {
  DecisionQuestion question;
  AskedQuestion asked;
};

Reordered Reorder(const AskedQuestion& asked, const std::vector<size_t>& option_order,
                  std::vector<SolvedInput> examples) {
  Reordered result{*asked.question, asked};
  for (size_t i = 0; i < option_order.size(); ++i) {
    result.question.options[i] = asked.question->options[option_order[i]];
  }
  for (SolvedInput& example : examples) {
    example.option =
        static_cast<size_t>(std::ranges::find(option_order, example.option) - option_order.begin());
  }
  result.asked.examples = std::move(examples);
  return result;
}

}  // namespace

std::string CalibratedReading::KeyOf(const AskedQuestion& asked) const {
  // Each text is preceded by its length, so that two different questions never give the same key.
  const auto field = [](std::string_view text) { return fmt::format("{}:{}", text.size(), text); };
  std::string key = field(name_) + field(asked.instructions) + field(asked.question->instructions) +
                    field(asked.question->cue);
  key += static_cast<char>('0' + static_cast<int>(asked.question->kind));
  for (const DecisionOption& option : asked.question->options) {
    key += field(option.name) + field(option.description);
  }
  for (const SolvedInput& example : asked.examples) {
    key += fmt::format("{}={}", field(example.input), example.option);
  }
  return key;
}

Result<QuestionReads> CalibratedReading::Plan(const AskedQuestion& asked) const {
  const std::string key = KeyOf(asked);
  QuestionReads result;
  Pieces pieces;
  SKEIN_ASSIGN_OR_RETURN(QuestionReads own, inner_->Plan(asked));
  pieces.Add(std::move(own), &result.rows);
  BaselineCache::Logprobs known = cache_->Find(key);
  for (size_t i = 0; known == nullptr && i < kNoContent.size(); ++i) {
    AskedQuestion empty = asked;
    empty.input = kNoContent[i];
    SKEIN_ASSIGN_OR_RETURN(QuestionReads baseline, inner_->Plan(empty));
    for (DecisionRow& row : baseline.rows) row.charged = false;
    pieces.Add(std::move(baseline), &result.rows);
  }
  result.read = [pieces = std::move(pieces), known = std::move(known), key,
                 cache = cache_](std::span<const RowOutput> outputs) {
    const std::vector<OptionScores> scores = pieces.Read(outputs);
    OptionScores own_scores = scores[0];
    std::vector<double> baseline(own_scores.logprobs.size());
    if (known != nullptr) baseline = *known;
    for (size_t k = 1; k < scores.size(); ++k) {
      for (size_t i = 0; i < baseline.size(); ++i) {
        baseline[i] += scores[k].logprobs[i] / static_cast<double>(kNoContent.size());
      }
    }
    for (size_t i = 0; i < baseline.size(); ++i) own_scores.logprobs[i] -= baseline[i];
    if (known == nullptr) cache->Put(key, std::move(baseline));
    return own_scores;
  };
  return result;
}

Result<QuestionReads> PermutedReading::Plan(const AskedQuestion& asked) const {
  std::vector<size_t> options(asked.question->options.size());
  std::iota(options.begin(), options.end(), size_t{0});
  size_t num_option_orders = 1;
  if (asked.question->kind == DecisionKind::kChoice) {
    options = SortedOptions(*asked.question);
    num_option_orders = std::min(options.size(), kOrdersMax);
  }
  const std::vector<SolvedInput> examples = SortedExamples(asked);
  const size_t num_example_orders =
      std::clamp<size_t>(examples.size(), 1, std::max<size_t>(kOrdersMax / num_option_orders, 1));
  QuestionReads result;
  Pieces pieces;
  std::vector<std::vector<size_t>> orders;
  for (size_t k = 0; k < num_option_orders * num_example_orders; ++k) {
    orders.push_back(Turned(options, k % num_option_orders, num_option_orders));
    Reordered turned =
        Reorder(asked, orders.back(), Turned(examples, k / num_option_orders, num_example_orders));
    turned.asked.question = &turned.question;
    SKEIN_ASSIGN_OR_RETURN(QuestionReads reads, inner_->Plan(turned.asked));
    pieces.Add(std::move(reads), &result.rows);
  }
  result.read = [pieces = std::move(pieces),
                 orders = std::move(orders)](std::span<const RowOutput> outputs) {
    const std::vector<OptionScores> scores = pieces.Read(outputs);
    std::vector<double> sum(orders[0].size());
    double mass = 0;
    for (size_t k = 0; k < orders.size(); ++k) {
      const std::vector<double> p = AnswerOf(scores[k], 1.0).probabilities;
      for (size_t i = 0; i < p.size(); ++i) sum[orders[k][i]] += p[i];
      mass += scores[k].mass.value_or(0);
    }
    OptionScores mean;
    for (const double p : sum) {
      mean.logprobs.push_back(std::log(std::max(p, 1e-300) / static_cast<double>(orders.size())));
    }
    if (scores[0].mass) mean.mass = mass / static_cast<double>(orders.size());
    return mean;
  };
  return result;
}

}  // namespace skein
