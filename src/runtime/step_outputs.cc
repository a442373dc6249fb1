#include "runtime/step_outputs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "model/decision_head.h"

namespace skein {
namespace {

static_assert(kNoState == ForwardState::kNone);
static_assert(std::size(ForwardState{}.snapshots) == kMaxRowSnapshots);

ForwardState StateOf(const RowState& row) {
  ForwardState state = {.from = row.from, .to = row.to};
  for (size_t i = 0; i < row.snapshots.size(); ++i) {
    state.snapshots[i] = {row.snapshots[i].state, row.snapshots[i].at};
  }
  return state;
}

}  // namespace

std::span<const BlockCopy> CopiesOf(const StepPlan& plan) {
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) return mixed->copies;
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) return decode->copies;
  return {};
}

void StepOutputs::Begin(const StepPlan& plan) {
  next_job_ = end_job_ = 0;
  done_ = false;
  counts_ = {};
  logit_rows_.clear();
  logit_needs_.clear();
  jobs_.clear();
  for (std::vector<int32_t>* reads :
       {&label_reads_, &embedding_reads_, &class_reads_, &marker_reads_, &action_reads_,
        &question_reads_, &state_reads_, &sparse_reads_}) {
    reads->clear();
  }
  RowCounts totals;
  ForEachRow(plan, [&](const PlanRow& row) {
    totals.draws += static_cast<int32_t>(row.draws.size());
    totals.reads += row.read != nullptr;
    totals.logprobs += !row.prompt_logprobs.tokens.empty();
  });
  results_.draws.resize(totals.draws);
  results_.reads.resize(totals.reads);
  results_.prompt_logprobs.resize(totals.logprobs);
  for (ReadResult& read : results_.reads) read.values.ids.clear();
}

int32_t StepOutputs::AddLogits(int32_t token, const PlanRow* seen, ForwardBatch* batch) {
  batch->logit_tokens.push_back(token);
  logit_rows_.push_back(seen);
  logit_needs_.emplace_back();
  return static_cast<int32_t>(logit_rows_.size()) - 1;
}

void StepOutputs::AddRow(const PlanRow& row, std::span<const BlockId> blocks, ForwardBatch* batch) {
  const int32_t origin = batch->num_tokens() - row.begin;  // index of the token at position 0
  batch->AddRow(row.tokens, row.begin, blocks, false);
  batch->rows.back().fork = {row.fork.from, row.fork.num_tokens};
  batch->rows.back().state = StateOf(row.state);
  batch->rows.back().adapter = row.adapter_id;
  batch->rows.back().second_segment_begin = row.second_segment_begin;
  batch->rows.back().num_attended = row.num_attended;
  const auto row_index = static_cast<int32_t>(batch->rows.size()) - 1;
  const PromptLogprobsRange& range = row.prompt_logprobs;
  if (!range.tokens.empty()) {
    const auto count = static_cast<int32_t>(range.tokens.size());
    results_.prompt_logprobs[counts_.logprobs].logprobs.resize(count);
    for (int32_t i = 0; i < count; ++i) {
      // Position p is predicted by the token before it.
      const int32_t token = origin + range.begin + i - 1;
      jobs_.push_back({.logit_row = AddLogits(token, nullptr, batch),
                       .result = counts_.logprobs,
                       .logprobs = &range,
                       .logprob = i});
    }
    ++counts_.logprobs;
  }
  if (!row.draws.empty()) {
    const int32_t logit_row = AddLogits(batch->num_tokens() - 1, &row, batch);
    for (const DrawSpec& draw : row.draws) {
      jobs_.push_back({.logit_row = logit_row, .result = counts_.draws++, .draw = &draw});
    }
    LogitNeeds& needs = logit_needs_.back();
    needs.largest_alone = std::ranges::all_of(row.draws, Sampler::NeedsLargestAlone);
    if (row.draws.size() == 1) needs.draw = Sampler::RandomDrawOf(row.draws.front());
  }
  if (row.read != nullptr) AddRead(row, row_index, batch);
}

void StepOutputs::AddRead(const PlanRow& row, int32_t row_index, ForwardBatch* batch) {
  const int32_t first_token = batch->rows[row_index].first_token;
  const int32_t last_token = batch->num_tokens() - 1;
  const int32_t read = counts_.reads++;
  if (const auto* labels = std::get_if<LabelSpec>(row.read)) {
    if (labels->want_log_sum_exp) {
      jobs_.push_back(
          {.logit_row = AddLogits(last_token, &row, batch), .result = read, .labels = labels});
    } else {
      batch->label_outputs.push_back({last_token, labels->tokens});
      label_reads_.push_back(read);
    }
  } else if (const auto* embed = std::get_if<EmbedSpec>(row.read)) {
    if (embed->all_tokens || weights_->config.head == Head::kTokenVectors) {
      std::vector<float>& values = results_.reads[read].values.values;
      values.clear();
      values.reserve(row.tokens.size() * StateWidth());
      for (int32_t token = first_token; token <= last_token; ++token) {
        batch->state_tokens.push_back(token);
        state_reads_.push_back(read);
      }
    } else if (weights_->config.head == Head::kMaskedLanguageModel) {
      for (int32_t token = first_token; token <= last_token; ++token) {
        batch->sparse_tokens.push_back({token, token == last_token});
        sparse_reads_.push_back(read);
      }
    } else {
      batch->embedded_rows.push_back(row_index);
      embedding_reads_.push_back(read);
    }
  } else if (const auto* decide = std::get_if<DecideSpec>(row.read)) {
    batch->rows.back().question_type = decide->question_type;
    batch->rows.back().option_bounds = decide->option_bounds;
    results_.reads[read].values.values.clear();
    const int32_t origin = first_token - row.begin;  // index of the token at position 0
    const auto first_marker = static_cast<int32_t>(batch->marker_tokens.size());
    for (const int32_t marker : decide->markers) {
      batch->marker_tokens.push_back(origin + marker);
      marker_reads_.push_back(read);
    }
    if (weights_->config.decision.answers_questions()) {
      const auto count = static_cast<int32_t>(decide->markers.size());
      batch->decided_rows.push_back({row_index, first_marker, count, origin + decide->summary});
      const JointSchema& schema = decide->schema;
      batch->decided_rows.back().schema = {schema.types, schema.text_begins, schema.text_ends,
                                           schema.option_counts, schema.option_ends};
      question_reads_.push_back(read);
    } else if (weights_->config.decision.num_actions > 0) {
      batch->action_rows.push_back(row_index);
      action_reads_.push_back(read);
    }
  } else {
    batch->classified_rows.push_back(row_index);
    class_reads_.push_back(read);
  }
}

void StepOutputs::TakeLogits(int32_t end_row) {
  while (end_job_ < static_cast<int>(jobs_.size()) && jobs_[end_job_].logit_row < end_row) {
    ++end_job_;
  }
}

void StepOutputs::RunJob(int job, const float* logits, int thread) {
  Job& j = jobs_[job];
  if (j.draw != nullptr) {
    sampler_->Draw(*j.draw, logits, thread, &results_.draws[j.result]);
  } else if (j.logprobs != nullptr) {
    PromptLogprob& logprob = results_.prompt_logprobs[j.result].logprobs[j.logprob];
    logprob.position = j.logprobs->begin + j.logprob;
    j.finite = sampler_->Logprob(j.logprobs->tokens[j.logprob], j.logprobs->num_top, logits, thread,
                                 &logprob);
  } else {
    ReadResult& read = results_.reads[j.result];
    const int32_t vocab = weights_->config.vocab_size;
    const Kernels::Largest largest = kernels_->FindLargest(logits, vocab, nullptr);
    read.values.values.clear();
    for (const TokenId token : j.labels->tokens) read.values.values.push_back(logits[token]);
    read.values.log_sum_exp = largest.finite ? kernels_->LogSumExp(logits, largest.max, vocab)
                                             : std::numeric_limits<float>::quiet_NaN();
    read.finite = largest.finite;
  }
}

void StepOutputs::TakeSparse(std::span<const float> vector, ReadValues* values) {
  values->values.clear();
  for (size_t id = 0; id < vector.size(); ++id) {
    if (vector[id] == 0) continue;
    values->values.push_back(vector[id]);
    values->ids.push_back(static_cast<TokenId>(id));
  }
}

void StepOutputs::Take(OutputKind kind, int32_t index, const ForwardBatch& batch, float* output) {
  ReadResult* result = nullptr;
  if (kind == OutputKind::kMarkers) {
    result = &results_.reads[marker_reads_[index]];
    result->values.values.push_back(*output);
  } else if (kind == OutputKind::kActions) {
    result = &results_.reads[action_reads_[index]];
    std::vector<float>& values = result->values.values;
    AppendActionLogits(weights_->decision, *kernels_, values, output, &values);
  } else if (kind == OutputKind::kQuestions) {
    result = &results_.reads[question_reads_[index]];
    const int32_t count = batch.decided_rows[index].num_markers;
    result->values.values.assign(output, output + count);
  } else if (kind == OutputKind::kLabels) {
    result = &results_.reads[label_reads_[index]];
    result->values.values.clear();
    for (const int32_t label : batch.label_outputs[index].labels) {
      result->values.values.push_back(output[label]);
    }
  } else if (kind == OutputKind::kStates) {
    result = &results_.reads[state_reads_[index]];
    auto& values = result->values.values;
    values.insert(values.end(), output, output + StateWidth());
    const bool ends =
        index + 1 == std::ssize(state_reads_) || state_reads_[index + 1] != state_reads_[index];
    if (!ends) return;
  } else if (kind == OutputKind::kSparse) {
    if (!batch.sparse_tokens[index].ends_row) return;
    result = &results_.reads[sparse_reads_[index]];
    TakeSparse(std::span<const float>(output, weights_->config.vocab_size), &result->values);
  } else {
    const bool embeds = kind == OutputKind::kEmbedding;
    result = &results_.reads[(embeds ? embedding_reads_ : class_reads_)[index]];
    const int32_t size = embeds ? weights_->embedding_size() : weights_->config.num_classes;
    result->values.values.assign(output, output + size);
  }
  result->values.log_sum_exp = 0;
  result->finite =
      std::ranges::all_of(result->values.values, [](float v) { return std::isfinite(v); });
}

void StepOutputs::Finish() {
  for (PromptLogprobsResult& result : results_.prompt_logprobs) result.finite = true;
  for (const Job& job : jobs_) {
    if (!job.finite) results_.prompt_logprobs[job.result].finite = false;
  }
  done_ = true;
}

void StepOutputs::Fail() {
  for (DrawResult& result : results_.draws) result.finite = false;
  for (ReadResult& result : results_.reads) result.finite = false;
  for (PromptLogprobsResult& result : results_.prompt_logprobs) result.finite = false;
  done_ = true;
}

}  // namespace skein
