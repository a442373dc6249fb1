#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "model/forward/batch.h"
#include "model/forward/layout.h"
#include "model/weights/weights.h"
#include "runtime/sampler.h"
#include "sched/plan.h"

namespace skein {

// Calls fn(row) for the rows of any plan, prefills before decodes.
template <typename Fn>
void ForEachRow(const StepPlan& plan, const Fn& fn) {
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
    for (const PlanRow& row : mixed->prefills) fn(row);
    for (const PlanRow& row : mixed->decodes) fn(row);
  } else if (const auto* decode = std::get_if<DecodePlan>(&plan)) {
    for (const PlanRow& row : decode->rows) fn(row);
  } else {
    for (const PlanRow& row : std::get<OneShotPlan>(plan).rows) fn(row);
  }
}

// The block copies before the first operator of a plan.
std::span<const BlockCopy> CopiesOf(const StepPlan& plan);

// The needs of a row's jobs, of its logits.
struct LogitNeeds {
  bool largest_alone = false;      // the largest logit alone (Sampler::DrawLargest)
  std::optional<RandomDraw> draw;  // the token of this draw alone, which a device may make
};

// Turns the plan of a step into its results, for any device: rows become a batch, and the outputs
// of a pass become results.
//
//   Begin --> AddRow, row by row --> pass: [ logits: TakeLogits, RunJob for each job
//                                          | other outputs: Take ] --> Finish --> results()
//
// Keeps its memory from step to step.
class StepOutputs {
 public:
  // All arguments are borrowed.
  StepOutputs(const ModelWeights* weights, const Kernels* kernels, Sampler* sampler)
      : weights_(weights), kernels_(kernels), sampler_(sampler) {}

  // The plan must stay valid until Finish.
  void Begin(const StepPlan& plan);
  // Appends the next row of the plan to `batch`. `blocks`: its block table.
  void AddRow(const PlanRow& row, std::span<const BlockId> blocks, ForwardBatch* batch);

  // The row that draws or reads from a row of logits. Null if the logits are only used for a prompt
  // log-probability.
  const PlanRow* logit_row(int32_t row) const { return logit_rows_[row]; }
  // Rows of logits before `end_row` are ready: their jobs are now due.
  void TakeLogits(int32_t end_row);
  // Jobs [next_job(), end_job()) are due; earlier jobs are done.
  int next_job() const { return next_job_; }
  int end_job() const { return end_job_; }
  void set_next_job(int job) { next_job_ = job; }
  int32_t logit_row_of(int job) const { return jobs_[job].logit_row; }
  // Runs a job on its row of logits [vocab]. Thread-safe for different jobs and threads.
  void RunJob(int job, const float* logits, int thread);
  // For each row of logits. If a row needs its largest logit or a drawn token alone, its jobs may
  // be run on that.
  std::span<const LogitNeeds> logit_needs() const { return logit_needs_; }
  void RunJob(int job, const Kernels::Largest& largest) {
    Sampler::DrawLargest(largest, &results_.draws[jobs_[job].result]);
  }

  // Takes output `index` of another kind than logits. The output may be overwritten.
  void Take(OutputKind kind, int32_t index, const ForwardBatch& batch, float* output);

  void Finish();
  bool done() const { return done_; }
  const StepResults& results() const { return results_; }
  // The step cannot be computed: all its results are marked as not finite.
  void Fail();

 private:
  // One draw from, or one read of, a row of logits: exactly one of the three pointers is set.
  struct Job {
    int32_t logit_row = 0;  // among all rows with logits
    int32_t result = 0;     // index among the results of its kind
    const DrawSpec* draw = nullptr;
    const LabelSpec* labels = nullptr;  // set if the label read wants a log-sum-exp
    const PromptLogprobsRange* logprobs = nullptr;
    int32_t logprob = 0;  // index in the range of wanted positions
    bool finite = true;   // whether a prompt log-probability is finite
  };
  // For each kind, the number of results of the earlier rows.
  struct RowCounts {
    int32_t draws = 0;
    int32_t reads = 0;
    int32_t logprobs = 0;
  };

  // The width of a token's state, or of its vector in a ColBERT model.
  size_t StateWidth() const {
    const bool projects = weights_->config.head == Head::kTokenVectors;
    return projects ? weights_->embedding_size() : weights_->config.hidden_size;
  }
  // Keeps the elements that are not 0.
  static void TakeSparse(std::span<const float> vector, ReadValues* values);
  void AddRead(const PlanRow& row, int32_t row_index, ForwardBatch* batch);
  int32_t AddLogits(int32_t token, const PlanRow* seen, ForwardBatch* batch);

  const ModelWeights* const weights_;
  const Kernels* const kernels_;
  Sampler* const sampler_;
  RowCounts counts_;
  std::vector<const PlanRow*> logit_rows_;  // in plan order
  std::vector<LogitNeeds> logit_needs_;     // as many
  std::vector<Job> jobs_;                   // in plan order
  int next_job_ = 0;
  int end_job_ = 0;
  // For each output of the pass, the index of its read, kind by kind.
  std::vector<int32_t> label_reads_, embedding_reads_, class_reads_, marker_reads_, action_reads_,
      question_reads_, state_reads_, sparse_reads_;
  bool done_ = false;
  StepResults results_;
};

}  // namespace skein
