#include "bench/sched/candidates.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "bench/sched/radix_candidate.h"
#include "sched/decode_set/prefix_groups.h"

namespace skein {
namespace {

using TokenSpan = std::span<const TokenId>;

// Makes the choice of HashTreeSource with chunks of one token, by comparing the tokens of all
// prompts.
class RadixSource final : public CandidateSource {
 public:
  Handle Insert(const Sequence& sequence, const Rank& rank) override {
    const auto free = std::ranges::find(members_, State::kFree, &Member::state);
    const auto handle = static_cast<Handle>(free - members_.begin());
    if (free == members_.end()) members_.emplace_back();
    members_[handle] = {.sequence = &sequence, .rank = rank, .state = State::kWaiting};
    return handle;
  }
  void Add(Handle request) override { members_[request].state = State::kActive; }
  void Finish(Handle request) override { members_[request] = {}; }
  void Remove(Handle request) override { members_[request] = {}; }

  std::optional<Handle> FindBest() override {
    const View view = Look();
    const auto best = FindRadixCandidate(view.active, view.waiting);
    if (!best) return std::nullopt;
    return view.handles[best->index];
  }
  StopQuestion QuestionOf(Handle request) const override {
    const View view = Look();
    const auto index =
        static_cast<int32_t>(std::ranges::find(view.handles, request) - view.handles.begin());
    const auto one = *FindRadixCandidate(view.active, std::span(view.waiting).subspan(index, 1));
    return {.batch_size = num_active(),
            .lost_tokens = std::max(0, one.shared_before - one.shared_after),
            .num_peers = CountRadixPeers(view.waiting, index, one.shared_after)};
  }
  int32_t num_waiting() const override { return Count(State::kWaiting); }
  int32_t num_active() const override { return Count(State::kActive); }
  int64_t shared_tokens() const override {
    const View view = Look();
    if (view.active.empty()) return 0;
    const TokenSpan first = view.active.front();
    int64_t shared = std::ssize(first);
    for (const TokenSpan prompt : view.active) {
      shared = std::min(shared, std::ranges::mismatch(prompt, first).in2 - first.begin());
    }
    return shared;
  }

 private:
  enum class State { kFree, kWaiting, kActive };
  struct Member {
    const Sequence* sequence = nullptr;
    Rank rank;
    State state = State::kFree;
  };
  struct View {
    std::vector<TokenSpan> active;
    std::vector<RadixPrompt> waiting;
    std::vector<Handle> handles;  // handles of the requests in `waiting`
  };

  static TokenSpan PromptOf(const Member& member) {
    const auto length = static_cast<size_t>(member.sequence->request->prompt_len);
    return TokenSpan(member.sequence->tokens).first(length);
  }
  View Look() const {
    View view;
    for (Handle i = 0; i < std::ssize(members_); ++i) {
      const Member& member = members_[i];
      if (member.state == State::kActive) view.active.push_back(PromptOf(member));
      if (member.state != State::kWaiting) continue;
      view.waiting.push_back({PromptOf(member), member.rank});
      view.handles.push_back(i);
    }
    return view;
  }
  int32_t Count(State state) const {
    return static_cast<int32_t>(std::ranges::count(members_, state, &Member::state));
  }

  std::vector<Member> members_;  // by handle
};

// Treats all requests of one user as if they shared a prefix. The hash vector of a request is one
// chunk, which stands for its user. Adding a request of another user to the batch costs as many
// tokens as its prompt has. A request without a user shares nothing.
class UserSource final : public CandidateSource {
 public:
  Handle Insert(const Sequence& sequence, const Rank& rank) override {
    const RequestRecord& request = *sequence.request;
    const std::string& user = request.request.user;
    const std::vector<int32_t> letters(user.begin(), user.end());
    const uint64_t words[] = {HashTokens(letters, 0), user.empty() ? request.id + 1 : 0};
    const Handle handle = tree_.Insert({.num_chunks = 1, .tail = HashWords(words, 0)}, rank);
    if (handle >= std::ssize(prompt_lens_)) prompt_lens_.resize(handle + 1);
    prompt_lens_[handle] = request.prompt_len;
    return handle;
  }
  void Add(Handle request) override { tree_.Add(request); }
  void Finish(Handle request) override { tree_.Finish(request); }
  void Remove(Handle request) override { tree_.Remove(request); }
  std::optional<Handle> FindBest() override {
    const auto best = tree_.FindBest();
    if (!best) return std::nullopt;
    return best->request;
  }
  StopQuestion QuestionOf(Handle request) const override {
    const ChunkedHashTree::Candidate one = tree_.Evaluate(request);
    const int32_t lost = std::max(0, one.shared_before - one.shared_after);
    return {.batch_size = tree_.num_active(),
            .lost_tokens = lost * prompt_lens_[request],
            .num_peers = one.num_peers};
  }
  int32_t num_waiting() const override { return tree_.num_waiting(); }
  int32_t num_active() const override { return tree_.num_active(); }
  int64_t shared_tokens() const override { return 0; }  // not known: no tokens are compared
  void CheckIntegrity() const override { tree_.CheckIntegrity(); }

 private:
  ChunkedHashTree tree_{ChunkedHashTree::Choice::kLeastPrefixLoss};
  std::vector<int32_t> prompt_lens_;  // by handle
};

template <typename Source>
std::unique_ptr<DecodeSetPolicy> GroupsOf(const SchedulerConfig& config,
                                          const CostModel* /*cost*/) {
  return std::make_unique<PrefixGroups>(config.prefix_groups, config.prefix_groups.learned.get(),
                                        std::make_unique<Source>());
}

constexpr DecodeSetEntry kByTokens[] = {{DecodeSet::kPrefixHomogeneous, GroupsOf<RadixSource>}};
constexpr DecodeSetEntry kByUsers[] = {{DecodeSet::kPrefixHomogeneous, GroupsOf<UserSource>}};

}  // namespace

PolicyLists PoliciesWith(Candidates candidates) {
  PolicyLists lists = BuiltInPolicies();
  if (candidates == Candidates::kRadix) lists.decode_sets = kByTokens;
  if (candidates == Candidates::kUser) lists.decode_sets = kByUsers;
  return lists;
}

}  // namespace skein
