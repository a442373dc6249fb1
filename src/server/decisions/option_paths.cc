#include "server/decisions/option_paths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

// A row of the pass. Its text is the prompt and `before`; the probabilities of `tokens` behind it
// are read.
struct PathRow {
  TokenPath before;
  std::vector<TokenId> tokens;
};

// The place of the probability of a path's last token.
struct PathPlace {
  size_t row = 0;
  size_t token = 0;  // index in the row's tokens
};

struct PathPlan {
  std::vector<PathRow> rows;  // the first row is the prompt itself
  // [options][spellings]
  std::vector<std::vector<PathPlace>> places;
  std::vector<std::vector<TokenPath>> paths;

  PathPlace Place(const TokenPath& path);
  // The index of a path's first token among the tokens whose probabilities the prompt's row gives.
  size_t index_of_first(TokenId token) const;
};

PathPlace PathPlan::Place(const TokenPath& path) {
  const TokenPath before(path.begin(), path.end() - 1);
  size_t row = 0;
  while (row < rows.size() && rows[row].before != before) ++row;
  if (row == rows.size()) rows.push_back({before, {}});
  auto& tokens = rows[row].tokens;
  const auto found = std::ranges::find(tokens, path.back());
  const auto index = static_cast<size_t>(found - tokens.begin());
  if (found == tokens.end()) tokens.push_back(path.back());
  return {row, index};
}

size_t PathPlan::index_of_first(TokenId token) const {
  const auto& tokens = rows[0].tokens;
  return static_cast<size_t>(std::ranges::find(tokens, token) - tokens.begin());
}

PathPlan MakePlan(const std::vector<std::vector<TokenPath>>& options) {
  PathPlan plan;
  plan.paths = options;
  plan.rows.push_back({});
  for (const auto& spellings : options) {
    for (const TokenPath& path : spellings) (void)plan.Place({path.front()});
  }
  for (const auto& spellings : options) {
    auto& places = plan.places.emplace_back();
    for (const TokenPath& path : spellings) places.push_back(plan.Place(path));
  }
  return plan;
}

double Logprob(const RowOutput& output, size_t token) {
  return static_cast<double>(output.read->values[token]) -
         static_cast<double>(output.read->log_sum_exp);
}

// The natural logarithm of a path's probability. The prompt's row gives the first token, the path's
// own row gives the last token, and that row's prompt log-probabilities give the tokens between.
double PathLogprob(const PathPlan& plan, const TokenPath& path, const PathPlace& place,
                   std::span<const RowOutput> outputs) {
  if (path.size() == 1) return Logprob(outputs[0], place.token);
  double sum = Logprob(outputs[0], plan.index_of_first(path.front()));
  for (const float logprob : outputs[place.row].prompt_logprobs) {
    sum += static_cast<double>(logprob);
  }
  return sum + Logprob(outputs[place.row], place.token);
}

bool BeginsWith(const TokenPath& path, const TokenPath& head) {
  return path.size() > head.size() && std::equal(head.begin(), head.end(), path.begin());
}

// Whether some path begins with `shorter`, and `longer` begins with that path. Its probability then
// includes that of `longer`.
bool IsBetween(const PathPlan& plan, const TokenPath& shorter, const TokenPath& longer) {
  return std::ranges::any_of(plan.paths, [&](const std::vector<TokenPath>& spellings) {
    return std::ranges::any_of(spellings, [&](const TokenPath& path) {
      return BeginsWith(path, shorter) && BeginsWith(longer, path);
    });
  });
}

// The probability of longer paths of other options that begin with `path`, a path of option
// `owner`.
double TakenByLonger(const PathPlan& plan, const std::vector<std::vector<double>>& probabilities,
                     size_t owner, const TokenPath& path) {
  double taken = 0;
  for (size_t i = 0; i < plan.paths.size(); ++i) {
    for (size_t k = 0; i != owner && k < plan.paths[i].size(); ++k) {
      const TokenPath& longer = plan.paths[i][k];
      if (!BeginsWith(longer, path)) continue;
      if (!IsBetween(plan, path, longer)) taken += probabilities[i][k];
    }
  }
  return taken;
}

OptionScores ScoresOf(const PathPlan& plan, std::span<const RowOutput> outputs) {
  const double least = std::numeric_limits<double>::min();
  std::vector<std::vector<double>> logprobs(plan.paths.size());
  double max = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < plan.paths.size(); ++i) {
    for (size_t k = 0; k < plan.paths[i].size(); ++k) {
      logprobs[i].push_back(PathLogprob(plan, plan.paths[i][k], plan.places[i][k], outputs));
      max = std::max(max, logprobs[i].back());
    }
  }
  // Relative to the likeliest path, so that the probabilities of long options do not underflow.
  std::vector<std::vector<double>> relative = logprobs;
  for (auto& of_option : relative) {
    for (double& p : of_option) p = std::exp(p - max);
  }
  OptionScores scores;
  double mass = 0;
  for (size_t i = 0; i < plan.paths.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < plan.paths[i].size(); ++k) {
      sum += relative[i][k] -
             std::min(relative[i][k], TakenByLonger(plan, relative, i, plan.paths[i][k]));
    }
    scores.logprobs.push_back(std::log(std::max(sum, least)) + max);
    mass += std::exp(scores.logprobs.back());
  }
  scores.mass = std::min(mass, 1.0);
  return scores;
}

}  // namespace

QuestionReads ReadPaths(const Request& base, std::vector<TokenId> prompt,
                        const std::vector<std::vector<TokenPath>>& options, bool want_mass) {
  PathPlan plan = MakePlan(options);
  SKEIN_CHECK(plan.rows[0].tokens.size() <= static_cast<size_t>(kMaxLabels));
  const bool want_log_sum_exp = want_mass || plan.rows.size() > 1;
  QuestionReads reads;
  for (const PathRow& row : plan.rows) {
    Request request = base;
    request.prompt = prompt;
    request.prompt.insert(request.prompt.end(), row.before.begin(), row.before.end());
    request.output = LabelSpec{row.tokens, want_log_sum_exp};
    if (row.before.size() > 1) {
      request.prompt_logprobs = {.num_top = 0, .start = static_cast<int32_t>(prompt.size()) + 1};
    }
    reads.rows.push_back({std::move(request), true});
  }
  reads.read = [plan = std::move(plan), want_log_sum_exp](std::span<const RowOutput> outputs) {
    OptionScores scores = ScoresOf(plan, outputs);
    if (!want_log_sum_exp) scores.mass.reset();
    return scores;
  };
  return reads;
}

}  // namespace skein
