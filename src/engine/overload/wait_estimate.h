#pragma once

#include <cstdint>

#include "sched/sequence.h"
#include "skein/request.h"

namespace skein {

// Tokens of requests, by execution class.
struct ClassTokens {
  int64_t oneshot = 0;  // of prompts
  int64_t decode = 0;
  int64_t budget = 0;  // the most tokens of output of those that decode

  int64_t prompts() const { return oneshot + decode; }
  int64_t& Of(ExecutionClass of_class) {
    return of_class == ExecutionClass::kOneShot ? oneshot : decode;
  }
  int64_t Of(ExecutionClass of_class) const {
    return of_class == ExecutionClass::kOneShot ? oneshot : decode;
  }
  ClassTokens& operator+=(const ClassTokens& other) {
    oneshot += other.oneshot;
    decode += other.decode;
    budget += other.budget;
    return *this;
  }
  ClassTokens& operator-=(const ClassTokens& other) {
    oneshot -= other.oneshot;
    decode -= other.decode;
    budget -= other.budget;
    return *this;
  }
};

// Estimates how long new work waits, and how long it then runs.
//
// A wait is the time of the waiting prompt tokens at the measured rate at which the engine has
// lately computed prompts (Little's law). The rate includes other work of that time, such as decode
// steps. It is measured over steps during which prompts waited or ran. The classes have rates of
// their own, since an order may prefer one class, and requests that decode also wait for slots. The
// longest of these estimates counts: that of all waiting prompts, that of the request's class, and
// for a request that decodes the time in which the slots run those before it. A class that was
// hardly measured is taken to get the whole rate.
//
// A request runs for a time in proportion to its size: the most tokens of its output if it decodes,
// else the tokens of its prompt. The factor is the mean of the latest requests of its class.
// Outputs that end early are thus expected. Runs that have ended say nothing of a load that has
// just begun: for a request that decodes, the latest times between two tokens of one output count
// as well, by the share of the most tokens that complete outputs have reached. The longer estimate
// counts.
//
// Older measurements count less. Not thread-safe; may be copied.
class WaitEstimate {
 public:
  // `us_per_token`: the time of a prompt token before any step was measured. 0: not known; the
  // estimated wait is then 0. `num_slots` requests decode at once.
  explicit WaitEstimate(double us_per_token = 0, int32_t num_slots = 1)
      : first_us_per_token_(us_per_token), num_slots_(num_slots) {}

  // A step that took `busy_us` has completed prompts of `done` tokens, including cached ones;
  // prompts of `waiting` tokens waited when it began.
  void Observe(const ClassTokens& done, const ClassTokens& waiting, TimeUs busy_us);
  // The wait of a new request behind `waiting` tokens.
  TimeUs WaitOf(ExecutionClass of_class, const ClassTokens& waiting) const;
  // The time of a prompt's tokens, including other work.
  TimeUs PromptUs(int64_t num_tokens) const;

  struct Run {
    ExecutionClass execution_class = ExecutionClass::kDecode;
    int64_t size = 0;
    int64_t num_tokens = 0;  // of output
    TimeUs us = 0;           // from the request's beginning to its end
    // Whether it has an answer. Without one it would have taken longer: this counts only if it is
    // longer than expected.
    bool complete = true;
  };
  void ObserveRun(const Run& run);
  // An output has got a token at `now_us`, `us` after the one before.
  void ObserveToken(TimeUs us, TimeUs now_us);
  // The time from a request's beginning to its end; 0 if none was measured.
  TimeUs RunOf(ExecutionClass of_class, int64_t size) const;

 private:
  static constexpr double kMemoryUs = 5e6;   // after this busy time, a step counts 1 / e
  static constexpr double kPriorUs = 250e3;  // the weight of the common rate in a class's rate
  static constexpr double kRunsKept = 1 - 1.0 / 32;  // share of the weight that earlier runs keep
  static constexpr double kGapsMemoryUs = 1e6;  // after this time, a gap of tokens counts 1 / e

  // Weighted sums.
  struct Rate {
    double tokens = 0;
    double busy_us = 0;

    void Observe(int64_t num_tokens, TimeUs busy_us);
  };
  struct Runs {
    double size = 0;
    double us = 0;
    // Sums over complete runs alone.
    double complete_size = 0;
    double num_tokens = 0;
  };

  double UsPerToken() const;
  double UsPerToken(const Rate& of_class) const;
  const Rate& RateOf(ExecutionClass of_class) const {
    return of_class == ExecutionClass::kOneShot ? oneshot_ : decode_;
  }
  const Runs& RunsOf(ExecutionClass of_class) const {
    return of_class == ExecutionClass::kOneShot ? oneshot_runs_ : decode_runs_;
  }

  double first_us_per_token_;
  int32_t num_slots_;
  Rate all_, oneshot_, decode_;
  Runs oneshot_runs_, decode_runs_;
  // The times between two tokens of one output: weighted sums, and the time of the last token.
  double num_gaps_ = 0, gaps_us_ = 0;
  TimeUs gap_at_us_ = 0;
};

}  // namespace skein
