#include "sched/scheduler.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/check.h"

namespace skein {
namespace {

// Retention `value` remembers the prompts of so many times the cache's blocks: what did not come
// again while those passed would have been evicted several times over.
constexpr int32_t kRememberedCaches = 4;

PrefixScope ScopeOf(const Request& request) {
  return {.adapter_id = request.adapter_id, .cache_salt = request.cache_salt};
}

int32_t BudgetOf(const SchedulerConfig& config, const Request& request) {
  if (!request.generates()) return 0;
  const auto room = static_cast<int64_t>(config.max_model_len) - std::ssize(request.prompt);
  return static_cast<int32_t>(std::min<int64_t>(request.generate().max_tokens, room));
}

// Whether its output needs every hidden state of the prompt in one pass.
bool RunsWhole(const SchedulerConfig& config, const Request& request) {
  return config.max_whole_prompt_len > 0 && (std::holds_alternative<EmbedSpec>(request.output) ||
                                             std::holds_alternative<ClassifySpec>(request.output));
}

ExecutionClass ClassOf(const SchedulerConfig& config, const Request& request) {
  return BudgetOf(config, request) <= 1 && !config.force_decode_path ? ExecutionClass::kOneShot
                                                                     : ExecutionClass::kDecode;
}

// The first position whose log-probability is wanted; the prompt's length where none is.
int32_t FirstPromptLogprob(const Request& request) {
  const auto prompt_len = static_cast<int32_t>(request.prompt.size());
  if (!request.prompt_logprobs) return prompt_len;
  return std::min(std::max(request.prompt_logprobs->start, 1), prompt_len);
}

// Cuts the first `count` elements off `*left`.
template <typename T>
std::span<T> TakeFirst(size_t count, std::span<T>* left) {
  SKEIN_CHECK(left->size() >= count);
  const std::span<T> first = left->first(count);
  *left = left->subspan(count);
  return first;
}

Status Refuse(const char* field, std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message), field};
}

Status CheckPromptLength(const SchedulerConfig& config, const Request& request) {
  const int64_t prompt_len = std::ssize(request.prompt);
  if (RunsWhole(config, request) && prompt_len > config.max_whole_prompt_len) {
    return Refuse("prompt", fmt::format("prompt has {} tokens; what this model reads it reads of a "
                                        "prompt in one step, which takes at most {} tokens "
                                        "(max_num_batched_tokens raises that)",
                                        prompt_len, config.max_whole_prompt_len));
  }
  if (!request.generates()) {
    if (prompt_len >= 1 && prompt_len <= config.max_model_len) return Status::Ok();
    return Refuse("prompt", fmt::format("prompt has {} tokens, must have at least 1 and at most "
                                        "the model's context of {} tokens",
                                        prompt_len, config.max_model_len));
  }
  if (prompt_len >= 1 && prompt_len < config.max_model_len) return Status::Ok();
  return Refuse("prompt", fmt::format("prompt has {} tokens, must have at least 1 and fewer than "
                                      "the model's context of {} tokens",
                                      prompt_len, config.max_model_len));
}

Status CheckGenerate(const SchedulerConfig& config, const GenerateSpec& generate) {
  if (generate.max_tokens < 0) {
    return Refuse("max_tokens",
                  fmt::format("max_tokens is {}, must be at least 0", generate.max_tokens));
  }
  const int32_t n = generate.num_samples;
  if (n >= 1 && n <= config.max_num_seqs) return Status::Ok();
  return Refuse("n", fmt::format("n is {}, must be in [1, {}]", n, config.max_num_seqs));
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, std::vector<SchedulerObserver*> observers)
    : config_(config),
      observers_(std::move(observers)),
      blocks_(config.num_kv_blocks, config.prefix_caching),
      jct_order_(config),
      slack_(config),
      cost_(config.cost) {
  if (config.decode_set == DecodeSet::kFlock) {
    flock_.emplace(config.flock, config.flock_learned.get());
  }
  if (config.decode_set == DecodeSet::kDynamic) {
    dynamic_.emplace(config.num_kv_blocks, config.max_num_seqs, config.dynamic_step_us);
  }
  if (config.retention == Retention::kValue && config.prefix_caching) {
    recent_.emplace(kRememberedCaches, config.num_kv_blocks);
  }
  for (SchedulerObserver* observer : observers_) observer->OnStart(config_);
}

Scheduler::~Scheduler() {
  for (SchedulerObserver* observer : observers_) {
    observer->OnEnd(flock_ ? flock_->table() : nullptr);
  }
}

Status Scheduler::CheckFits(const SchedulerConfig& config, const Request& request) {
  const int64_t prompt_len = std::ssize(request.prompt);
  SKEIN_RETURN_IF_ERROR(CheckPromptLength(config, request));
  if (request.generates()) SKEIN_RETURN_IF_ERROR(CheckGenerate(config, request.generate()));
  if (request.adapter_id < 0 || request.adapter_id >= config.num_adapters) {
    return Refuse("adapter_id", fmt::format("adapter_id is {}, must be in [0, {})",
                                            request.adapter_id, config.num_adapters));
  }
  if (config.retention != Retention::kAll && ClassOf(config, request) == ExecutionClass::kOneShot) {
    return Status::Ok();  // needs no block
  }
  // The last token drawn is never computed.
  const int32_t budget = BudgetOf(config, request);
  const int32_t num_blocks = BlocksFor(prompt_len + std::max(0, budget - 1));
  if (num_blocks > config.num_kv_blocks) {
    const bool prompt_fits = BlocksFor(prompt_len) <= config.num_kv_blocks;
    return Refuse(prompt_fits ? "max_tokens" : "prompt",
                  fmt::format("prompt of {} tokens with up to {} output tokens needs {} KV blocks "
                              "of {} tokens, there are {}: {} tokens together would fit",
                              prompt_len, budget, num_blocks, kBlockTokens, config.num_kv_blocks,
                              int64_t{config.num_kv_blocks} * kBlockTokens));
  }
  return Status::Ok();
}

void Scheduler::Arrive(RequestId id, Request request, TimeUs now_us) {
  SKEIN_CHECK(CheckFits(config_, request).ok() && id < kFirstTrunkId);
  for (SchedulerObserver* observer : observers_) observer->OnArrive(id, request, now_us);
  auto record = std::make_unique<RequestRecord>();
  record->id = id;
  if (num_arrivals_ == 0) first_arrival_us_ = now_us;
  record->arrival = num_arrivals_++;
  record->prompt_len = static_cast<int32_t>(request.prompt.size());
  record->budget = BudgetOf(config_, request);
  record->execution_class = ClassOf(config_, request);
  record->whole = RunsWhole(config_, request);
  record->next_prompt_logprob = FirstPromptLogprob(request);
  record->shares_prefix =
      !record->whole && (!request.prompt_logprobs || record->next_prompt_logprob > 1);
  record->num_live = NumSamples(request);
  record->live.assign(record->num_live, true);
  record->times.arrival_us = now_us;
  auto sequence = std::make_unique<Sequence>(record.get(), 0, ScopeOf(request));
  sequence->tokens = std::move(request.prompt);
  sequence->draws.reserve(record->num_live);
  const int64_t length = record->prompt_len + record->budget;
  if (record->execution_class == ExecutionClass::kDecode) sequence->tokens.reserve(length);
  sequence->blocks.Reserve(length);
  const bool hashed = blocks_.prefix_caching() || config_.forests || flock_;
  if (hashed) sequence->blocks.Hash(sequence->tokens);
  if (recent_ && sequence->oneshot()) recent_->Note(sequence->blocks.hashes());
  record->request = std::move(request);
  record->urgency = UrgencyOf(sequence.get(), now_us);
  EnterWaiting(sequence.get());
  if (flock_ && !sequence->oneshot()) flock_->Enter(sequence.get(), now_us);
  record->sequences.push_back(std::move(sequence));
  SKEIN_CHECK(requests_.emplace(id, std::move(record)).second);
}

void Scheduler::Cancel(RequestId id, TimeUs now_us) {
  for (SchedulerObserver* observer : observers_) observer->OnCancel(id, -1, now_us);
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  RequestRecord* request = found->second.get();
  for (int32_t sample = 0; sample < std::ssize(request->live); ++sample) {
    if (request->live[sample]) CancelLive(request, sample, now_us);
  }
  Sweep();
}

void Scheduler::CancelSample(RequestId id, int32_t sample, TimeUs now_us) {
  for (SchedulerObserver* observer : observers_) observer->OnCancel(id, sample, now_us);
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  RequestRecord* request = found->second.get();
  if (sample < 0 || sample >= std::ssize(request->live) || !request->live[sample]) return;
  CancelLive(request, sample, now_us);
  Sweep();
}

void Scheduler::CancelLive(RequestRecord* request, int32_t sample, TimeUs now_us) {
  EndSample(request, sample, FinishReason::kCancelled, Status::Ok(), now_us);
  if (sample == 0 && request->next_prompt_logprob < request->prompt_len) {
    request->next_prompt_logprob = request->prompt_len;  // nobody reads them
    Sequence* sequence = request->sequences.front().get();
    // More of its prompt may come from the cache.
    const bool waits = sequence->state == SequenceState::kWaiting && request->num_live > 0;
    if (waits) Relocate(sequence, now_us);
  }
  if (request->forked) {
    for (const auto& sequence : request->sequences) {
      if (sequence->sample == sample) EndSequence(sequence.get(), SequenceState::kFinished);
    }
  } else if (request->num_live == 0) {
    EndSequence(request->sequences.front().get(), SequenceState::kFinished);
  } else if (request->sequences.front()->num_slots > 0) {
    ReleaseSlots(request->sequences.front().get(), 1);
  }
}

void Scheduler::Complete(StepResults* results, TimeUs now_us) {
  SKEIN_CHECK(step_.in_flight());
  for (SchedulerObserver* observer : observers_) observer->OnComplete(*results, now_us);
  step_.state = StepState::kFinished;
  ObserveStep(now_us);
  ObserveDecodeSet(now_us);
  if (step_.prefills.empty()) {
    decode_step_us_ = step_.RanUs(now_us);
    decoded_us_ = now_us;
  }
  for (const StepRow& row : step_.prefills) {
    if (row.trunk != nullptr) CompleteTrunk(row);
  }
  MarkTrunks({});
  ResultSpans left = {results->draws, results->reads, results->prompt_logprobs};
  for (const std::vector<StepRow>* rows : {&step_.prefills, &step_.decodes}) {
    for (const StepRow& row : *rows) {
      if (row.trunk != nullptr) continue;
      const Sequence& sequence = *row.sequence;
      const ResultSpans own = {
          TakeFirst(sequence.draws.size(), &left.draws),
          TakeFirst(sequence.read != nullptr ? 1 : 0, &left.reads),
          TakeFirst(sequence.prompt_logprobs.tokens.empty() ? 0 : 1, &left.prompt_logprobs)};
      CompleteRow(row, own, now_us);
    }
  }
  SKEIN_CHECK(left.draws.empty() && left.reads.empty() && left.prompt_logprobs.empty());
  step_.prefills.clear();
  step_.decodes.clear();
  Sweep();
}

void Scheduler::CompleteRow(const StepRow& row, const ResultSpans& results, TimeUs now_us) {
  Sequence* sequence = row.sequence;
  RequestRecord* request = sequence->request;
  sequence->in_step = false;
  LeaveTrunk(sequence);
  if (HasEnded(sequence->state)) {  // cancelled or failed meanwhile
    sequence->blocks.Release(&blocks_);
    return;
  }
  sequence->num_computed += row.num_tokens;
  request->suspended_us = 0;
  sequence->blocks.FinishCopy(&blocks_);
  if (!std::ranges::all_of(results.draws, &DrawResult::finite) ||
      !std::ranges::all_of(results.reads, &ReadResult::finite) ||
      !std::ranges::all_of(results.prompt_logprobs, &PromptLogprobsResult::finite)) {
    FailRequest(request, Status(StatusCode::kInternal, "the model's output holds NaN or infinity"),
                now_us);
    return;
  }
  if (!request->whole) {  // what nobody may attach is not worth keeping
    sequence->blocks.Publish(&blocks_, sequence->tokens, sequence->num_computed);
  }
  EmitPromptLogprobs(sequence, results.prompt_logprobs);
  if (sequence->num_remaining() > 0) {
    request->step_rest = {};
    if (OrdersByDeadline() && !request->forked) Reorder(sequence, sequence->num_computed, now_us);
    return;
  }
  if (!request->forked) return FinishPrompt(sequence, results, now_us);
  std::span<DrawResult> draws = results.draws;
  const TokenId token = draws[0].token.token;
  const auto earlier = std::span<const TokenId>(sequence->tokens).subspan(request->prompt_len);
  const std::optional<FinishReason> finish = FinishOf(*request, earlier, token);
  EmitToken(request, sequence->sample, std::move(draws[0].token), finish, now_us);
  if (finish) {
    EndSequence(sequence, SequenceState::kFinished);
  } else {
    sequence->tokens.push_back(token);
    sequence->token_us = now_us;
    sequence->state = SequenceState::kDecoding;
  }
}

void Scheduler::EmitPromptLogprobs(Sequence* sequence, std::span<PromptLogprobsResult> results) {
  RequestRecord* request = sequence->request;
  if (results.empty() || !request->live[0]) return;
  const PromptLogprobsRange& range = sequence->prompt_logprobs;
  request->next_prompt_logprob = range.begin + static_cast<int32_t>(range.tokens.size());
  SampleOutput& output = Emit(*request, 0, false);
  output.prompt_logprobs = std::move(results[0].logprobs);
}

void Scheduler::FinishRead(Sequence* sequence, ReadResult* result, TimeUs now_us) {
  SampleOutput& output = EndSample(sequence->request, 0, FinishReason::kStop, Status::Ok(), now_us);
  output.read = std::move(result->values);
  EndSequence(sequence, SequenceState::kFinished);
}

void Scheduler::FinishPrompt(Sequence* sequence, const ResultSpans& row_results, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  const std::span<DrawResult> results = row_results.draws;
  request->forked = true;
  slack_.Watch(sequence, SlackOrder::kNever);
  NotePrediction(*sequence, now_us);
  stats_.prompt_tokens += request->prompt_len;
  if (!request->request.generates()) return FinishRead(sequence, &row_results.reads[0], now_us);
  if (request->budget == 0) return FinishEmptyBudget(sequence, now_us);
  request->times.first_token_us = now_us;
  // The sequence itself goes on as the first sample that is not at its end; its token is added
  // last, so that the others are forked from the bare prompt.
  std::optional<TokenId> own_token;
  for (size_t i = 0; i < results.size(); ++i) {
    const int32_t sample = sequence->draws[i].sample;
    if (!request->live[sample]) continue;
    const TokenId token = results[i].token.token;
    const std::optional<FinishReason> finish = FinishOf(*request, {}, token);
    EmitToken(request, sample, std::move(results[i].token), finish, now_us);
    if (finish) {
      // Its slot goes with it; the sequence keeps those of the others.
      if (request->num_live > 0 && sequence->num_slots > 0) ReleaseSlots(sequence, 1);
    } else if (!own_token) {
      own_token = token;
      sequence->sample = sample;
    } else {
      Fork(sequence, sample, token);
    }
  }
  if (!own_token) return EndSequence(sequence, SequenceState::kFinished);
  sequence->tokens.push_back(*own_token);
  sequence->token_us = now_us;
  sequence->state = SequenceState::kDecoding;
}

void Scheduler::FinishEmptyBudget(Sequence* sequence, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  for (int32_t sample = 0; sample < std::ssize(request->live); ++sample) {
    if (request->live[sample]) {
      EndSample(request, sample, FinishReason::kLength, Status::Ok(), now_us);
    }
  }
  EndSequence(sequence, SequenceState::kFinished);
}

void Scheduler::Fork(Sequence* carrier, int32_t sample, TokenId token) {
  RequestRecord* request = carrier->request;
  auto child = std::make_unique<Sequence>(request, sample, ScopeOf(request->request));
  child->tokens.reserve(request->prompt_len + request->budget);
  child->tokens = carrier->tokens;
  child->token_us = request->times.first_token_us;
  child->draws.reserve(1);
  child->blocks.Reserve(request->prompt_len + request->budget);
  if (blocks_.prefix_caching()) child->blocks.Hash(child->tokens);
  SKEIN_CHECK(carrier->num_slots > 1);
  --carrier->num_slots;
  if (child->blocks.ForkFrom(&blocks_, carrier->blocks, carrier->num_computed)) {
    child->num_computed = carrier->num_computed;
    child->num_slots = 1;
    child->state = SequenceState::kDecoding;
  } else {
    --slots_used_;
    child->state = SequenceState::kPreempted;
    ++stats_.num_preemptions;
  }
  child->tokens.push_back(token);
  if (child->state == SequenceState::kDecoding) {
    InsertRunning(child.get());
  } else {
    EnterWaiting(child.get());
  }
  request->sequences.push_back(std::move(child));
}

std::optional<FinishReason> Scheduler::FinishOf(const RequestRecord& request,
                                                std::span<const TokenId> earlier,
                                                TokenId token) const {
  const GenerateSpec& generate = request.request.generate();
  const auto num_output = static_cast<int32_t>(earlier.size()) + 1;
  for (const std::vector<TokenId>& choice : generate.choices) {
    if (std::ssize(choice) == num_output && GoesOn(choice, earlier) && choice.back() == token) {
      return FinishReason::kStop;
    }
  }
  if (num_output > generate.min_tokens &&
      std::ranges::find(generate.stop_token_ids, token) != generate.stop_token_ids.end()) {
    return FinishReason::kStop;
  }
  if (num_output >= request.budget) return FinishReason::kLength;
  return std::nullopt;
}

SampleOutput& Scheduler::Emit(const RequestRecord& request, int32_t sample, bool now) {
  const bool withhold = config_.decode_set == DecodeSet::kStatic && !now;
  SampleOutput& output = (withhold ? withheld_ : outputs_).emplace_back();
  output.request = request.id;
  output.sample = sample;
  output.cached_tokens = request.cached_tokens;
  output.times = request.times;
  return output;
}

void Scheduler::EmitToken(RequestRecord* request, int32_t sample, OutputToken token,
                          std::optional<FinishReason> finish, TimeUs now_us) {
  ++stats_.generation_tokens;
  SampleOutput& output = Emit(*request, sample, false);
  output.token = std::move(token);
  output.finish = finish;
  if (!finish) return;
  output.times.finished_us = now_us;
  NoteEnd(request, sample);
}

SampleOutput& Scheduler::EndSample(RequestRecord* request, int32_t sample, FinishReason reason,
                                   const Status& status, TimeUs now_us) {
  const bool cancelled = reason == FinishReason::kCancelled;
  if (cancelled) {
    // Nobody reads it any more.
    std::erase_if(withheld_, [&](const SampleOutput& output) {
      return output.request == request->id && output.sample == sample;
    });
  }
  SampleOutput& output = Emit(*request, sample, cancelled);
  output.finish = reason;
  output.status = status;
  output.times.finished_us = now_us;
  NoteEnd(request, sample);
  return output;
}

void Scheduler::NoteEnd(RequestRecord* request, int32_t sample) {
  SKEIN_CHECK(request->live[sample]);
  request->live[sample] = false;
  if (--request->num_live > 0) return;
  if (config_.order == Order::kFair) fair_queue_.Leave(request->request, request->unserved);
  slack_.Watch(request->sequences.front().get(), SlackOrder::kNever);
  if (flock_) flock_->Leave(request);
  if (dynamic_) ObserveEnd(*request);
  ++(request->execution_class == ExecutionClass::kOneShot ? stats_.requests_oneshot
                                                          : stats_.requests_decode);
  ended_.push_back(request->id);
}

void Scheduler::EndSequence(Sequence* sequence, SequenceState state) {
  if (HasEnded(sequence->state)) return;
  if (!IsRunning(sequence->state)) LeaveWaiting(sequence);
  ReleaseSlots(sequence, sequence->num_slots);
  sequence->state = state;
  if (sequence->in_step) return;  // the step may still write to the blocks
  LeaveTrunk(sequence);
  sequence->blocks.Release(&blocks_);
}

void Scheduler::ReleaseSlots(Sequence* sequence, int32_t count) {
  sequence->num_slots -= count;
  if (config_.decode_set == DecodeSet::kStatic) {
    batch_slots_idle_ += count;
  } else {
    slots_used_ -= count;
  }
}

void Scheduler::FailRequest(RequestRecord* request, const Status& status, TimeUs now_us) {
  for (int32_t sample = 0; sample < std::ssize(request->live); ++sample) {
    if (request->live[sample]) {
      EndSample(request, sample, FinishReason::kError, status, now_us);
    }
  }
  for (const auto& sequence : request->sequences) {
    EndSequence(sequence.get(), SequenceState::kFailed);
  }
}

void Scheduler::FailAll(const Status& status, TimeUs now_us) {
  step_.state = StepState::kFinished;
  step_.prefills.clear();
  step_.decodes.clear();
  suspended_.clear();
  MarkTrunks({});
  for (const auto& [id, request] : requests_) {
    for (const auto& sequence : request->sequences) {
      if (!sequence->in_step) continue;
      sequence->in_step = false;
      LeaveTrunk(sequence.get());
      if (HasEnded(sequence->state)) sequence->blocks.Release(&blocks_);
    }
    if (request->num_live > 0) FailRequest(request.get(), status, now_us);
  }
  Sweep();
}

void Scheduler::Sweep() {
  std::erase_if(running_, [](const Sequence* sequence) { return HasEnded(sequence->state); });
  // While a step is in flight or suspended its rows still point to their sequences.
  if (!step_.in_flight()) {
    DropDeadSteps();
    std::erase_if(ended_, [this](RequestId id) {
      const auto request = requests_.find(id);
      if (InAnyStep(*request->second)) return false;
      requests_.erase(request);
      return true;
    });
    SweepTrunks();
  }
  const bool batch_ended =
      config_.decode_set == DecodeSet::kStatic && running_.empty() && waiting_.num_preempted() == 0;
  if (!batch_ended) return;
  std::ranges::move(withheld_, std::back_inserter(outputs_));
  withheld_.clear();
  slots_used_ = 0;
  batch_open_ = true;
  batch_size_ = 0;
  batch_slots_idle_ = 0;
}

void Scheduler::InsertRunning(Sequence* sequence) {
  const auto place = std::ranges::upper_bound(running_, sequence->key(), {}, &Sequence::key);
  running_.insert(place, sequence);
}

std::span<SampleOutput> Scheduler::TakeOutputs() {
  taken_.clear();
  std::swap(taken_, outputs_);
  return taken_;
}

EngineStats Scheduler::Stats() const {
  EngineStats stats = stats_;
  const RequestRecord* last = nullptr;
  for (const Sequence* sequence : running_) {  // the sequences of a request are neighbours
    if (sequence->request != last) ++stats.num_requests_running;
    last = sequence->request;
  }
  stats.num_requests_waiting =
      static_cast<int32_t>(requests_.size() - ended_.size()) - stats.num_requests_running;
  stats.kv_blocks_total = blocks_.num_blocks();
  stats.kv_blocks_used = blocks_.num_referenced();
  stats.kv_blocks_cached = blocks_.num_cached();
  if (flock_) {
    stats.flock_tip_tokens = flock_->tip_tokens();
    stats.flock_joined = flock_->counters().joined;
    stats.flock_overdue = flock_->counters().overdue;
    stats.flock_stops = flock_->counters().stops;
  }
  return stats;
}

void Scheduler::CheckIntegrity() const {
  blocks_.CheckIntegrity();
  if (flock_) flock_->CheckIntegrity();
  std::vector<int32_t> references(blocks_.num_blocks());
  size_t num_running = 0, num_waiting = 0;
  size_t num_trunk_members = 0, num_watched = 0, num_moments = 0;
  int32_t num_slots = batch_slots_idle_;
  for (const auto& [id, request] : requests_) {
    int32_t num_live = 0;
    for (const bool live : request->live) num_live += live;
    SKEIN_CHECK(num_live == request->num_live);
    num_moments += request->rank_until_us != SlackOrder::kNever;
    SKEIN_CHECK(request->rank_until_us == SlackOrder::kNever || (!request->forked && num_live > 0));
    for (const auto& sequence : request->sequences) {
      sequence->blocks.CountReferences(references);
      num_trunk_members += sequence->trunk != nullptr;
      num_watched += sequence->trunk == nullptr && IsWatched(*sequence);
      num_slots += sequence->num_slots;
      const bool running = IsRunning(sequence->state);
      num_running += running;
      num_waiting += !running && !HasEnded(sequence->state);
      SKEIN_CHECK(running == (std::ranges::count(running_, sequence.get()) == 1));
      SKEIN_CHECK(HasEnded(sequence->state) || sequence->num_slots == 0 || !sequence->oneshot());
    }
  }
  for (const auto& trunk : trunks_) {
    trunk->blocks.CountReferences(references);
    num_trunk_members -= trunk->members.size();
    for (size_t i = 0; i < trunk->members.size(); ++i) {
      SKEIN_CHECK(trunk->members[i]->trunk == trunk.get() && trunk->members[i]->trunk_place == i);
    }
    SKEIN_CHECK(trunk->in_step || !trunk->members.empty());
    SKEIN_CHECK(trunk->num_admitted == std::ranges::count_if(trunk->members, &Sequence::on_trunk));
  }
  CheckSuspended();
  SKEIN_CHECK(num_trunk_members == 0 && num_watched == watch_.size());
  SKEIN_CHECK(num_moments == slack_.num_watched());
  const BlockManager::Changes changes = blocks_.changes();
  if (changes.published.empty() && changes.evicted.empty()) CheckWatched();
  SKEIN_CHECK(num_running == running_.size());
  SKEIN_CHECK(num_waiting == waiting_.num_new() + waiting_.num_preempted());
  SKEIN_CHECK(num_slots == slots_used_ && slots_used_ <= config_.max_num_seqs);
  SKEIN_CHECK(std::ranges::is_sorted(running_, {}, &Sequence::key));
  for (BlockId block = 0; block < blocks_.num_blocks(); ++block) {
    SKEIN_CHECK(references[block] == blocks_.ref_count(block));
  }
}

}  // namespace skein
