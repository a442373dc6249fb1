#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "skein/engine.h"
#include "skein/token_grammar.h"

namespace skein::fuzz {

// An engine without a thread: Pump answers what was submitted. A seed decides everything: tokens,
// values, the order of outputs, requests that are refused, that fail, and that end early.
class QuietEngine final : public Engine {
 public:
  static constexpr int32_t kMaxModelLen = 4096;

  explicit QuietEngine(int32_t vocab_size) : vocab_size_(vocab_size) {}

  void Begin(uint64_t seed) { random_ = Random(seed); }
  // A round: at most one output of each sample that runs. False: there are none.
  bool Pump();
  bool empty() const { return running_.empty(); }

  Status Submit(Request request, OutputCallback callback, RequestId* id) override;
  Status SubmitGroup(std::vector<Request> requests, OutputCallback callback,
                     std::vector<RequestId>* ids) override;
  void Cancel(RequestId id) override;
  void CancelSample(RequestId id, int32_t sample) override;
  EngineLimits Limits() const override;
  EngineStats Stats() const override { return {}; }

 private:
  struct Sample {
    int32_t num_tokens = 0;
    bool cancelled = false, finished = false;
    std::unique_ptr<GrammarState> grammar;
    std::vector<TokenId> output;
  };
  struct Running {
    Request request;
    OutputCallback callback;
    std::vector<Sample> samples;
  };

  Status Refuse();
  RequestOutput Step(Running* running, size_t index);
  void Read(const Request& request, RequestOutput* output);
  void Generate(const Request& request, Sample* sample, RequestOutput* output);
  void AddPromptLogprobs(const Request& request, RequestOutput* output);
  TokenId NextToken(const GenerateSpec& spec, Sample* sample);
  TokenLogprob Logprob(TokenId token, int32_t rank) {
    return {token, -static_cast<float>(random_.Uniform()) * 20, rank};
  }

  const int32_t vocab_size_;
  Random random_{0};
  std::map<RequestId, Running> running_;
  RequestId next_id_ = 1;
};

}  // namespace skein::fuzz
