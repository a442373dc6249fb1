#include "server/metrics.h"

#include <prometheus/text_serializer.h>

#include <chrono>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

using prometheus::ClientMetric;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;

// The buckets begin at 0.1 ms, since a decision takes only milliseconds.
const Histogram::BucketBoundaries& SecondsBuckets() {
  static const Histogram::BucketBoundaries buckets = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
      0.25,   0.5,     1,      2.5,   5,      10,    25,   50,    100,  250};
  return buckets;
}

const Histogram::BucketBoundaries& TokenBuckets() {
  static const Histogram::BucketBoundaries buckets = {
      1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};
  return buckets;
}

double Seconds(TimeUs us) { return static_cast<double>(us) / 1e6; }

// The label of a deadline: the smallest bound, in seconds, that is at least the deadline. Clients
// choose deadlines freely and each label is a time series, so there are only a few bounds.
const char* SloLabel(TimeUs slo_us) {
  constexpr std::pair<TimeUs, const char*> kBounds[] = {
      {10'000, "0.01"},  {20'000, "0.02"}, {50'000, "0.05"},   {100'000, "0.1"},
      {250'000, "0.25"}, {500'000, "0.5"}, {1'000'000, "1"},   {2'000'000, "2"},
      {4'000'000, "4"},  {6'000'000, "6"}, {10'000'000, "10"}, {30'000'000, "30"},
      {60'000'000, "60"}};
  for (const auto& [bound_us, label] : kBounds) {
    if (slo_us <= bound_us) return label;
  }
  return "+Inf";
}

// The quantile q of the errors, interpolated linearly between bounds. Errors above the last bound
// count as equal to it.
double ErrorQuantile(const ErrorHistogram& histogram, double q) {
  const auto& bounds = EngineStats::kErrorBounds;
  uint64_t total = 0;
  for (const uint64_t count : histogram.counts) total += count;
  if (total == 0) return 0;
  double left = q * static_cast<double>(total);
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto count = static_cast<double>(histogram.counts[i]);
    const double low = i == 0 ? 0 : bounds[i - 1];
    if (left <= count && count > 0) return low + (bounds[i] - low) * left / count;
    left -= count;
  }
  return bounds.back();
}

// Collects the metrics that are read from the engine on demand.
class EngineFamilies {
 public:
  void Add(const std::string& name, const std::string& help, MetricType type, double value,
           std::vector<ClientMetric::Label> labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = value;
    metric.gauge.value = value;
    FamilyOf(name, help, type).metric.push_back(std::move(metric));
  }
  // Adds a histogram. `counts` holds the number of values up to each of `bounds`, then the number
  // of larger values.
  void AddHistogram(const std::string& name, const std::string& help, const auto& counts,
                    const auto& bounds, double sum, std::vector<ClientMetric::Label> labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    uint64_t cumulative = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      cumulative += counts[i];
      const bool last = i >= bounds.size();
      metric.histogram.bucket.push_back({cumulative, last ? std::numeric_limits<double>::infinity()
                                                          : static_cast<double>(bounds[i])});
    }
    metric.histogram.sample_count = cumulative;
    metric.histogram.sample_sum = sum;
    FamilyOf(name, help, MetricType::Histogram).metric.push_back(std::move(metric));
  }
  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  MetricFamily& FamilyOf(const std::string& name, const std::string& help, MetricType type) {
    for (MetricFamily& family : families_) {
      if (family.name == name) return family;
    }
    return families_.emplace_back(MetricFamily{name, help, type, {}});
  }
  std::vector<MetricFamily> families_;
};

double Count(uint64_t value) { return static_cast<double>(value); }

// The metrics of one model's engine.
struct EngineMetrics {
  std::vector<ClientMetric::Label> labels;
  EngineFamilies* out;

  void Gauge(const char* name, const char* help, double value) const {
    out->Add(name, help, MetricType::Gauge, value, labels);
  }
  void Counter(const char* name, const char* help, double value) const {
    out->Add(name, help, MetricType::Counter, value, labels);
  }
  void CounterBy(const char* name, const char* help, const char* label, const char* kind,
                 double value) const {
    auto more = labels;
    more.push_back({label, kind});
    out->Add(name, help, MetricType::Counter, value, std::move(more));
  }
};

// Adds the hand-overs of requests to the decode peer.
void AddHandover(const EngineStats& s, const EngineMetrics& engine) {
  engine.Counter("skein_handed_over_total", "Requests that went to the decode peer.",
                 Count(s.requests_handed_over));
  engine.Counter("skein_taken_back_total", "Those of them that were decoded here in the end.",
                 Count(s.requests_taken_back));
  engine.Counter("skein_handover_blocks_total", "KV blocks that were sent to the decode peer.",
                 Count(s.handover_blocks));
}

void AddRefusals(const EngineStats& s, const EngineMetrics& engine) {
  constexpr char kName[] = "skein_calls_refused_total";
  constexpr char kHelp[] =
      "Calls refused for the length of the queue, by whether their prompts had been made.";
  engine.CounterBy(kName, kHelp, "prompts", "made", Count(s.calls_refused));
  engine.CounterBy(kName, kHelp, "prompts", "none", Count(s.calls_refused_early));
}

void AddScheduling(const EngineStats& s, const EngineMetrics& engine) {
  AddHandover(s, engine);
  AddRefusals(s, engine);
  constexpr char kRounds[] = "skein_scheduler_rounds_total";
  constexpr char kRoundsHelp[] = "Scheduling rounds, by cause.";
  engine.CounterBy(kRounds, kRoundsHelp, "cause", "arrival", Count(s.rounds_arrival));
  engine.CounterBy(kRounds, kRoundsHelp, "cause", "cancellation", Count(s.rounds_cancellation));
  engine.CounterBy(kRounds, kRoundsHelp, "cause", "timer", Count(s.rounds_timer));
  engine.CounterBy(kRounds, kRoundsHelp, "cause", "completion", Count(s.rounds_completion));
  constexpr char kCommands[] = "skein_scheduler_commands_total";
  constexpr char kCommandsHelp[] = "Orders of scheduling rounds to the executor.";
  engine.CounterBy(kCommands, kCommandsHelp, "command", "submit",
                   Count(s.steps_oneshot + s.steps_mixed + s.steps_decode));
  engine.CounterBy(kCommands, kCommandsHelp, "command", "preempt", Count(s.steps_preempted));
  engine.CounterBy(kCommands, kCommandsHelp, "command", "resume", Count(s.steps_resumed));
  engine.Counter("skein_steps_dropped_total",
                 "Dropped steps: suspended ones, and running ones whose requests are all gone.",
                 Count(s.steps_dropped));
  engine.Counter("skein_preempt_signals_total", "Signals that stopped a running step.",
                 Count(s.signals));
  engine.Counter("skein_preempt_blocking_seconds_total",
                 "From such a signal to the step's standstill.", Seconds(s.blocking_us));
  engine.Gauge("skein_preempt_blocking_seconds_max", "The longest of these.",
               Seconds(s.max_blocking_us));
  engine.Counter(
      "skein_preempt_wakeups_total",
      "Threads that had to wake: the engine's for an arrival, the alarm's for a set time.",
      Count(s.wakeups));
  engine.Counter("skein_preempt_wakeup_seconds_total",
                 "From such an arrival or set time until the thread runs, apart from blocking.",
                 Seconds(s.wakeup_us));
  engine.Gauge("skein_preempt_wakeup_seconds_max", "The longest of these.",
               Seconds(s.max_wakeup_us));
  engine.Counter("skein_scheduler_seconds_total", "Time in scheduling rounds.",
                 Seconds(s.scheduler_us));
}

// Adds the errors of the cost model, which predicts the time from a request's first step to its
// first token.
void AddPrediction(const ModelEntry& model, const EngineStats& stats, EngineFamilies* out) {
  const auto add = [&](const char* alone, const ErrorHistogram& errors) {
    const std::vector<ClientMetric::Label> labels = {{"model_name", model.name()},
                                                     {"alone", alone}};
    out->AddHistogram("skein_ttft_prediction_error",
                      "|predicted / real - 1| of the time from a request's first step to its first "
                      "token, by whether it had the device to itself.",
                      errors.counts, EngineStats::kErrorBounds, errors.sum, labels);
    for (const auto& [quantile, q] : {std::pair("0.5", 0.5), std::pair("0.95", 0.95)}) {
      auto more = labels;
      more.push_back({"q", quantile});
      out->Add("skein_ttft_prediction_error_quantile", "Quantiles of those since the start.",
               MetricType::Gauge, ErrorQuantile(errors, q), std::move(more));
    }
  };
  add("true", stats.ttft_error_alone);
  add("false", stats.ttft_error_shared);
}

void AddKvBlocks(const ModelEntry& model, const EngineStats& s, const EngineMetrics& engine) {
  engine.Gauge(
      "vllm:kv_cache_usage_perc", "Share of KV blocks in use by requests; 1 is all.",
      s.kv_blocks_total == 0 ? 0 : static_cast<double>(s.kv_blocks_used) / s.kv_blocks_total);
  engine.Gauge("skein_kv_blocks", "KV blocks in the pool.", s.kv_blocks_total);
  const int64_t block_tokens = s.kv_blocks_total > 0 ? model.max_kv_tokens / s.kv_blocks_total : 0;
  engine.out->Add("vllm:cache_config_info", "The KV cache.", MetricType::Gauge, 1,
                  {{"block_size", std::to_string(block_tokens)},
                   {"model_name", model.name()},
                   {"num_gpu_blocks", std::to_string(s.kv_blocks_total)}});
  engine.Gauge("skein_kv_blocks_cached", "KV blocks held by the prefix cache alone.",
               s.kv_blocks_cached);
  engine.Gauge("skein_host_kv_blocks", "KV blocks that the memory of the host has room for.",
               s.host_kv_blocks_total);
  engine.Gauge("skein_host_kv_blocks_used", "Those with the contents of an evicted block.",
               s.host_kv_blocks_used);
  engine.Counter("skein_host_kv_saved_total", "Evicted KV blocks copied to the host.",
                 Count(s.host_kv_blocks_saved));
  engine.Counter("skein_host_kv_loaded_total", "KV blocks copied back from the host.",
                 Count(s.host_kv_blocks_loaded));
}

void AddEngine(const ModelEntry& model, EngineFamilies* out) {
  const EngineStats s = model.engine->Stats();
  const EngineMetrics engine = {{{"model_name", model.name()}}, out};
  engine.Gauge("vllm:num_requests_running", "Requests being computed.", s.num_requests_running);
  engine.Gauge("vllm:num_requests_waiting", "Requests in the queue.", s.num_requests_waiting);
  AddKvBlocks(model, s, engine);
  engine.Counter("vllm:prompt_tokens_total", "Prompt tokens, computed or cached.",
                 Count(s.prompt_tokens));
  engine.Counter("vllm:generation_tokens_total", "Tokens generated.", Count(s.generation_tokens));
  engine.Counter("vllm:num_preemptions_total", "Requests recomputed because KV blocks ran out.",
                 Count(s.num_preemptions));
  engine.Counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache.",
                 Count(s.prefix_cache_queries));
  engine.Counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache.",
                 Count(s.prefix_cache_hits));
  out->AddHistogram("vllm:iteration_tokens_total", "Tokens per step of the engine.",
                    s.iteration_tokens, EngineStats::kIterationTokenBounds,
                    static_cast<double>(s.iteration_tokens_sum), engine.labels);

  constexpr char kRequests[] = "skein_requests_total";
  constexpr char kRequestsHelp[] = "Requests finished, by execution class.";
  engine.CounterBy(kRequests, kRequestsHelp, "class", "oneshot", Count(s.requests_oneshot));
  engine.CounterBy(kRequests, kRequestsHelp, "class", "decode", Count(s.requests_decode));
  constexpr char kSteps[] = "skein_steps_total";
  constexpr char kStepsHelp[] = "Steps of the engine, by class of plan.";
  engine.CounterBy(kSteps, kStepsHelp, "class", "oneshot", Count(s.steps_oneshot));
  engine.CounterBy(kSteps, kStepsHelp, "class", "mixed", Count(s.steps_mixed));
  engine.CounterBy(kSteps, kStepsHelp, "class", "decode", Count(s.steps_decode));
  constexpr char kTime[] = "skein_step_seconds_total";
  constexpr char kTimeHelp[] = "Time in steps, by the rows they had.";
  engine.CounterBy(kTime, kTimeHelp, "rows", "prefill", Seconds(s.prefill_us));
  engine.CounterBy(kTime, kTimeHelp, "rows", "decode", Seconds(s.decode_us));
  engine.CounterBy(kTime, kTimeHelp, "rows", "mixed", Seconds(s.mixed_us));
  engine.Counter("skein_shared_prefixes_total", "Prefixes computed once for several requests.",
                 Count(s.shared_prefixes));
  engine.Counter("skein_shared_prefix_tokens_total",
                 "Tokens taken from those prefixes instead of computed.",
                 Count(s.shared_prefix_tokens));
  engine.Counter("skein_prefix_waits_total",
                 "Requests that waited for another to compute their prefix.",
                 Count(s.prefix_waits));
  engine.Counter("skein_decode_slots_total", "Assigned slots of the decode set.",
                 Count(s.decode_slots_taken));
  engine.Counter("skein_wasted_decode_slots_total", "Slot-steps held by finished requests.",
                 Count(s.wasted_decode_slots));
  engine.Gauge(
      "skein_prefix_groups_shared_tokens",
      "Tokens of the prefix that the whole decode batch shares (decode set prefix-homogeneous).",
      static_cast<double>(s.prefix_groups_shared_tokens));
  engine.Counter("skein_prefix_groups_joined_total",
                 "Requests that joined the batch of the decode set prefix-homogeneous.",
                 Count(s.prefix_groups_joined));
  engine.Counter("skein_prefix_groups_overdue_total",
                 "Those of them that had waited up to the bound.", Count(s.prefix_groups_overdue));
  engine.Counter("skein_prefix_groups_stops_total",
                 "Rounds that the stop rule of the decode set prefix-homogeneous ended.",
                 Count(s.prefix_groups_stops));
  AddScheduling(s, engine);
  AddPrediction(model, s, out);
}

// Adds the names of the adapters that have running or waiting requests, in vLLM's form for load
// balancers. The value is the current time, which tells which of several reports is the latest.
void AddAdapters(const ModelEntry& base, const ModelRegistry& models, EngineFamilies* out) {
  const EngineStats stats = base.engine->Stats();
  int32_t num_adapters = 0;
  std::string running, waiting;
  for (const ModelEntry& entry : models.entries()) {
    if (entry.engine != base.engine || entry.adapter_id == 0) continue;
    ++num_adapters;
    if (entry.adapter_id > 64) continue;
    const uint64_t bit = uint64_t{1} << (entry.adapter_id - 1);
    const auto add = [&](uint64_t set, std::string* names) {
      if ((set & bit) != 0) *names += (names->empty() ? "" : ",") + entry.name();
    };
    add(stats.running_adapters, &running);
    add(stats.waiting_adapters, &waiting);
  }
  if (num_adapters == 0) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  out->Add("vllm:lora_requests_info", "Adapters with requests that run or wait; Unix time.",
           MetricType::Gauge, std::chrono::duration<double>(now).count(),
           {{"max_lora", std::to_string(num_adapters)},
            {"model_name", base.name()},
            {"running_lora_adapters", running},
            {"waiting_lora_adapters", waiting}});
}

const char* ReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

}  // namespace

Metrics::Metrics()
    : slo_ttft_(
          &prometheus::BuildCounter()
               .Name("skein_slo_ttft_total")
               .Help("Requests with slo_ttft_ms, by class of route, by the deadline in seconds "
                     "(rounded up) and by whether it was met.")
               .Register(registry_)),
      slo_tpot_(&prometheus::BuildCounter()
                     .Name("skein_slo_tpot_total")
                     .Help("Requests with slo_tpot_ms and an answer of two tokens or more, "
                           "likewise.")
                     .Register(registry_)) {}

void Metrics::SetModels(const ModelRegistry& models) {
  for (const ModelEntry& entry : models.entries()) {
    const Labels labels = {{"model_name", entry.name()}};
    const auto histogram = [&](const char* name, const char* help,
                               const Histogram::BucketBoundaries& buckets, Labels more = {}) {
      more.insert(labels.begin(), labels.end());
      return &prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(more,
                                                                                         buckets);
    };
    const auto counter = [&](const char* name, const char* help, Labels more) {
      more.insert(labels.begin(), labels.end());
      return &prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(more);
    };
    const auto& seconds = SecondsBuckets();
    PerModel m;
    m.ttft = histogram("vllm:time_to_first_token_seconds", "Arrival to first token.", seconds);
    m.inter_token = histogram("vllm:inter_token_latency_seconds", "Token to next token.", seconds);
    m.e2e = histogram("vllm:e2e_request_latency_seconds", "Arrival to last token.", seconds);
    m.queue = histogram("vllm:request_queue_time_seconds", "Arrival to first step.", seconds);
    m.prefill =
        histogram("vllm:request_prefill_time_seconds", "First step to first token.", seconds);
    m.decode = histogram("vllm:request_decode_time_seconds", "First token to last.", seconds);
    m.tokenize =
        histogram("skein_request_tokenize_time_seconds", "Tokenizing of the prompt.", seconds);
    // These metrics follow text-embeddings-inference, which splits the time into tokenizing,
    // waiting and computing.
    m.split_queue =
        histogram("skein_request_queue_time_seconds", "Arrival to first step.", seconds);
    m.inference =
        histogram("skein_request_inference_time_seconds", "First step to last token.", seconds);
    m.prompt_tokens =
        histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", TokenBuckets());
    m.generation_tokens =
        histogram("vllm:request_generation_tokens", "Tokens generated.", TokenBuckets());
    constexpr char kByClass[] = "skein_e2e_request_latency_seconds";
    constexpr char kByClassHelp[] = "Arrival to last token, by execution class.";
    m.e2e_oneshot = histogram(kByClass, kByClassHelp, seconds, {{"class", "oneshot"}});
    m.e2e_decode = histogram(kByClass, kByClassHelp, seconds, {{"class", "decode"}});
    for (FinishReason reason : {FinishReason::kStop, FinishReason::kLength,
                                FinishReason::kCancelled, FinishReason::kError}) {
      m.finished[reason] = counter("vllm:request_success_total", "Choices ended, by reason.",
                                   {{"finished_reason", ReasonName(reason)}});
    }
    models_.emplace(entry.name(), std::move(m));
  }
}

void Metrics::CountFinish(const ModelEntry& model, FinishReason reason) {
  models_.at(model.name()).finished.at(reason)->Increment();
}

void Metrics::ObserveInterToken(const ModelEntry& model, TimeUs interval_us) {
  models_.at(model.name()).inter_token->Observe(Seconds(interval_us));
}

void Metrics::Observe(const ModelEntry& model, const RequestRecord& record) {
  const PerModel& m = models_.at(model.name());
  const RequestTimes& t = record.times;
  m.tokenize->Observe(Seconds(record.tokenize_us));
  m.prompt_tokens->Observe(record.prompt_tokens);
  m.generation_tokens->Observe(record.generation_tokens);
  if (t.finished_us != 0) {
    const double e2e = Seconds(t.finished_us - t.arrival_us);
    m.e2e->Observe(e2e);
    (record.one_shot ? m.e2e_oneshot : m.e2e_decode)->Observe(e2e);
  }
  if (t.first_scheduled_us != 0) {
    const double queue = Seconds(t.first_scheduled_us - t.arrival_us);
    m.queue->Observe(queue);
    m.split_queue->Observe(queue);
    if (t.finished_us != 0) m.inference->Observe(Seconds(t.finished_us - t.first_scheduled_us));
  }
  // A request that generates nothing gets its answer at its end.
  const TimeUs answered_us = t.first_token_us != 0 ? t.first_token_us : t.finished_us;
  if (record.slo_ttft_us && answered_us != 0) {
    CountSlo(slo_ttft_, model, record.route_class, *record.slo_ttft_us,
             answered_us - t.arrival_us <= *record.slo_ttft_us);
  }
  if (t.first_token_us == 0) return;
  const TimeUs ttft_us = t.first_token_us - t.arrival_us;
  m.ttft->Observe(Seconds(ttft_us));
  m.prefill->Observe(Seconds(t.first_token_us - t.first_scheduled_us));
  if (t.finished_us == 0) return;
  const TimeUs decode_us = t.finished_us - t.first_token_us;
  if (!record.one_shot) m.decode->Observe(Seconds(decode_us));
  if (record.slo_tpot_us && record.longest_choice_tokens > 1) {
    CountSlo(slo_tpot_, model, record.route_class, *record.slo_tpot_us,
             decode_us <= *record.slo_tpot_us * (record.longest_choice_tokens - 1));
  }
}

void Metrics::CountSlo(prometheus::Family<prometheus::Counter>* family, const ModelEntry& model,
                       RouteClass route_class, TimeUs slo_us, bool met) {
  family
      ->Add({{"model_name", model.name()},
             {"class", NameOf(route_class)},
             {"slo_le", SloLabel(slo_us)},
             {"met", met ? "true" : "false"}})
      .Increment();
}

std::string Metrics::Render(const ModelRegistry& models) const {
  std::vector<MetricFamily> families = registry_.Collect();
  EngineFamilies engine;
  for (const ModelEntry& entry : models.entries()) {
    AddEngine(entry, &engine);
    if (entry.adapter_id == 0) AddAdapters(entry, models, &engine);
  }
  std::vector<MetricFamily> more = engine.Take();
  families.insert(families.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace skein
