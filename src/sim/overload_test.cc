// Tenfold overload on a virtual clock, with the engine's own rules for refusing and ending
// requests: the goodput of each preset against the most that clients who wait for their answers
// get.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/cost_profile.h"
#include "engine/engine_core.h"
#include "engine/overload/late_requests.h"
#include "engine/overload/queue_bound.h"
#include "sim/device.h"
#include "sim/sim_executor.h"
#include "skein/presets.h"

namespace skein {
namespace {

// About two cores and a model of 135M parameters.
constexpr const char* kTwoCores = R"({"name": "two cores", "tflops": {"bf16": 0.6},
    "bandwidth_gbps": 20, "memory_gb": 8, "step_us": 500, "row_us": 100,
    "matmul_efficiency": [[1, 1]], "attention_efficiency": [[1, 0.3]]})";

constexpr TimeUs kSecond = 1'000'000;
constexpr TimeUs kMaxWaitUs = 5 * kSecond;
constexpr TimeUs kPatienceUs = 2 * kMaxWaitUs;  // then a client gives up
constexpr TimeUs kLoadUs = 20 * kSecond;
constexpr TimeUs kWarmUpUs = 5 * kSecond;
constexpr int32_t kNumBlocks = 2000;
constexpr int32_t kVocabSize = 49152;

SimModelShape Smol() {
  SimModelShape shape;
  shape.num_layers = 30;
  shape.hidden_size = 576;
  shape.intermediate_size = 1536;
  shape.vocab_size = kVocabSize;
  shape.head_dim = 64;
  shape.q_width = 576;
  shape.kv_width = 384;
  shape.tie_embeddings = true;
  shape.max_position = 8192;
  return shape;
}

struct Client {
  TimeUs arrival_us = 0;
  int64_t num_tokens = 0;  // of prompts and output
  RequestId first_id = 0;
  int32_t num_requests = 0;
  int32_t num_left = 0;
  bool ended = false;
};

struct Counts {
  int64_t sent = 0, refused = 0, ended_late = 0, gave_up = 0;
  int64_t tokens = 0;           // of whole answers in time
  int64_t decisions = 0;        // among these
  std::vector<TimeUs> took_us;  // of these
  TimeUs busy_us = 0;

  int64_t accepted() const { return sent - refused; }
  double TokensPerSecond() const {
    return static_cast<double>(tokens * kSecond) / static_cast<double>(busy_us);
  }
};

// One server with its clients. Half of them ask two questions on one input, the others want a
// continuation of `output_tokens`.
class Server {
 public:
  Server(const std::string& preset, int32_t output_tokens)
      : output_tokens_(output_tokens),
        executor_(StepCost::Make(ParseDevice(kTwoCores).value(), Smol(), {}).value(), &clock_,
                  kVocabSize) {
    SchedulerConfig& scheduler = config_.scheduler;
    scheduler.policies = FindPreset(preset)->policies;
    scheduler.max_model_len = 8192;
    scheduler.num_kv_blocks = kNumBlocks;
    scheduler.max_num_seqs = 16;
    scheduler.max_num_batched_tokens = std::max(512, scheduler.policies.chunk_tokens);
    config_.vocab_size = kVocabSize;
    config_.max_wait_us = kMaxWaitUs;
    StepProfiler profiler(&executor_, &clock_, kVocabSize, kNumBlocks, GenerateSpec{});
    const CostProfileLimits limits = ProfileLimitsOf(MakeSchedulerConfig(config_).value());
    scheduler.cost = FitCosts(ProfileCosts(profiler, clock_, limits));
    scheduler_config_ = MakeSchedulerConfig(config_).value();
    bound_.emplace(config_, scheduler_config_);
    executor_.set_granularity(Preempts(scheduler.policies.sharing) ? scheduler.policies.granularity
                                                                   : Granularity::kNone);
    core_ = std::make_unique<EngineCore>(scheduler_config_, &executor_, &clock_,
                                         std::vector<SchedulerObserver*>{}, [](RequestId) {});
    core_->set_mixed_step_us(kSecond / 10);
    core_->set_max_wait_us(kMaxWaitUs);
    core_->set_runs(&estimate_);
    core_->set_alarm([this](TimeUs us) {
      executor_.set_next_signal(std::min(us, next_arrival_us_.value_or(us)));
    });
    estimate_ = WaitEstimate(PredictUs(scheduler.cost, WorkOf(256, 0)) / 256, 16);
  }

  // Each of the clients sends its next request when it has its answer.
  Counts Closed(int num_clients, TimeUs load_us = kLoadUs) {
    counts_ = {};
    patient_ = true;
    const TimeUs begin_us = clock_.NowUs(), end_us = begin_us + load_us;
    int64_t num_answers = -num_clients;
    while (true) {
      for (; num_answers < std::ssize(counts_.took_us); ++num_answers) {
        if (clock_.NowUs() < end_us) Send(clock_.NowUs());
      }
      if (core_->empty()) break;
      Round();
    }
    counts_.busy_us = clock_.NowUs() - begin_us;
    return counts_;
  }

  // Arrivals at random times, `per_second` on average. The server has served before: it knows how
  // long answers take.
  Counts Open(double per_second) {
    Closed(8, kWarmUpUs);
    counts_ = {};
    patient_ = false;
    const TimeUs begin_us = clock_.NowUs(), end_us = begin_us + kLoadUs;
    next_arrival_us_ = begin_us;
    take_arrivals_ = [&] {
      while (next_arrival_us_ && *next_arrival_us_ <= clock_.NowUs()) {
        Send(*next_arrival_us_);
        const double gap_s = -std::log(1 - random_.Uniform()) / per_second;
        next_arrival_us_ = *next_arrival_us_ + std::llround(gap_s * kSecond);
        if (*next_arrival_us_ >= end_us) next_arrival_us_.reset();
      }
    };
    while (next_arrival_us_ || !core_->empty()) {
      if (core_->empty()) clock_.AdvanceTo(std::max(clock_.NowUs(), *next_arrival_us_));
      take_arrivals_();
      Round();
    }
    counts_.busy_us = clock_.NowUs() - begin_us;
    return counts_;
  }

 private:
  std::vector<TokenId> Text(int64_t num_tokens) {
    std::vector<TokenId> tokens(num_tokens);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random_.Between(0, kVocabSize - 1));
    return tokens;
  }

  std::vector<Request> Questions() {
    std::vector<Request> requests(2);
    const std::vector<TokenId> input = Text(random_.Between(80, 100));
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].prompt = input;
      requests[i].prompt.resize(input.size() + 30 + 20 * i, static_cast<TokenId>(i));
      requests[i].output = LabelSpec{.tokens = {1, 2}};
      requests[i].group = {.id = next_group_,
                           .parent_prefix_len = static_cast<int32_t>(input.size())};
    }
    ++next_group_;
    return requests;
  }

  std::vector<Request> Continuation() {
    std::vector<Request> requests(1);
    requests[0].prompt = Text(random_.Between(45, 60));
    requests[0].generate().max_tokens = output_tokens_;
    return requests;
  }

  QueuedWork Queued() const {
    return {.num_requests = static_cast<int32_t>(core_->num_queued()),
            .tokens = {.oneshot = core_->num_queued_tokens(ExecutionClass::kOneShot),
                       .decode = core_->num_queued_tokens(ExecutionClass::kDecode),
                       .budget = core_->queued_budget()}};
  }

  void Send(TimeUs now_us) {
    ++counts_.sent;
    std::vector<Request> requests = random_.OneIn(2) ? Questions() : Continuation();
    bound_->Publish({}, Queued(), estimate_);
    if (!patient_ && !bound_->Check(requests, now_us).ok()) {
      ++counts_.refused;
      return;
    }
    Client client = {.arrival_us = now_us, .first_id = next_id_};
    std::vector<WaitLimits> limits;
    for (const Request& request : requests) {
      client.num_tokens += std::ssize(request.prompt);
      if (request.generates()) client.num_tokens += output_tokens_;
      limits.push_back(bound_->rules().LimitsOf(request, estimate_));
      client_of_[next_id_++] = clients_.size();
    }
    client.num_requests = client.num_left = static_cast<int32_t>(requests.size());
    if (!patient_) {
      late_.Note(client.first_id, now_us, limits);
      gives_up_.insert({now_us + kPatienceUs, clients_.size()});
    }
    clients_.push_back(client);
    core_->Arrive(
        client.first_id, requests, [this](const RequestOutput& output) { Take(output); }, now_us);
  }

  void Take(const RequestOutput& output) {
    if (!output.finish) return;
    Client& client = clients_[client_of_.at(output.request)];
    if (client.ended) return;
    if (output.finish == FinishReason::kError) {
      client.ended = true;
      ++counts_.ended_late;
    } else if (--client.num_left == 0) {
      client.ended = true;
      counts_.tokens += client.num_tokens;
      counts_.decisions += client.num_requests > 1 ? 1 : 0;
      counts_.took_us.push_back(clock_.NowUs() - client.arrival_us);
    }
  }

  void HandleTime() {
    const TimeUs now_us = clock_.NowUs();
    late_.End(estimate_, now_us, core_.get());
    while (!gives_up_.empty() && gives_up_.begin()->first <= now_us) {
      Client& client = clients_[gives_up_.begin()->second];
      gives_up_.erase(gives_up_.begin());
      if (client.ended) continue;
      client.ended = true;
      ++counts_.gave_up;
      for (int32_t i = 0; i < client.num_requests; ++i) core_->Cancel(client.first_id + i);
    }
  }

  void Round() {
    const std::atomic<bool> never{false};
    HandleTime();
    const TimeUs begin_us = clock_.NowUs();
    const EngineStats before = core_->Stats();
    const ClassTokens waiting = Queued().tokens;
    core_->Step(never, [this] {
      HandleTime();
      if (take_arrivals_) take_arrivals_();
      return true;
    });
    const EngineStats stats = core_->Stats();
    const auto decode = static_cast<int64_t>(stats.decode_prompt_tokens) -
                        static_cast<int64_t>(before.decode_prompt_tokens);
    const auto all =
        static_cast<int64_t>(stats.prompt_tokens) - static_cast<int64_t>(before.prompt_tokens);
    estimate_.Observe({.oneshot = all - decode, .decode = decode}, waiting,
                      clock_.NowUs() - begin_us);
    core_->Dispatch();
  }

  const int32_t output_tokens_;
  VirtualClock clock_;
  SimExecutor executor_;
  EngineConfig config_;
  SchedulerConfig scheduler_config_;
  std::unique_ptr<EngineCore> core_;
  WaitEstimate estimate_;
  std::optional<QueueBound> bound_;
  LateRequests late_;
  Random random_{7};
  bool patient_ = false;  // nothing is refused or given up
  std::optional<TimeUs> next_arrival_us_;
  std::function<void()> take_arrivals_;
  std::vector<Client> clients_;
  std::map<RequestId, size_t> client_of_;
  std::set<std::pair<TimeUs, size_t>> gives_up_;
  RequestId next_id_ = 0;
  uint64_t next_group_ = 1;
  Counts counts_;
};

class TenfoldOverload : public ::testing::TestWithParam<std::string> {
 protected:
  // `late_part`: at most one in so many accepted requests is ended before it has begun.
  static void KeepsThePeak(int32_t output_tokens, int64_t late_part) {
    const auto peak_of = [&](int num_clients) {
      return Server(GetParam(), output_tokens).Closed(num_clients);
    };
    const Counts few = peak_of(8);
    const double peak = std::max(few.TokensPerSecond(), peak_of(32).TokensPerSecond());
    const double answers_per_s =
        static_cast<double>(std::ssize(few.took_us) * kSecond) / static_cast<double>(few.busy_us);
    Counts load = Server(GetParam(), output_tokens).Open(10 * answers_per_s);
    std::ranges::sort(load.took_us);
    ASSERT_FALSE(load.took_us.empty());
    const TimeUs p99_us = load.took_us[load.took_us.size() * 99 / 100];
    std::printf(
        "%s, %d tokens: %.3f of %.0f tokens/s; %lld of %zu answers are decisions; of %lld "
        "accepted %lld gave up, %lld ended late; p99 %.1f s\n",
        GetParam().c_str(), output_tokens, load.TokensPerSecond() / peak, peak,
        static_cast<long long>(load.decisions), load.took_us.size(),
        static_cast<long long>(load.accepted()), static_cast<long long>(load.gave_up),
        static_cast<long long>(load.ended_late), 1e-6 * static_cast<double>(p99_us));
    EXPECT_GE(load.TokensPerSecond(), 0.95 * peak);
    EXPECT_GT(load.refused, load.sent / 2);
    // Nothing is computed in vain: requests that were accepted are answered in time, or ended
    // before they have begun. That happens above all at the start of the load, when all slots are
    // taken at once and become free at once.
    EXPECT_LE(load.gave_up, load.accepted() / 100);
    // Both kinds have their share of the answers.
    EXPECT_GE(load.decisions, std::ssize(load.took_us) / 4);
    EXPECT_LE(load.decisions, std::ssize(load.took_us) * 7 / 8);
    EXPECT_LE(load.ended_late, load.accepted() / late_part);
    EXPECT_LE(p99_us, kPatienceUs);
    // The queue that is left takes no longer than its bound, and its last runs.
    EXPECT_LE(load.busy_us, kLoadUs + kPatienceUs);
  }
};

TEST_P(TenfoldOverload, KeepsThePeakOfGoodput) { KeepsThePeak(32, 7); }

// A continuation takes most of the time for which its client waits.
TEST_P(TenfoldOverload, LeavesTimeForLongAnswers) { KeepsThePeak(64, 6); }

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Presets, TenfoldOverload, ::testing::ValuesIn(PresetNames()),
                         [](const auto& preset) {
                           std::string name = preset.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace skein
