#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sched/admission.h"
#include "sched/context.h"
#include "sched/order/ranks.h"
#include "sched/prefix/shared_prefixes.h"
#include "sched/sample_output.h"
#include "sched/step.h"

namespace skein {

// Turns the results of a step into tokens, further samples and ended requests. Also ends requests
// that are cancelled or fail. Owns the outputs. Not thread-safe.
class Completion {
 public:
  Completion(const SchedulerContext& context, Ranks* ranks, SharedPrefixes* prefixes,
             Admission* admission);

  // A new step has been planned.
  void NotePlanned(const Step& step);
  // Takes the results of the step's rows, in their order, and moves their contents out.
  void TakeResults(const Step& step, StepResults* results, TimeUs now_us);

  // REQUIRES: the sample is live.
  void CancelSample(RequestRecord* request, int32_t sample, TimeUs now_us);
  void FailRequest(RequestRecord* request, const Status& status, TimeUs now_us);
  // Forgets that the sequence is in a step: the step is abandoned.
  void AbandonRow(Sequence* sequence);

  // The outputs since the last call, in order. Valid until the next call of any function.
  std::span<SampleOutput> TakeOutputs();
  // Tells that a request-level batch has ended: its outputs are released.
  void ReleaseWithheld();

 private:
  // The results of rows that have not been completed yet, or the results of one row.
  struct ResultSpans {
    std::span<DrawResult> draws;
    std::span<ReadResult> reads;
    std::span<PromptLogprobsResult> prompt_logprobs;

    bool finite() const;
    bool empty() const { return draws.empty() && reads.empty() && prompt_logprobs.empty(); }
    // Takes the results of the sequence off the front.
    ResultSpans TakeFor(const Sequence& sequence);
  };

  void CompleteRow(const StepRow& row, const ResultSpans& results, TimeUs now_us);
  void EmitPromptLogprobs(Sequence* sequence, std::span<PromptLogprobsResult> results);
  void FinishPrompt(Sequence* sequence, const ResultSpans& results, TimeUs now_us);
  void ForkSamples(Sequence* sequence, std::span<DrawResult> results, TimeUs now_us);
  void FinishDecode(Sequence* sequence, DrawResult* result, TimeUs now_us);
  void FinishRead(Sequence* sequence, ReadResult* result, TimeUs now_us);
  void Fork(Sequence* carrier, int32_t sample, TokenId token);
  static void Continue(Sequence* sequence, TokenId token, TimeUs now_us);
  void NotePrediction(const Sequence& sequence, TimeUs now_us);

  SampleOutput& Emit(const RequestRecord& request, int32_t sample, bool now);
  void EmitToken(RequestRecord* request, int32_t sample, OutputToken token,
                 std::optional<FinishReason> finish, TimeUs now_us);
  SampleOutput& EndSample(RequestRecord* request, int32_t sample, FinishReason reason,
                          const Status& status, TimeUs now_us);
  void EndLiveSamples(RequestRecord* request, FinishReason reason, const Status& status,
                      TimeUs now_us);
  void NoteEnd(RequestRecord* request, int32_t sample);
  void EndSequence(Sequence* sequence, SequenceState state);

  BlockManager* const blocks_;
  RequestTable* const table_;
  OrderPolicy* const order_;
  DecodeSetPolicy* const decode_set_;
  EngineStats* const stats_;
  Ranks* const ranks_;
  SharedPrefixes* const prefixes_;
  Admission* const admission_;
  std::vector<SampleOutput> outputs_;
  std::vector<SampleOutput> taken_;
  std::vector<SampleOutput> withheld_;  // outputs of a running request-level batch
  const Sequence* sole_ = nullptr;      // the only row of the last step, if it was a prefill row
  int64_t sole_since_ = 0;              // since this step, it has been the only row
};

}  // namespace skein
