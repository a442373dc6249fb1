#include "sched/completion.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

using NextRow = SequenceStates::NextRow;

// Cuts the first `count` elements off `*left`.
template <typename T>
std::span<T> TakeFirst(size_t count, std::span<T>* left) {
  SKEIN_CHECK(left->size() >= count);
  const std::span<T> first = left->first(count);
  *left = left->subspan(count);
  return first;
}

// Returns how `token` after the `earlier` tokens ends a sample; nullopt if it does not.
std::optional<FinishReason> FinishOf(const RequestRecord& request, std::span<const TokenId> earlier,
                                     TokenId token) {
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

}  // namespace

bool Completion::ResultSpans::finite() const {
  return std::ranges::all_of(draws, &DrawResult::finite) &&
         std::ranges::all_of(reads, &ReadResult::finite) &&
         std::ranges::all_of(prompt_logprobs, &PromptLogprobsResult::finite);
}

Completion::ResultSpans Completion::ResultSpans::TakeFor(const Sequence& sequence) {
  const bool wants_logprobs = !sequence.prompt_logprobs.tokens.empty();
  return {TakeFirst(sequence.draws.size(), &draws),
          TakeFirst(sequence.read != nullptr ? 1 : 0, &reads),
          TakeFirst(wants_logprobs ? 1 : 0, &prompt_logprobs)};
}

Completion::Completion(const SchedulerContext& context, Ranks* ranks, SharedPrefixes* prefixes,
                       Admission* admission)
    : blocks_(context.blocks),
      table_(context.table),
      order_(context.order),
      decode_set_(context.decode_set),
      stats_(context.stats),
      ranks_(ranks),
      prefixes_(prefixes),
      admission_(admission) {}

void Completion::NotePlanned(const Step& step) {
  const bool one_row = step.decodes.empty() && step.prefills.size() == 1;
  const Sequence* sole = one_row ? step.prefills[0].sequence : nullptr;
  if (sole != std::exchange(sole_, sole)) sole_since_ = step.id;
}

void Completion::TakeResults(const Step& step, StepResults* results, TimeUs now_us) {
  ResultSpans left = {results->draws, results->reads, results->prompt_logprobs};
  for (const std::vector<StepRow>* rows : {&step.prefills, &step.decodes}) {
    for (const StepRow& row : *rows) {
      if (row.prefix != nullptr) continue;
      const ResultSpans own = left.TakeFor(*row.sequence);
      CompleteRow(row, own, now_us);
    }
  }
  SKEIN_CHECK(left.empty());
}

void Completion::CompleteRow(const StepRow& row, const ResultSpans& results, TimeUs now_us) {
  Sequence* sequence = row.sequence;
  RequestRecord* request = sequence->request;
  sequence->in_step = false;
  prefixes_->Leave(sequence);
  if (HasEnded(sequence->state)) {  // cancelled or failed while the step ran
    sequence->blocks.Release(blocks_);
    return;
  }
  sequence->num_computed += row.num_tokens;
  request->suspended_us = 0;
  sequence->blocks.FinishCopy(blocks_);
  if (!results.finite()) {
    FailRequest(request, Status(StatusCode::kInternal, "the model's output holds NaN or infinity"),
                now_us);
    return;
  }
  if (!request->whole) {  // no other request may attach blocks of whole prompts
    sequence->blocks.Publish(blocks_, sequence->tokens, sequence->num_computed);
  }
  sequence->blocks.FinishRow(blocks_);
  EmitPromptLogprobs(sequence, results.prompt_logprobs);
  if (sequence->num_remaining() > 0) {
    request->step_rest = {};
    sequence->blocks.KeepEnd(blocks_, sequence->num_computed, NextRow::kChunk);
    ranks_->NoteProgress(sequence, sequence->num_computed, now_us);
  } else if (!request->forked) {
    FinishPrompt(sequence, results, now_us);
  } else {
    FinishDecode(sequence, &results.draws[0], now_us);
  }
}

void Completion::EmitPromptLogprobs(Sequence* sequence, std::span<PromptLogprobsResult> results) {
  RequestRecord* request = sequence->request;
  if (results.empty() || !request->live[0]) return;
  const PromptLogprobsRange& range = sequence->prompt_logprobs;
  request->next_prompt_logprob = range.begin + static_cast<int32_t>(range.tokens.size());
  SampleOutput& output = Emit(*request, 0, false);
  output.prompt_logprobs = std::move(results[0].logprobs);
}

void Completion::FinishPrompt(Sequence* sequence, const ResultSpans& results, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  request->forked = true;
  ranks_->Forget(sequence);
  order_->OnPrompt(request->request, std::exchange(request->memo, {}), now_us);
  NotePrediction(*sequence, now_us);
  stats_->prompt_tokens += request->prompt_len;
  if (!sequence->oneshot()) stats_->decode_prompt_tokens += request->prompt_len;
  if (!request->request.generates()) return FinishRead(sequence, &results.reads[0], now_us);
  if (request->budget == 0) {
    EndLiveSamples(request, FinishReason::kLength, Status::Ok(), now_us);
    return EndSequence(sequence, SequenceState::kFinished);
  }
  request->times.first_token_us = now_us;
  ForkSamples(sequence, results.draws, now_us);
}

void Completion::FinishRead(Sequence* sequence, ReadResult* result, TimeUs now_us) {
  SampleOutput& output = EndSample(sequence->request, 0, FinishReason::kStop, Status::Ok(), now_us);
  output.read = std::move(result->values);
  EndSequence(sequence, SequenceState::kFinished);
}

// The sequence itself continues as the first unfinished sample. That sample's token is added last,
// so that the other samples are forked from the prompt alone.
void Completion::ForkSamples(Sequence* sequence, std::span<DrawResult> results, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  std::optional<TokenId> own_token;
  for (size_t i = 0; i < results.size(); ++i) {
    const int32_t sample = sequence->draws[i].sample;
    if (!request->live[sample]) continue;
    const TokenId token = results[i].token.token;
    const std::optional<FinishReason> finish = FinishOf(*request, {}, token);
    EmitToken(request, sample, std::move(results[i].token), finish, now_us);
    if (finish) {
      // The ended sample's slot is released; the sequence keeps the slots of the other samples.
      if (request->num_live > 0 && sequence->num_slots > 0) admission_->ReleaseSlots(sequence, 1);
    } else if (!own_token) {
      own_token = token;
      sequence->sample = sample;
    } else {
      Fork(sequence, sample, token);
    }
  }
  sequence->blocks.KeepEnd(blocks_, sequence->num_computed,
                           own_token ? NextRow::kDecode : NextRow::kNone);
  if (!own_token) return EndSequence(sequence, SequenceState::kFinished);
  Continue(sequence, *own_token, now_us);
}

void Completion::FinishDecode(Sequence* sequence, DrawResult* result, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  const TokenId token = result->token.token;
  const auto earlier = std::span<const TokenId>(sequence->tokens).subspan(request->prompt_len);
  const std::optional<FinishReason> finish = FinishOf(*request, earlier, token);
  EmitToken(request, sequence->sample, std::move(result->token), finish, now_us);
  sequence->blocks.KeepEnd(blocks_, sequence->num_computed,
                           finish ? NextRow::kNone : NextRow::kDecode);
  if (finish) {
    EndSequence(sequence, SequenceState::kFinished);
  } else {
    Continue(sequence, token, now_us);
  }
}

void Completion::Continue(Sequence* sequence, TokenId token, TimeUs now_us) {
  sequence->tokens.push_back(token);
  sequence->token_us = now_us;
  sequence->state = SequenceState::kDecoding;
}

void Completion::Fork(Sequence* carrier, int32_t sample, TokenId token) {
  RequestRecord* request = carrier->request;
  auto child = std::make_unique<Sequence>(request, sample, carrier->blocks.hashes().scope());
  child->tokens.reserve(request->prompt_len + request->budget);
  child->tokens = carrier->tokens;
  child->draws.reserve(1);
  child->blocks.Reserve(request->prompt_len + request->budget);
  if (blocks_->prefix_caching()) child->blocks.Hash(child->tokens);
  const bool runs = child->blocks.ForkFrom(blocks_, carrier->blocks, carrier->num_computed);
  admission_->MoveSlot(carrier, child.get(), runs);
  Continue(child.get(), token, request->times.first_token_us);
  if (runs) {
    child->num_computed = carrier->num_computed;
    table_->InsertRunning(child.get());
  } else {
    child->state = SequenceState::kPreempted;
    ++stats_->num_preemptions;
    ranks_->EnterWaiting(child.get());
  }
  request->sequences.push_back(std::move(child));
}

// The request's first token has been drawn. Compares the predicted time with the time since the
// request's first step.
void Completion::NotePrediction(const Sequence& sequence, TimeUs now_us) {
  const RequestRecord& request = *sequence.request;
  const auto real_us = static_cast<double>(now_us - request.times.first_scheduled_us);
  if (request.predicted_us == 0 || real_us <= 0) return;
  const double error = std::abs(request.predicted_us / real_us - 1);
  const auto& bounds = EngineStats::kErrorBounds;
  const auto bucket = std::ranges::lower_bound(bounds, error) - bounds.begin();
  const bool alone = sole_ == &sequence && sole_since_ <= request.first_iteration;
  ErrorHistogram& histogram = alone ? stats_->ttft_error_alone : stats_->ttft_error_shared;
  ++histogram.counts[bucket];
  histogram.sum += error;
}

void Completion::CancelSample(RequestRecord* request, int32_t sample, TimeUs now_us) {
  EndSample(request, sample, FinishReason::kCancelled, Status::Ok(), now_us);
  if (sample == 0 && request->next_prompt_logprob < request->prompt_len) {
    request->next_prompt_logprob = request->prompt_len;  // no caller reads them any more
    Sequence* sequence = request->sequences.front().get();
    // More tokens of the request's prompt may now come from the cache.
    const bool waits = sequence->state == SequenceState::kWaiting && request->num_live > 0;
    if (waits) ranks_->Relocate(sequence, now_us);
  }
  if (request->forked) {
    for (const auto& sequence : request->sequences) {
      if (sequence->sample == sample) EndSequence(sequence.get(), SequenceState::kFinished);
    }
  } else if (request->num_live == 0) {
    EndSequence(request->sequences.front().get(), SequenceState::kFinished);
  } else if (request->sequences.front()->num_slots > 0) {
    admission_->ReleaseSlots(request->sequences.front().get(), 1);
  }
}

void Completion::FailRequest(RequestRecord* request, const Status& status, TimeUs now_us) {
  EndLiveSamples(request, FinishReason::kError, status, now_us);
  for (const auto& sequence : request->sequences) {
    EndSequence(sequence.get(), SequenceState::kFailed);
  }
}

void Completion::AbandonRow(Sequence* sequence) {
  if (!sequence->in_step) return;
  sequence->in_step = false;
  prefixes_->Leave(sequence);
  if (HasEnded(sequence->state)) sequence->blocks.Release(blocks_);
}

std::span<SampleOutput> Completion::TakeOutputs() {
  taken_.clear();
  std::swap(taken_, outputs_);
  return taken_;
}

void Completion::ReleaseWithheld() {
  std::ranges::move(withheld_, std::back_inserter(outputs_));
  withheld_.clear();
}

SampleOutput& Completion::Emit(const RequestRecord& request, int32_t sample, bool now) {
  const bool withhold = decode_set_->RunsWholeBatches() && !now;
  SampleOutput& output = (withhold ? withheld_ : outputs_).emplace_back();
  output.request = request.id;
  output.sample = sample;
  output.cached_tokens = request.cached_tokens;
  output.times = request.times;
  return output;
}

void Completion::EmitToken(RequestRecord* request, int32_t sample, OutputToken token,
                           std::optional<FinishReason> finish, TimeUs now_us) {
  ++stats_->generation_tokens;
  SampleOutput& output = Emit(*request, sample, false);
  output.token = std::move(token);
  output.finish = finish;
  if (!finish) return;
  output.times.finished_us = now_us;
  NoteEnd(request, sample);
}

SampleOutput& Completion::EndSample(RequestRecord* request, int32_t sample, FinishReason reason,
                                    const Status& status, TimeUs now_us) {
  const bool cancelled = reason == FinishReason::kCancelled;
  if (cancelled) {
    // No caller reads the sample's withheld outputs any more.
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

void Completion::EndLiveSamples(RequestRecord* request, FinishReason reason, const Status& status,
                                TimeUs now_us) {
  for (int32_t sample = 0; sample < std::ssize(request->live); ++sample) {
    if (request->live[sample]) EndSample(request, sample, reason, status, now_us);
  }
}

void Completion::NoteEnd(RequestRecord* request, int32_t sample) {
  SKEIN_CHECK(request->live[sample]);
  request->live[sample] = false;
  if (--request->num_live > 0) return;
  order_->OnEnd(request->request, request->num_charged, request->memo);
  ranks_->Forget(request->sequences.front().get());
  decode_set_->Leave(request);
  decode_set_->ObserveEnd(*request);
  ++(request->execution_class == ExecutionClass::kOneShot ? stats_->requests_oneshot
                                                          : stats_->requests_decode);
  table_->NoteEnded(request->id);
}

void Completion::EndSequence(Sequence* sequence, SequenceState state) {
  if (HasEnded(sequence->state)) return;
  if (!IsRunning(sequence->state)) ranks_->LeaveWaiting(sequence);
  admission_->ReleaseSlots(sequence, sequence->num_slots);
  sequence->state = state;
  if (sequence->in_step) return;  // the step may still write to the blocks
  admission_->ReleaseBlocks(sequence);
}

}  // namespace skein
