#include "bench/serving/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "base/check.h"

namespace skein {
namespace {

constexpr size_t kMaxErrorKinds = 20;

std::optional<double> TpotMs(const LoadRecord& record) {
  if (record.output_tokens < 2) return std::nullopt;
  return static_cast<double>(record.e2el_us - record.ttft_us) / 1e3 /
         static_cast<double>(record.output_tokens - 1);
}

bool MeetsTargets(const LoadRecord& record, const GoodputTargets& goodput) {
  if (!record.ok) return false;
  const double ttft_ms = static_cast<double>(record.ttft_us) / 1e3;
  if (record.slo_ttft_us && record.ttft_us > *record.slo_ttft_us) return false;
  const double tpot_ms = TpotMs(record).value_or(0);
  if (record.slo_tpot_us && tpot_ms * 1e3 > static_cast<double>(*record.slo_tpot_us)) return false;
  if (goodput.ttft_ms && ttft_ms > *goodput.ttft_ms) return false;
  if (goodput.tpot_ms && tpot_ms > *goodput.tpot_ms) return false;
  return !goodput.e2el_ms || static_cast<double>(record.e2el_us) / 1e3 <= *goodput.e2el_ms;
}

// The number of requests with a deadline of one kind, and how many of them met it.
struct DeadlineCount {
  int64_t met = 0, all = 0;

  void Add(bool is_met) {
    met += is_met;
    ++all;
  }
  std::optional<double> share() const {
    if (all == 0) return std::nullopt;
    return static_cast<double>(met) / static_cast<double>(all);
  }
};

LoadFigures MakeFigures(std::string request_class, const std::vector<const LoadRecord*>& records,
                        double duration_s, const GoodputTargets& goodput) {
  LoadFigures figures;
  figures.request_class = std::move(request_class);
  std::vector<double> ttft, tpot, itl, e2el;
  bool has_targets = goodput.any();
  int64_t good = 0;
  DeadlineCount first, further;
  for (const LoadRecord* record : records) {
    has_targets = has_targets || record->slo_ttft_us || record->slo_tpot_us;
    good += MeetsTargets(*record, goodput);
    if (record->slo_ttft_us) first.Add(record->ok && record->ttft_us <= *record->slo_ttft_us);
    if (record->slo_tpot_us) {
      const double tpot_us = 1e3 * TpotMs(*record).value_or(0);
      further.Add(record->ok && tpot_us <= static_cast<double>(*record->slo_tpot_us));
    }
    if (!record->ok) {
      ++figures.failed;
      continue;
    }
    ++figures.completed;
    figures.input_tokens += record->prompt_tokens;
    figures.output_tokens += record->output_tokens;
    figures.cached_tokens += record->cached_tokens;
    e2el.push_back(static_cast<double>(record->e2el_us) / 1e3);
    if (record->output_tokens > 0) ttft.push_back(static_cast<double>(record->ttft_us) / 1e3);
    if (const auto value = TpotMs(*record)) tpot.push_back(*value);
    for (const TimeUs us : record->itl_us) itl.push_back(static_cast<double>(us) / 1e3);
  }
  const auto per_second = [&](int64_t count) {
    return duration_s > 0 ? static_cast<double>(count) / duration_s : 0.0;
  };
  figures.request_throughput = per_second(figures.completed);
  figures.input_throughput = per_second(figures.input_tokens);
  figures.output_throughput = per_second(figures.output_tokens);
  figures.total_token_throughput = per_second(figures.input_tokens + figures.output_tokens);
  if (has_targets) {
    figures.request_goodput = per_second(good);
    figures.slo_attainment =
        records.empty() ? 0 : static_cast<double>(good) / static_cast<double>(records.size());
  }
  figures.ttft_attainment = first.share();
  figures.tpot_attainment = further.share();
  figures.ttft_ms = Summarize(std::move(ttft));
  figures.tpot_ms = Summarize(std::move(tpot));
  figures.itl_ms = Summarize(std::move(itl));
  figures.e2el_ms = Summarize(std::move(e2el));
  return figures;
}

void AddDistribution(const std::string& name, const Distribution& distribution,
                     nlohmann::ordered_json* json) {
  (*json)["mean_" + name] = distribution.mean;
  (*json)["median_" + name] = distribution.median;
  (*json)["std_" + name] = distribution.std;
  (*json)["p90_" + name] = distribution.p90;
  (*json)["p95_" + name] = distribution.p95;
  (*json)["p99_" + name] = distribution.p99;
}

void AddFigures(const LoadFigures& figures, nlohmann::ordered_json* json) {
  auto& out = *json;
  out["completed"] = figures.completed;
  out["failed"] = figures.failed;
  out["total_input_tokens"] = figures.input_tokens;
  out["total_output_tokens"] = figures.output_tokens;
  out["total_cached_tokens"] = figures.cached_tokens;
  out["request_throughput"] = figures.request_throughput;
  out["request_goodput"] = out["goodput"] = out["slo_attainment"] = nullptr;
  if (figures.request_goodput) {
    out["request_goodput"] = out["goodput"] = *figures.request_goodput;
    out["slo_attainment"] = *figures.slo_attainment;
  }
  out["ttft_attainment"] = out["tpot_attainment"] = nullptr;
  if (figures.ttft_attainment) out["ttft_attainment"] = *figures.ttft_attainment;
  if (figures.tpot_attainment) out["tpot_attainment"] = *figures.tpot_attainment;
  out["input_throughput"] = figures.input_throughput;
  out["output_throughput"] = figures.output_throughput;
  out["total_token_throughput"] = figures.total_token_throughput;
  AddDistribution("ttft_ms", figures.ttft_ms, json);
  AddDistribution("tpot_ms", figures.tpot_ms, json);
  AddDistribution("itl_ms", figures.itl_ms, json);
  AddDistribution("e2el_ms", figures.e2el_ms, json);
}

std::vector<std::pair<std::string, int64_t>> CountErrors(const std::vector<LoadRecord>& records) {
  std::map<std::string, int64_t> counts;
  for (const LoadRecord& record : records) {
    if (!record.ok) ++counts[record.error];
  }
  std::vector<std::pair<std::string, int64_t>> errors(counts.begin(), counts.end());
  std::stable_sort(errors.begin(), errors.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (errors.size() > kMaxErrorKinds) errors.resize(kMaxErrorKinds);
  return errors;
}

void AppendLine(std::string* out, const std::string& label, const std::string& value) {
  fmt::format_to(std::back_inserter(*out), "{:<38}{:>14}\n", label + ":", value);
}

void AppendDistributions(std::string* out, const LoadFigures& figures) {
  fmt::format_to(std::back_inserter(*out), "{:<10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "ms",
                 "mean", "median", "std", "p90", "p95", "p99");
  const std::pair<const char*, const Distribution*> rows[] = {{"TTFT", &figures.ttft_ms},
                                                              {"TPOT", &figures.tpot_ms},
                                                              {"ITL", &figures.itl_ms},
                                                              {"E2EL", &figures.e2el_ms}};
  for (const auto& [name, d] : rows) {
    fmt::format_to(std::back_inserter(*out),
                   "{:<10}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}\n", name, d->mean,
                   d->median, d->std, d->p90, d->p95, d->p99);
  }
}

void AppendClasses(std::string* out, const std::vector<LoadFigures>& classes) {
  fmt::format_to(std::back_inserter(*out), "{:<16}{:>8}{:>7}{:>10}{:>9}{:>11}{:>11}{:>11}\n",
                 "class", "done", "failed", "in SLO", "req/s", "TTFT mean", "TTFT p99", "E2EL p99");
  for (const LoadFigures& figures : classes) {
    const std::string attainment =
        figures.slo_attainment ? fmt::format("{:.1f} %", 100 * *figures.slo_attainment) : "-";
    fmt::format_to(
        std::back_inserter(*out), "{:<16}{:>8}{:>7}{:>10}{:>9.2f}{:>11.2f}{:>11.2f}{:>11.2f}\n",
        figures.request_class, figures.completed, figures.failed, attainment,
        figures.request_throughput, figures.ttft_ms.mean, figures.ttft_ms.p99, figures.e2el_ms.p99);
  }
}

void AppendEngine(std::string* out, const EngineFigures& engine) {
  AppendLine(out, "Prefill throughput (tok/s)", fmt::format("{:.2f}", engine.prefill_throughput));
  AppendLine(out, "Decode throughput (tok/s)", fmt::format("{:.2f}", engine.decode_throughput));
  AppendLine(out, "Prefill time (s)", fmt::format("{:.3f}", engine.prefill_time_s));
  AppendLine(out, "Decode time (s)", fmt::format("{:.3f}", engine.decode_time_s));
  AppendLine(out, "Mixed time (s)", fmt::format("{:.3f}", engine.mixed_time_s));
  AppendLine(out, "Peak KV (MiB)",
             fmt::format("{:.2f}", static_cast<double>(engine.peak_kv_bytes) / (1 << 20)));
  AppendLine(out, "Wasted decode slots", fmt::format("{}", engine.wasted_decode_slots));
}

}  // namespace

Result<GoodputTargets> ParseGoodput(const std::vector<std::string>& targets) {
  GoodputTargets goodput;
  for (const std::string& target : targets) {
    const size_t colon = target.find(':');
    const std::string name = target.substr(0, colon);
    std::optional<double>* slot = name == "ttft"   ? &goodput.ttft_ms
                                  : name == "tpot" ? &goodput.tpot_ms
                                  : name == "e2el" ? &goodput.e2el_ms
                                                   : nullptr;
    const std::string number = colon == std::string::npos ? "" : target.substr(colon + 1);
    double ms = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ms);
    if (slot == nullptr || slot->has_value() || error != std::errc() ||
        end != number.data() + number.size() || !(ms > 0) || !std::isfinite(ms)) {
      return Status(StatusCode::kInvalidArgument,
                    "goodput: '" + target +
                        "' is not one of ttft:MS, tpot:MS, e2el:MS (MS > 0), each at most once",
                    "goodput");
    }
    *slot = ms;
  }
  return goodput;
}

double Quantile(const std::vector<double>& sorted, double q) {
  SKEIN_CHECK(!sorted.empty() && q >= 0 && q <= 1);
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return Quantile(values, 0.5);
}

double MeanButOutlier(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t count = values.size();
  if (count >= 3) {
    std::nth_element(values.begin(), values.end() - 2, values.end());
    values[count - 1] = values[count - 2];
  }
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(count);
}

Distribution Summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double count = static_cast<double>(values.size());
  Distribution result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.std = std::sqrt(squares / count);
  result.median = Quantile(values, 0.5);
  result.p90 = Quantile(values, 0.9);
  result.p95 = Quantile(values, 0.95);
  result.p99 = Quantile(values, 0.99);
  return result;
}

LoadReport MakeLoadReport(const std::vector<LoadRecord>& records, TimeUs duration_us,
                          const GoodputTargets& goodput) {
  LoadReport report;
  report.duration_s = static_cast<double>(duration_us) / 1e6;
  std::vector<const LoadRecord*> all;
  std::map<std::string, std::vector<const LoadRecord*>> by_class;
  for (const LoadRecord& record : records) {
    all.push_back(&record);
    if (!record.request_class.empty()) by_class[record.request_class].push_back(&record);
  }
  report.total = MakeFigures("", all, report.duration_s, goodput);
  for (const auto& [name, members] : by_class) {
    report.classes.push_back(MakeFigures(name, members, report.duration_s, goodput));
  }
  report.errors = CountErrors(records);
  return report;
}

nlohmann::ordered_json LoadReportToJson(const LoadReport& report) {
  nlohmann::ordered_json json;
  json["duration"] = report.duration_s;
  AddFigures(report.total, &json);
  if (report.engine) {
    const EngineFigures& engine = *report.engine;
    json["prefill_throughput"] = engine.prefill_throughput;
    json["decode_throughput"] = engine.decode_throughput;
    json["prefill_time"] = engine.prefill_time_s;
    json["decode_time"] = engine.decode_time_s;
    json["mixed_time"] = engine.mixed_time_s;
    json["peak_kv_bytes"] = engine.peak_kv_bytes;
    json["wasted_decode_slots"] = engine.wasted_decode_slots;
    json["num_preemptions"] = engine.num_preemptions;
    json["steps"] = engine.steps;
  }
  json["classes"] = nlohmann::ordered_json::object();
  for (const LoadFigures& figures : report.classes) {
    AddFigures(figures, &json["classes"][figures.request_class]);
  }
  json["errors"] = nlohmann::ordered_json::object();
  for (const auto& [message, count] : report.errors) json["errors"][message] = count;
  return json;
}

std::string LoadReportToTable(const LoadReport& report, const std::string& title) {
  const LoadFigures& total = report.total;
  std::string out = fmt::format("{:=^60}\n", " " + title + " ");
  AppendLine(&out, "Completed requests", fmt::format("{}", total.completed));
  AppendLine(&out, "Failed requests", fmt::format("{}", total.failed));
  AppendLine(&out, "Duration (s)", fmt::format("{:.2f}", report.duration_s));
  AppendLine(&out, "Input tokens", fmt::format("{}", total.input_tokens));
  AppendLine(&out, "Input tokens from prefix cache", fmt::format("{}", total.cached_tokens));
  AppendLine(&out, "Output tokens", fmt::format("{}", total.output_tokens));
  AppendLine(&out, "Request throughput (req/s)", fmt::format("{:.2f}", total.request_throughput));
  if (total.request_goodput) {
    AppendLine(&out, "Request goodput (req/s)", fmt::format("{:.2f}", *total.request_goodput));
    AppendLine(&out, "SLO attainment (%)", fmt::format("{:.1f}", 100 * *total.slo_attainment));
  }
  AppendLine(&out, "Input throughput (tok/s)", fmt::format("{:.2f}", total.input_throughput));
  AppendLine(&out, "Output throughput (tok/s)", fmt::format("{:.2f}", total.output_throughput));
  AppendLine(&out, "Total throughput (tok/s)", fmt::format("{:.2f}", total.total_token_throughput));
  if (report.engine) AppendEngine(&out, *report.engine);
  AppendDistributions(&out, total);
  if (report.classes.size() > 1) AppendClasses(&out, report.classes);
  for (const auto& [message, count] : report.errors) {
    fmt::format_to(std::back_inserter(out), "{:>6} x {}\n", count, message);
  }
  return out;
}

}  // namespace skein
