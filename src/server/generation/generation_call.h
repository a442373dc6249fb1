#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/generation/answer_format.h"
#include "server/generation/generation_fields.h"
#include "server/generation/output_mailbox.h"
#include "server/http/http_message.h"
#include "server/metrics.h"
#include "server/model_registry.h"
#include "server/router.h"

namespace skein {

struct GenerationPrompt {
  std::vector<TokenId> ids;
  std::string echo;  // text before the answer; may be empty
};

// One HTTP request that generates. It submits its prompts to the engine, turns outputs into an
// answer or a stream, and cancels requests whose output no client reads any more.
//
//   engine's thread --Put--> mailbox --Post--> strand: session -> format -> responder
//
// Thread rule: Start on any thread, once. The rest runs on the responder's strand; only a long
// answer is made on a worker's thread.
class GenerationCall : public std::enable_shared_from_this<GenerationCall> {
 public:
  struct Spec {
    const ModelEntry* model = nullptr;
    Metrics* metrics = nullptr;
    // ServerContext::charge: called with the number of prompt tokens at the start, and with the
    // number of answer tokens at the end, however the request ends.
    std::function<void(int64_t num_tokens)> charge;
    std::shared_ptr<Responder> responder;
    GenerationFields fields;
    std::vector<GenerationPrompt> prompts;
    std::unique_ptr<AnswerFormat> format;
    TimeUs tokenize_us = 0;  // for all prompts together
  };

  explicit GenerationCall(Spec spec);
  // Submits the prompts. If the engine refuses one, answers 400, 429 or 503 and cancels the prompts
  // before it.
  void Start();

 private:
  // One prompt, which is one request of the engine.
  struct Part {
    GenerationPrompt prompt;
    GenerationSession session;
    std::vector<PromptLogprob> prompt_logprobs;
    RequestId id = 0;
    RequestTimes times;
    std::vector<TimeUs> last_token_us;  // [sample]; on the mailbox's clock
    TimeUs first_received_us = 0;
    bool observed = false;
  };

  void OnStarted(std::vector<RequestId> ids);
  void OnOutputs();
  void OnOutput(OutputMailbox::Item item, std::string* events);
  void ObserveTimes(const OutputMailbox::Item& item, Part* part);
  void OnDelta(size_t prompt, ChoiceDelta delta, std::string* events);
  void OnAbort(AbortReason reason);
  void Fail(const Status& status);
  void CancelAll();
  void Complete(std::string* events);
  void SendAnswer();
  size_t NumEntries() const;  // tokens that the answer describes
  void BeginStream();
  void WriteEvents(std::string events);
  void Finish();
  Usage UsageNow() const;

  const ModelEntry* model_;
  Metrics* metrics_;
  std::function<void(int64_t num_tokens)> charge_;  // may be null
  std::shared_ptr<Responder> responder_;
  GenerationFields fields_;
  std::unique_ptr<AnswerFormat> format_;
  TimeUs tokenize_us_;
  std::vector<Part> parts_;
  std::vector<ChoiceState> choices_;
  std::shared_ptr<OutputMailbox> mailbox_;
  bool started_ = false;    // the ids of the engine's requests are known
  bool streaming_ = false;  // the head of the stream has been sent
  bool finished_ = false;
};

// Makes a route's handler that starts a call. If `start` fails, the handler answers with `failure`
// of the status; with ErrorResponse if `failure` is null.
Handler Starting(Status (*start)(const ServerContext&, const HttpRequest&,
                                 std::shared_ptr<Responder>),
                 HttpResponse (*failure)(const Status&) = nullptr);

}  // namespace skein
