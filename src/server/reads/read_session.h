#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "server/generation/output_mailbox.h"
#include "server/http/http_message.h"
#include "server/json/json.h"
#include "server/metrics.h"
#include "server/model_registry.h"
#include "server/reads/prompt_tree.h"
#include "server/router.h"
#include "skein/request.h"

namespace skein {

// The prompt tokens of all reads of one HTTP request. A common beginning of several prompts is
// counted once.
struct ReadUsage {
  int64_t input_tokens = 0;
  int64_t cached_tokens = 0;  // the part of these tokens that came from the prefix cache
};

struct ReadResults {
  std::vector<ReadValues> reads;  // in the order of the requests
  // For requests that ask for it: the log-probabilities of the prompt's own tokens, from
  // PromptLogprobsSpec::start on.
  std::vector<std::vector<float>> prompt_logprobs;
  ReadUsage usage;
};

// One HTTP request that reads labels, embeddings or classes. It submits its requests to the engine
// as one group, waits for all of them and answers with one JSON body. If one request fails, or if
// the client goes away, all are cancelled.
//
//   engine's thread --Put--> mailbox --Post--> strand: reads -> answer -> responder
//
// Thread rule: Start on any thread, once. `answer` and `write` run on the responder's strand or,
// for a long answer, on a worker's thread; the rest runs on the strand.
class ReadSession : public std::enable_shared_from_this<ReadSession> {
 public:
  struct Spec {
    const ModelEntry* model = nullptr;
    Metrics* metrics = nullptr;
    // ServerContext::charge, called with the tokens of the usage
    std::function<void(int64_t num_tokens)> charge;
    RouteClass route_class = RouteClass::kOther;
    std::shared_ptr<Responder> responder;
    // At least one request; none of them generates. All have the same group.parent_prefix_len.
    std::vector<Request> requests;
    // [requests.size()]: whether the usage counts the request; common beginnings are then counted
    // once. Empty: the usage counts all requests, and only their first group.parent_prefix_len
    // tokens are counted once.
    std::vector<bool> charged;
    TimeUs tokenize_us = 0;  // for all requests together
    // Makes the body of the answer. If it fails, its status is the answer.
    std::function<Result<Json>(const ReadResults& results)> answer;
    // Replaces `answer` for bodies too long for a JSON value: makes the text of the body.
    std::function<std::string(ReadResults results)> write;
    std::string content_type = "application/json";  // of the text that `write` makes
  };

  explicit ReadSession(Spec spec);
  // Submits the requests. If the engine refuses one, answers 400, 429 or 503 and runs none.
  void Start();

 private:
  struct Part {
    std::optional<TimeUs> slo_ttft_us;
    int32_t prompt_tokens = 0;
    int32_t cached_tokens = 0;
    bool done = false;
    bool charged = true;
  };

  void OnStarted(std::vector<RequestId> ids);
  void OnOutputs();
  void OnOutput(RequestOutput output);
  void Complete();
  void SendAnswer();
  void OnAbort(AbortReason reason);
  void Fail(const Status& status);
  void CancelAll();
  void Finish();
  ReadUsage Usage() const;

  const ModelEntry* model_;
  Metrics* metrics_;
  std::function<void(int64_t num_tokens)> charge_;  // may be null
  RouteClass route_class_;
  std::shared_ptr<Responder> responder_;
  TimeUs tokenize_us_;
  std::function<Result<Json>(const ReadResults&)> answer_;
  std::function<std::string(ReadResults)> write_;
  const std::string content_type_;
  PromptTree tree_;                // of the charged requests
  std::vector<Request> requests_;  // empty once they are submitted
  std::vector<Part> parts_;
  std::vector<RequestId> ids_;
  std::unordered_map<RequestId, size_t> index_of_;
  std::vector<ReadValues> reads_;
  std::vector<std::vector<float>> prompt_logprobs_;
  size_t num_unfinished_;
  std::shared_ptr<OutputMailbox> mailbox_;
  bool started_ = false;  // the ids of the engine's requests are known
  bool finished_ = false;
};

// kInvalidArgument (param `field`) if the queue cannot hold the reads of one request.
Status CheckNumReads(const ModelEntry& model, const std::string& field, size_t num_reads);

// Starts a session that sends `requests` to `model` and answers with `answer`. Tokenizing of their
// texts began at `tokenize_begin_us` on a MonotonicClock.
void StartReads(const ServerContext& context, const ModelEntry* model,
                std::shared_ptr<Responder> responder, TimeUs tokenize_begin_us,
                std::vector<Request> requests,
                std::function<Result<Json>(const ReadResults& results)> answer,
                std::vector<bool> charged = {});

// Makes {prompt_tokens, completion_tokens: 0, total_tokens, prompt_tokens_details} of the usage.
Json ReadUsageJson(const ReadUsage& usage);

}  // namespace skein
