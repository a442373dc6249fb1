#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "skein/request.h"

namespace skein {

// The record of one request by a load generator. Times are in microseconds.
struct LoadRecord {
  std::string request_class;  // of the workload; empty if it has none
  bool ok = false;            // the answer came to its end
  std::string error;          // the reason if not ok
  TimeUs ttft_us = 0;  // from sending to the first token; only meaningful if there is a token
  TimeUs e2el_us = 0;  // from sending to the last piece of the answer
  std::vector<TimeUs> itl_us;  // between pieces of the answer that carry tokens
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;  // prompt tokens taken from a prefix cache
  std::optional<TimeUs> slo_ttft_us;
  std::optional<TimeUs> slo_tpot_us;
};

// Deadlines that every request must meet, in addition to its own, to count in goodput.
struct GoodputTargets {
  std::optional<double> ttft_ms, tpot_ms, e2el_ms;

  bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};

// Parses "ttft:250", "tpot:50", "e2el:1000" (milliseconds, > 0), each at most once.
Result<GoodputTargets> ParseGoodput(const std::vector<std::string>& targets);

// Mean, median, population standard deviation and percentiles of a sample; zeros if it is empty.
struct Distribution {
  double mean = 0, median = 0, std = 0, p90 = 0, p95 = 0, p99 = 0;
};

// The quantile q in [0, 1], with linear interpolation between closest ranks, as numpy.percentile.
// REQUIRES: `sorted` is ascending and not empty.
double Quantile(const std::vector<double>& sorted, double q);
double Median(std::vector<double> values);  // 0 if there are no values
// The mean of the values. If there are three or more, the largest counts as the second largest, so
// that one outlier does not count and a repeated large value does. 0 if there are no values.
double MeanButOutlier(std::vector<double> values);
Distribution Summarize(std::vector<double> values);

// Figures of one group of requests: all requests or those of one class. Except for `failed`, only
// completed requests count.
struct LoadFigures {
  std::string request_class;  // empty for the whole load
  int64_t completed = 0;
  int64_t failed = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;
  double request_throughput = 0;          // throughputs are per second
  std::optional<double> request_goodput;  // unset if no request has a deadline
  std::optional<double> slo_attainment;   // share of all requests, failed ones included
  // The shares of requests that met their own deadline of this kind, among those that have one.
  // Failed requests are included.
  std::optional<double> ttft_attainment, tpot_attainment;
  double input_throughput = 0;        // tokens
  double output_throughput = 0;       // tokens
  double total_token_throughput = 0;  // tokens, prompt and output
  // The TPOT of a request with at least two output tokens is (E2EL - TTFT) / (output_tokens - 1).
  Distribution ttft_ms, tpot_ms, itl_ms, e2el_ms;
};

// Figures of a load that only the engine knows.
struct EngineFigures {
  double prefill_time_s = 0;  // in steps that carried only prompt tokens
  double decode_time_s = 0;   // in steps that carried only decode rows
  double mixed_time_s = 0;    // in steps with both
  // Prompt tokens computed (not cached) per second of prefill and mixed steps; and output tokens
  // after each request's first one per second of decode and mixed steps. A mixed step counts for
  // both figures, so both are lower bounds if there are mixed steps. 0 if there was no step of
  // these kinds.
  double prefill_throughput = 0;
  double decode_throughput = 0;
  int64_t peak_kv_bytes = 0;  // the highest use by requests that was observed
  int64_t wasted_decode_slots = 0;
  int64_t num_preemptions = 0;
  int64_t steps = 0;
};

struct LoadReport {
  double duration_s = 0;
  LoadFigures total;
  std::vector<LoadFigures> classes;  // in order of name; empty if the requests have no classes
  // Messages with their counts, most frequent first.
  std::vector<std::pair<std::string, int64_t>> errors;
  std::optional<EngineFigures> engine;
};

LoadReport MakeLoadReport(const std::vector<LoadRecord>& records, TimeUs duration_us,
                          const GoodputTargets& goodput);

// Makes JSON with the names of `vllm bench serve`: duration, completed, ..., p99_e2el_ms. Figures
// that `vllm bench serve` lacks (classes, errors, engine figures, slo_attainment and its parts)
// have names of our own. request_goodput occurs a second time as goodput.
nlohmann::ordered_json LoadReportToJson(const LoadReport& report);

// Makes a table for a terminal. It ends with a line break.
std::string LoadReportToTable(const LoadReport& report, const std::string& title);

}  // namespace skein
