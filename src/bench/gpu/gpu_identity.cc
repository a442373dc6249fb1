#include "bench/gpu/gpu_identity.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "sched/plan.h"

namespace skein {
namespace {

constexpr int32_t kNamedTokens = 1024;  // whose log-probabilities are compared
constexpr int32_t kLabelTokens = 64;    // whose logits are read as labels
constexpr int32_t kTopTokens = 8;

// The parts of an answer that a row asks for.
enum class Asked : uint8_t {
  kNothing,
  kGreedy,    // a draw that brings its token alone to the host
  kLogprobs,  // a draw with log-probabilities
  kAll,       // this, and labels
};

struct IdentityAnswer {
  TokenId token = 0;
  std::vector<float> logprobs;  // of the chosen, the most likely and the named tokens
  std::vector<float> labels;
  bool finite = false;
};

// Tokens [begin, end) of a sequence, as a row of a step.
struct IdentityRow {
  int32_t sequence = 0;
  int32_t begin = 0, end = 0;
  Asked asked = Asked::kNothing;
  const std::vector<BlockId>* blocks = nullptr;
  RowFork fork = {};
};

enum class IdentityPlan : uint8_t { kOneShot, kMixed, kDecode };

// Whether the parts that were asked for have the same bits.
bool SameAnswer(const IdentityAnswer& found, const IdentityAnswer& expected, Asked asked) {
  if (!found.finite || !expected.finite || found.token != expected.token) return false;
  if (asked == Asked::kGreedy) return true;
  if (found.logprobs != expected.logprobs) return false;
  return asked != Asked::kAll || found.labels == expected.labels;
}

// Tokens that are spread over the vocabulary.
std::vector<TokenId> SpreadTokens(int32_t count, int32_t vocab) {
  std::vector<TokenId> tokens;
  count = std::min(count, vocab);
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(i * vocab / count));
  return tokens;
}

class IdentityCheck {
 public:
  IdentityCheck(Runtime* runtime, const IdentityOptions& options);

  std::vector<IdentityCase> Run();
  // Compares the prompts alone and whole with those of another device.
  IdentityCase Beside(IdentityCheck* other);

 private:
  int32_t size(int32_t sequence) const { return static_cast<int32_t>(sequences_[sequence].size()); }
  int32_t count() const { return static_cast<int32_t>(sequences_.size()); }
  // Blocks for `num_tokens` tokens that hold NaN. They are those of the oldest call.
  std::vector<BlockId> NewBlocks(int32_t num_tokens);
  std::vector<std::vector<BlockId>> NewBlocksOfAll();

  // Runs a step and returns the answers of the rows that ask for one.
  std::vector<IdentityAnswer> RunStep(IdentityPlan kind, std::span<const IdentityRow> rows);
  // Runs it and compares these answers.
  void Compare(IdentityPlan kind, std::span<const IdentityRow> rows);
  // The answer behind tokens [0, end), computed alone and whole.
  const IdentityAnswer& Expected(int32_t sequence, int32_t end);
  void Begin(std::string name) { cases_.push_back({.name = std::move(name)}); }
  void Note(const IdentityRow& row, bool same);

  void AloneAgain();
  void Together();
  void Chunks(int32_t chunk_tokens);
  void RandomChunks(uint64_t stream);
  void CachedPrefix();
  void Forks();
  void Decodes(bool together, Asked asked, const std::string& name);
  void DecodesBesideAPrompt();

  Runtime* const runtime_;
  const IdentityOptions options_;
  std::vector<std::vector<TokenId>> sequences_;
  std::vector<std::byte> stale_;  // a block of NaN
  int32_t next_block_ = 0;
  GenerateSpec greedy_, with_logprobs_;
  OutputSpec labels_;
  std::deque<DrawSpec> draws_;  // of the step at hand
  std::map<std::pair<int32_t, int32_t>, IdentityAnswer> expected_;
  std::vector<IdentityCase> cases_;
};

IdentityCheck::IdentityCheck(Runtime* runtime, const IdentityOptions& options)
    : runtime_(runtime), options_(options), stale_(runtime->kv_port().port_bytes(), std::byte(-1)) {
  const int32_t vocab = runtime->config().vocab_size;
  for (const int32_t length : options.prompt_tokens) {
    std::vector<TokenId> tokens;
    for (int32_t i = 0; i < length; ++i) {
      const double uniform = UniformAt(options.seed, sequences_.size(), static_cast<uint64_t>(i));
      tokens.push_back(std::min(static_cast<TokenId>(uniform * vocab), vocab - 1));
    }
    sequences_.push_back(std::move(tokens));
  }
  SKEIN_CHECK(IdentityBlocks(options) <= runtime->num_kv_blocks());
  greedy_.sampling.temperature = 0;
  with_logprobs_ = greedy_;
  with_logprobs_.num_logprobs = kTopTokens;
  with_logprobs_.logprob_token_ids = SpreadTokens(kNamedTokens, vocab);
  labels_ = LabelSpec{.tokens = SpreadTokens(kLabelTokens, vocab)};
}

std::vector<BlockId> IdentityCheck::NewBlocks(int32_t num_tokens) {
  std::vector<BlockId> blocks(static_cast<size_t>(BlocksFor(num_tokens)));
  for (BlockId& block : blocks) {
    block = next_block_;
    next_block_ = (next_block_ + 1) % runtime_->num_kv_blocks();
    runtime_->kv_port().ImportBlock(block, stale_);
  }
  std::ranges::reverse(blocks);  // the order in memory is not that of the tokens
  return blocks;
}

std::vector<std::vector<BlockId>> IdentityCheck::NewBlocksOfAll() {
  std::vector<std::vector<BlockId>> blocks;
  for (int32_t i = 0; i < count(); ++i) blocks.push_back(NewBlocks(size(i)));
  return blocks;
}

std::vector<IdentityAnswer> IdentityCheck::RunStep(IdentityPlan kind,
                                                   std::span<const IdentityRow> rows) {
  draws_.clear();
  std::vector<PlanRow> plan_rows;
  for (const IdentityRow& row : rows) {
    const std::span<const TokenId> tokens = sequences_[row.sequence];
    PlanRow plan = {.begin = row.begin,
                    .tokens = tokens.subspan(row.begin, row.end - row.begin),
                    .block_table = *row.blocks,
                    .fork = row.fork};
    if (row.asked != Asked::kNothing) {
      draws_.push_back({.generate = row.asked == Asked::kGreedy ? &greedy_ : &with_logprobs_,
                        .history = tokens.first(row.end),
                        .prompt_len = row.end});
      plan.draws = {&draws_.back(), 1};
    }
    if (row.asked == Asked::kAll) plan.read = &labels_;
    plan_rows.push_back(plan);
  }
  StepPlan plan = OneShotPlan{plan_rows};
  if (kind == IdentityPlan::kDecode) plan = DecodePlan{{}, plan_rows};
  if (kind == IdentityPlan::kMixed) plan = MixedPlan{{}, plan_rows, {}};
  const std::atomic<bool> never{false};
  Executor& executor = runtime_->executor();
  const std::unique_ptr<Task> task = executor.Begin(plan);
  SKEIN_CHECK(executor.Resume(*task, never) == TaskStatus::kDone);
  const StepResults& results = executor.Results(*task);
  std::vector<IdentityAnswer> answers;
  size_t num_reads = 0;
  for (const IdentityRow& row : rows) {
    if (row.asked == Asked::kNothing) continue;
    const DrawResult& draw = results.draws[answers.size()];
    IdentityAnswer answer = {.token = draw.token.token, .finite = draw.finite};
    if (row.asked != Asked::kGreedy) {
      answer.logprobs.push_back(draw.token.chosen.logprob);
      for (const TokenLogprob& top : draw.token.top_logprobs) {
        answer.logprobs.push_back(static_cast<float>(top.token));
        answer.logprobs.push_back(top.logprob);
      }
      for (const TokenLogprob& named : draw.token.named_logprobs) {
        answer.logprobs.push_back(named.logprob);
      }
    }
    if (row.asked == Asked::kAll) {
      const ReadResult& read = results.reads[num_reads++];
      answer.labels = read.values.values;
      answer.finite = answer.finite && read.finite;
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

const IdentityAnswer& IdentityCheck::Expected(int32_t sequence, int32_t end) {
  const auto [found, is_new] = expected_.try_emplace({sequence, end});
  if (is_new) {
    const std::vector<BlockId> blocks = NewBlocks(end);
    const IdentityRow row = {sequence, 0, end, Asked::kAll, &blocks};
    found->second = RunStep(IdentityPlan::kOneShot, {&row, 1})[0];
  }
  return found->second;
}

void IdentityCheck::Note(const IdentityRow& row, bool same) {
  IdentityCase& at = cases_.back();
  ++at.compared;
  at.different += !same;
  if (!same && at.first.empty()) {
    at.first = "the answer behind token " + std::to_string(row.end) + " of the prompt with " +
               std::to_string(size(row.sequence));
  }
}

void IdentityCheck::Compare(IdentityPlan kind, std::span<const IdentityRow> rows) {
  const std::vector<IdentityAnswer> answers = RunStep(kind, rows);
  size_t next = 0;
  for (const IdentityRow& row : rows) {
    if (row.asked == Asked::kNothing) continue;
    const IdentityAnswer& answer = answers[next++];
    Note(row, SameAnswer(answer, Expected(row.sequence, row.end), row.asked));
  }
}

void IdentityCheck::AloneAgain() {
  Begin("alone again");
  for (int32_t i = 0; i < count(); ++i) {
    const std::vector<BlockId> blocks = NewBlocks(size(i));
    const IdentityRow row = {i, 0, size(i), Asked::kAll, &blocks};
    Compare(IdentityPlan::kOneShot, {&row, 1});
  }
}

void IdentityCheck::Together() {
  Begin("in one step, in both orders");
  for (const bool reversed : {false, true}) {
    const std::vector<std::vector<BlockId>> blocks = NewBlocksOfAll();
    std::vector<IdentityRow> rows;
    for (int32_t i = 0; i < count(); ++i) rows.push_back({i, 0, size(i), Asked::kAll, &blocks[i]});
    if (reversed) std::ranges::reverse(rows);
    Compare(IdentityPlan::kOneShot, rows);
  }
}

void IdentityCheck::Chunks(int32_t chunk_tokens) {
  Begin("in chunks of " + std::to_string(chunk_tokens));
  for (int32_t i = 0; i < count(); ++i) {
    if (chunk_tokens == 1 && size(i) > options_.single_tokens) continue;
    const std::vector<BlockId> blocks = NewBlocks(size(i));
    for (int32_t begin = 0; begin < size(i); begin += chunk_tokens) {
      const int32_t end = std::min(size(i), begin + chunk_tokens);
      const Asked asked = end == size(i) ? Asked::kAll : Asked::kNothing;
      const IdentityRow row = {i, begin, end, asked, &blocks};
      Compare(IdentityPlan::kMixed, {&row, 1});
    }
  }
}

// All sequences at once, each by chunks of 1 to 40 tokens, or none in a step.
void IdentityCheck::RandomChunks(uint64_t stream) {
  constexpr int32_t kChunkMax = 40;
  Begin("in random chunks beside others, " + std::to_string(stream));
  Random random(options_.seed + stream);
  const std::vector<std::vector<BlockId>> blocks = NewBlocksOfAll();
  std::vector<int32_t> done(sequences_.size(), 0);
  while (true) {
    std::vector<IdentityRow> rows;
    bool finished = true;
    for (int32_t i = 0; i < count(); ++i) {
      const int32_t left = size(i) - done[i];
      finished = finished && left == 0;
      if (left == 0 || random.OneIn(3)) continue;
      const auto chunk = static_cast<int32_t>(random.Between(1, std::min(left, kChunkMax)));
      const Asked asked = chunk == left ? Asked::kAll : Asked::kNothing;
      rows.push_back({i, done[i], done[i] + chunk, asked, &blocks[i]});
      done[i] += chunk;
    }
    if (finished) break;
    if (!rows.empty()) Compare(IdentityPlan::kMixed, rows);
  }
}

// The first blocks of each sequence come from a step with all sequences, as from a prefix cache.
void IdentityCheck::CachedPrefix() {
  Begin("behind cached prefixes");
  const std::vector<std::vector<BlockId>> cached = NewBlocksOfAll();
  std::vector<IdentityRow> rows;
  for (int32_t i = 0; i < count(); ++i)
    rows.push_back({i, 0, size(i), Asked::kNothing, &cached[i]});
  RunStep(IdentityPlan::kMixed, rows);
  for (int32_t i = 0; i < count(); ++i) {
    for (int32_t begin = kBlockTokens; begin < size(i); begin += 2 * kBlockTokens) {
      const int32_t mark = next_block_;
      std::vector<BlockId> blocks = NewBlocks(size(i));
      std::copy_n(cached[i].begin(), begin / kBlockTokens, blocks.begin());
      const IdentityRow row = {i, begin, size(i), Asked::kAll, &blocks};
      Compare(IdentityPlan::kOneShot, {&row, 1});
      next_block_ = mark;
    }
  }
}

// The prefix and the rest of a sequence in one step: the rest copies the prefix's last block.
void IdentityCheck::Forks() {
  Begin("as forks of a prefix of the same step");
  for (int32_t i = 0; i < count(); ++i) {
    const int32_t split = size(i) * 2 / 3;
    if (split == 0) continue;
    const std::vector<BlockId> parent = NewBlocks(split);
    std::vector<BlockId> blocks = NewBlocks(size(i));
    const int32_t whole = split / kBlockTokens, inside = split % kBlockTokens;
    std::copy_n(parent.begin(), whole, blocks.begin());
    IdentityRow rows[] = {{i, 0, split, Asked::kNothing, &parent},
                          {i, split, size(i), Asked::kAll, &blocks}};
    if (inside > 0) rows[1].fork = {parent[whole], inside};
    Compare(IdentityPlan::kOneShot, rows);
  }
}

// The last tokens of each sequence one by one.
void IdentityCheck::Decodes(bool together, Asked asked, const std::string& name) {
  Begin(name);
  const std::vector<std::vector<BlockId>> blocks = NewBlocksOfAll();
  std::vector<IdentityRow> rows;
  const auto first = [&](int32_t i) { return std::max(0, size(i) - options_.decode_steps); };
  for (int32_t i = 0; i < count(); ++i) {
    if (first(i) > 0) rows.push_back({i, 0, first(i), Asked::kNothing, &blocks[i]});
  }
  if (!rows.empty()) RunStep(IdentityPlan::kMixed, rows);
  for (int32_t step = 0; step < options_.decode_steps; ++step) {
    rows.clear();
    for (int32_t i = 0; i < count(); ++i) {
      const int32_t at = first(i) + step;
      if (at < size(i)) rows.push_back({i, at, at + 1, asked, &blocks[i]});
    }
    if (together) {
      Compare(IdentityPlan::kDecode, rows);
    } else {
      for (const IdentityRow& row : rows) Compare(IdentityPlan::kDecode, {&row, 1});
    }
  }
}

void IdentityCheck::DecodesBesideAPrompt() {
  Begin("decoded beside a prompt");
  const std::vector<std::vector<BlockId>> blocks = NewBlocksOfAll();
  std::vector<IdentityRow> rows;
  const int32_t last = count() - 1;
  for (int32_t i = 0; i < last; ++i) {
    if (size(i) > 1) rows.push_back({i, 0, size(i) - 1, Asked::kNothing, &blocks[i]});
  }
  if (!rows.empty()) RunStep(IdentityPlan::kMixed, rows);
  rows = {{last, 0, size(last), Asked::kAll, &blocks[last]}};
  for (int32_t i = 0; i < last; ++i) {
    rows.push_back({i, size(i) - 1, size(i), Asked::kLogprobs, &blocks[i]});
  }
  Compare(IdentityPlan::kMixed, rows);
}

std::vector<IdentityCase> IdentityCheck::Run() {
  AloneAgain();
  Together();
  for (const int32_t chunk : {1, 16, 37, 64}) Chunks(chunk);
  for (const uint64_t stream : {1, 2, 3}) RandomChunks(stream);
  CachedPrefix();
  Forks();
  Decodes(false, Asked::kLogprobs, "decoded alone, as graphs");
  Decodes(true, Asked::kLogprobs, "decoded together, as graphs");
  Decodes(true, Asked::kGreedy, "decoded together, tokens alone");
  Decodes(true, Asked::kAll, "decoded together, launch by launch");
  DecodesBesideAPrompt();
  return cases_;
}

IdentityCase IdentityCheck::Beside(IdentityCheck* other) {
  Begin("alone, beside " + options_.beside);
  for (int32_t i = 0; i < count(); ++i) {
    if (size(i) > options_.beside_tokens) continue;
    Note({i, 0, size(i)},
         SameAnswer(Expected(i, size(i)), other->Expected(i, size(i)), Asked::kAll));
  }
  return cases_.back();
}

int32_t BlocksOfAll(const IdentityOptions& options) {
  int32_t blocks = 0;
  for (const int32_t length : options.prompt_tokens) blocks += BlocksFor(length);
  return blocks;
}

}  // namespace

int32_t IdentityTokens(const IdentityOptions& options) {
  return std::accumulate(options.prompt_tokens.begin(), options.prompt_tokens.end(), 0);
}

// While a case holds the blocks of all sequences, expected answers take further blocks. A case asks
// for at most decode_steps answers of each sequence before it ends.
int32_t IdentityBlocks(const IdentityOptions& options) {
  return (3 + options.decode_steps) * BlocksOfAll(options);
}

std::vector<IdentityCase> CheckIdentity(Runtime* runtime, const IdentityOptions& options,
                                        Runtime* beside) {
  IdentityCheck check(runtime, options);
  std::vector<IdentityCase> cases = check.Run();
  if (beside != nullptr) {
    IdentityCheck other(beside, options);
    cases.push_back(check.Beside(&other));
  }
  return cases;
}

}  // namespace skein
