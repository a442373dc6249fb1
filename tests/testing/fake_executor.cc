#include "testing/fake_executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"

namespace skein {
namespace {

struct FakeTask final : Task {
  explicit FakeTask(const StepPlan& its_plan) : plan(&its_plan) {}
  const StepPlan* plan;
  size_t next_row = 0;
  bool prepared = false;
  bool paused = false;
  StepResults results;
};

const std::vector<PlanRow> kNoRows;

// The rows of a plan in the order of its results.
const std::vector<PlanRow>& FirstRows(const StepPlan& plan) {
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) return oneshot->rows;
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) return decode->rows;
  return std::get<MixedPlan>(plan).prefills;
}

const std::vector<PlanRow>& SecondRows(const StepPlan& plan) {
  const auto* mixed = std::get_if<MixedPlan>(&plan);
  return mixed != nullptr ? mixed->decodes : kNoRows;
}

uint64_t Append(uint64_t history, TokenId token) {
  return RandomBitsAt(history, 1, static_cast<uint32_t>(token)) | 1;  // never "unwritten"
}

TokenId DrawToken(uint64_t history, const SamplingParams& sampling, int32_t sample,
                  int32_t position, int32_t vocab_size) {
  const uint64_t stream = HashTokens(std::vector<int32_t>{sample, position}, sampling.seed);
  return static_cast<TokenId>(RandomBitsAt(history, stream, 2) % vocab_size);
}

// A number that depends on all tokens so far and on `what`.
float Number(uint64_t history, int64_t what) {
  return static_cast<float>(RandomBitsAt(history, static_cast<uint64_t>(what), 3) % 100000) / 64;
}

ReadValues ReadOf(uint64_t history, const OutputSpec& output) {
  ReadValues read;
  if (const auto* labels = std::get_if<LabelSpec>(&output)) {
    for (const TokenId token : labels->tokens) read.values.push_back(Number(history, token));
    if (labels->want_log_sum_exp) read.log_sum_exp = Number(history, -1);
  } else {
    const bool embeds = std::holds_alternative<EmbedSpec>(output);
    for (int64_t i = 0; i < (embeds ? 8 : 3); ++i) {
      read.values.push_back(Number(history, embeds ? -10 - i : -20 - i));
    }
  }
  return read;
}

// The log-probability of the token at `position`; `history` has all before it.
PromptLogprob LogprobOf(uint64_t history, int32_t position, TokenId token, int32_t num_top,
                        int32_t vocab_size) {
  PromptLogprob logprob = {.position = position,
                           .chosen = {token, -Number(history, token), token + 1}};
  for (int32_t rank = 1; rank <= num_top; ++rank) {
    const auto top = static_cast<TokenId>((history + rank) % vocab_size);
    logprob.top_logprobs.push_back({top, -Number(history, top), rank});
  }
  return logprob;
}

}  // namespace

FakeExecutor::FakeExecutor(const Options& options) : options_(options) {
  slots_.resize(size_t{kBlockTokens} * options.num_kv_blocks);
  states_.resize(options.num_states);
  host_slots_.resize(size_t{kBlockTokens} * options.num_host_kv_blocks);
}

void FakeExecutor::ExportBlock(BlockId block, std::span<std::byte> out) const {
  SKEIN_CHECK(block >= 0 && block < options_.num_kv_blocks && out.size() == port_bytes());
  std::memcpy(out.data(), &slots_[size_t{kBlockTokens} * block], port_bytes());
}

void FakeExecutor::ImportBlock(BlockId block, std::span<const std::byte> in) {
  SKEIN_CHECK(block >= 0 && block < options_.num_kv_blocks && in.size() == port_bytes());
  std::memcpy(&slots_[size_t{kBlockTokens} * block], in.data(), port_bytes());
}

std::vector<TokenId> FakeExecutor::Expected(const Options& options, const Request& request,
                                            int32_t sample, int32_t budget) {
  const GenerateSpec& generate = request.generate();
  uint64_t history = 0;
  for (const TokenId token : request.prompt) history = Append(history, token);
  std::vector<TokenId> tokens;
  auto position = static_cast<int32_t>(request.prompt.size());
  while (std::ssize(tokens) < budget) {
    const TokenId token =
        DrawToken(history, generate.sampling, sample, position++, options.vocab_size);
    tokens.push_back(token);
    history = Append(history, token);
    const bool may_stop = std::ssize(tokens) > generate.min_tokens;
    if (may_stop && std::ranges::count(generate.stop_token_ids, token) > 0) break;
  }
  return tokens;
}

ReadValues FakeExecutor::ExpectedRead(const Request& request) {
  uint64_t history = 0;
  for (const TokenId token : request.prompt) history = Append(history, token);
  return ReadOf(history, request.output);
}

std::vector<PromptLogprob> FakeExecutor::ExpectedPromptLogprobs(const Options& options,
                                                                const Request& request) {
  std::vector<PromptLogprob> logprobs;
  if (!request.prompt_logprobs) return logprobs;
  uint64_t history = 0;
  for (int32_t position = 0; position < std::ssize(request.prompt); ++position) {
    const TokenId token = request.prompt[position];
    if (position >= std::max(request.prompt_logprobs->start, 1)) {
      logprobs.push_back(LogprobOf(history, position, token, request.prompt_logprobs->num_top,
                                   options.vocab_size));
    }
    history = Append(history, token);
  }
  return logprobs;
}

// The contents have one place: a plan that reads them at the other one, too early or too late,
// finds slots that were never written.
void FakeExecutor::CopyToOrFromHost(const HostCopy& copy) {
  SKEIN_CHECK(copy.block >= 0 && copy.block < options_.num_kv_blocks);
  SKEIN_CHECK(copy.slot >= 0 && copy.slot < options_.num_host_kv_blocks);
  const auto on_device = slots_.begin() + std::ptrdiff_t{kBlockTokens} * copy.block;
  const auto on_host = host_slots_.begin() + std::ptrdiff_t{kBlockTokens} * copy.slot;
  const auto from = copy.to_host ? on_device : on_host;
  for (int32_t i = 0; i < kBlockTokens; ++i) SKEIN_CHECK(from[i].history != 0);
  std::copy_n(from, kBlockTokens, copy.to_host ? on_host : on_device);
  if (copy.to_host) std::fill_n(on_device, kBlockTokens, Slot{});
  ++num_host_copies_;
}

std::unique_ptr<Task> FakeExecutor::Begin(const StepPlan& plan) {
  for (const HostCopy& copy : HostCopiesOf(plan)) CopyToOrFromHost(copy);
  return std::make_unique<FakeTask>(plan);
}

TaskStatus FakeExecutor::Resume(Task& task, const std::atomic<bool>& preempt) {
  auto& state = static_cast<FakeTask&>(task);
  const std::vector<PlanRow>& first = FirstRows(*state.plan);
  const std::vector<PlanRow>& second = SecondRows(*state.plan);
  if (!state.prepared) {
    SKEIN_CHECK(!first.empty());
    CheckRows(first, second);
    if (const auto* decode = std::get_if<DecodePlan>(state.plan)) Copy(decode->copies);
    if (const auto* mixed = std::get_if<MixedPlan>(state.plan)) Copy(mixed->copies);
    TakeStarts(first);
    TakeStarts(second);
    state.prepared = true;
    const bool decodes = std::holds_alternative<DecodePlan>(*state.plan);
    const int64_t us = options_.step_us + (decodes ? 0 : options_.prefill_us);
    if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
  while (state.next_row < first.size() + second.size()) {
    if (preempt.load(std::memory_order_relaxed)) return TaskStatus::kPreempted;
    const bool due = options_.preempt_every > 0 && num_operators_ % options_.preempt_every == 0;
    if (due && !state.paused) {
      state.paused = true;
      return TaskStatus::kPreempted;
    }
    state.paused = false;
    const size_t row = state.next_row++;
    ComputeRow(row < first.size() ? first[row] : second[row - first.size()], &state.results);
    ++num_operators_;
  }
  ++num_steps_;
  return TaskStatus::kDone;
}

const StepResults& FakeExecutor::Results(const Task& task) const {
  return static_cast<const FakeTask&>(task).results;
}

void FakeExecutor::CheckRows(const std::vector<PlanRow>& rows,
                             const std::vector<PlanRow>& more) const {
  std::map<BlockId, SequenceId> written;
  std::map<StateId, SequenceId> written_states;
  std::set<SequenceId> sequences;
  int64_t num_tokens = 0, num_own_blocks = 0;
  for (const std::vector<PlanRow>* part : {&rows, &more}) {
    for (const PlanRow& row : *part) {
      SKEIN_CHECK(!row.tokens.empty() && sequences.insert(row.sequence).second);
      const auto end = row.begin + static_cast<int64_t>(row.tokens.size());
      // Full blocks before the row; a part of one, too, unless it is copied.
      const int32_t before =
          row.fork.num_tokens > 0 ? row.begin / kBlockTokens : BlocksFor(row.begin);
      num_tokens += std::ssize(row.tokens);
      num_own_blocks += std::max<int64_t>(0, BlocksFor(end) - std::ssize(row.block_table));
      SKEIN_CHECK(std::ssize(row.block_table) >= before);
      SKEIN_CHECK(std::ssize(row.block_table) <= BlocksFor(end));
      SKEIN_CHECK(std::ssize(row.block_table) == BlocksFor(end) || options_.discards_kv);
      CheckFork(row);
      CheckStates(row, &written_states);
      for (int32_t i = 0; i < std::ssize(row.block_table); ++i) {
        const BlockId block = row.block_table[i];
        SKEIN_CHECK(block >= 0 && block < options_.num_kv_blocks);
        if (i >= row.begin / kBlockTokens) {
          SKEIN_CHECK(written.emplace(block, row.sequence).second);
        }
      }
    }
  }
  if (options_.max_step_tokens > 0) {
    SKEIN_CHECK(num_tokens <= options_.max_step_tokens);
    SKEIN_CHECK(num_own_blocks <= options_.max_own_blocks);
  }
  // No other row of this step writes the blocks that a row reads, but for its parent, an earlier
  // row.
  for (const std::vector<PlanRow>* part : {&rows, &more}) {
    for (const PlanRow& row : *part) {
      const auto check = [&](BlockId block) {
        const auto writer = written.find(block);
        SKEIN_CHECK(writer == written.end() || (row.parent != 0 && writer->second == row.parent));
      };
      for (int32_t i = 0; i < row.begin / kBlockTokens; ++i) check(row.block_table[i]);
      if (row.fork.num_tokens > 0) check(row.fork.from);
    }
  }
}

// Rows come in the order in which they are computed: a row may start from the end of its parent,
// and from no other state that an earlier row writes.
void FakeExecutor::CheckStates(const PlanRow& row, std::map<StateId, SequenceId>* written) const {
  if (options_.num_states == 0) return;
  const RowState& state = row.state;
  SKEIN_CHECK(state.from < options_.num_states && state.to < options_.num_states);
  SKEIN_CHECK((state.from == kNoState) == (row.begin == 0));
  if (const auto writer = written->find(state.from); writer != written->end()) {
    SKEIN_CHECK(row.parent != 0 && writer->second == row.parent);
  }
  const auto write = [&](StateId to) {
    SKEIN_CHECK(to == kNoState || written->emplace(to, row.sequence).second);
  };
  write(state.to);
  for (const RowState::Snapshot& snapshot : state.snapshots) write(snapshot.state);
}

// A step that stops may have computed some layers: what its rows overwrite is lost.
void FakeExecutor::TakeStarts(const std::vector<PlanRow>& rows) {
  for (const PlanRow& row : rows) {
    const RowState& state = row.state;
    if (state.from == kNoState || state.from != state.to) continue;
    starts_[row.sequence] = std::exchange(states_[state.from], 0);
  }
}

void FakeExecutor::CheckStart(const PlanRow& row, uint64_t history) {
  if (options_.num_states == 0 || row.begin == 0) return;
  const auto start = starts_.find(row.sequence);
  const bool overwrites = row.state.from == row.state.to;
  SKEIN_CHECK((overwrites ? start->second : states_[row.state.from]) == history);
}

void FakeExecutor::WriteStates(const PlanRow& row, int32_t num_tokens, uint64_t history) {
  if (options_.num_states == 0) return;
  const auto end = row.begin + static_cast<int32_t>(row.tokens.size());
  if (num_tokens == end && row.state.to != kNoState) states_[row.state.to] = history;
  for (const RowState::Snapshot& snapshot : row.state.snapshots) {
    if (snapshot.state != kNoState && snapshot.at == num_tokens) states_[snapshot.state] = history;
  }
}

void FakeExecutor::CheckFork(const PlanRow& row) const {
  SKEIN_CHECK(row.parent == 0 || RequestOf(row.parent) >= kFirstSharedPrefixId);
  if (row.fork.num_tokens == 0) {
    SKEIN_CHECK(row.parent == 0 || row.begin % kBlockTokens == 0);
    return;
  }
  SKEIN_CHECK(row.parent != 0 && row.fork.num_tokens == row.begin % kBlockTokens);
  SKEIN_CHECK(row.fork.from >= 0 && row.fork.from < options_.num_kv_blocks);
  const size_t to = row.begin / kBlockTokens;
  SKEIN_CHECK(to >= row.block_table.size() || row.block_table[to] != row.fork.from);
}

void FakeExecutor::Copy(const std::vector<BlockCopy>& copies) {
  std::set<BlockId> from, to;
  for (const BlockCopy& copy : copies) {
    from.insert(copy.from);
    SKEIN_CHECK(to.insert(copy.to).second);
  }
  for (const BlockId block : from) SKEIN_CHECK(!to.contains(block));
  for (const BlockCopy& copy : copies) {
    std::copy_n(slots_.begin() + std::ptrdiff_t{kBlockTokens} * copy.from, kBlockTokens,
                slots_.begin() + std::ptrdiff_t{kBlockTokens} * copy.to);
  }
}

FakeExecutor::Slot& FakeExecutor::At(const PlanRow& row, int32_t position) {
  const size_t index = position / kBlockTokens;
  if (index >= row.block_table.size()) {
    return own_slots_[position - row.block_table.size() * kBlockTokens];
  }
  const BlockId block = row.block_table[index];
  return slots_[size_t{kBlockTokens} * block + position % kBlockTokens];
}

void FakeExecutor::ReadRow(const PlanRow& row, StepResults* results) {
  const bool whole = !std::holds_alternative<LabelSpec>(*row.read) && options_.reads_whole_prompts;
  SKEIN_CHECK(!whole || row.begin == 0);
  const Slot& last = At(row, row.begin + static_cast<int32_t>(row.tokens.size()) - 1);
  results->reads.push_back({ReadOf(last.history, *row.read), last.token != options_.poison_token});
}

void FakeExecutor::PromptLogprobsOfRow(const PlanRow& row, StepResults* results) {
  const PromptLogprobsRange& range = row.prompt_logprobs;
  const auto end = row.begin + static_cast<int32_t>(row.tokens.size());
  SKEIN_CHECK(range.begin > row.begin &&
              range.begin + static_cast<int32_t>(range.tokens.size()) <= end + 1);
  PromptLogprobsResult& result = results->prompt_logprobs.emplace_back();
  int32_t position = range.begin;
  for (const TokenId token : range.tokens) {
    SKEIN_CHECK(position == end || At(row, position).token == token);
    const Slot& before = At(row, position - 1);
    result.finite = result.finite && before.token != options_.poison_token;
    result.logprobs.push_back(
        LogprobOf(before.history, position++, token, range.num_top, options_.vocab_size));
  }
}

void FakeExecutor::ComputeRow(const PlanRow& row, StepResults* results) {
  const auto num_own = static_cast<int64_t>(row.begin + row.tokens.size()) -
                       std::ssize(row.block_table) * kBlockTokens;
  own_slots_.assign(std::max<int64_t>(0, num_own), Slot{});
  for (int32_t i = 0; i < row.fork.num_tokens; ++i) {
    At(row, row.begin - row.fork.num_tokens + i) = slots_[size_t{kBlockTokens} * row.fork.from + i];
  }
  uint64_t history = 0;
  for (int32_t position = 0; position < row.begin; ++position) {
    const Slot& slot = At(row, position);
    history = Append(history, slot.token);
    SKEIN_CHECK(slot.history == history);  // written, and by a sequence with this very beginning
  }
  CheckStart(row, history);
  auto end = row.begin;
  for (const TokenId token : row.tokens) {
    history = Append(history, token);
    At(row, end++) = {token, history};
    WriteStates(row, end, history);
  }
  for (const DrawSpec& draw : row.draws) {
    SKEIN_CHECK(std::ssize(draw.history) == end && draw.prompt_len <= end);
    for (int32_t position = 0; position < end; ++position) {
      SKEIN_CHECK(At(row, position).token == draw.history[position]);
    }
    DrawResult result;
    result.token.token =
        DrawToken(history, draw.generate->sampling, draw.sample, end, options_.vocab_size);
    result.finite = draw.history.back() != options_.poison_token;
    results->draws.push_back(std::move(result));
  }
  if (row.read != nullptr) ReadRow(row, results);
  if (!row.prompt_logprobs.tokens.empty()) PromptLogprobsOfRow(row, results);
}

}  // namespace skein
