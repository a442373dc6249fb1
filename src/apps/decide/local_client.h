#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/generation/generation_fields.h"
#include "server/generation/generation_session.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// The answer to one request of a LocalClient.
struct LocalAnswer {
  std::vector<std::string> texts;            // [num_samples]
  std::vector<FinishReason> finish;          // [num_samples]
  std::vector<std::vector<TokenId>> tokens;  // [num_samples]
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;
  Status status;  // not ok: the reason why there is no answer
};

// Asks a model of this process, with the fields of the API, without HTTP. One thread.
class LocalClient {
 public:
  // `model` outlives the client.
  explicit LocalClient(const ModelEntry* model) : model_(model) {}
  // Cancels the requests that are still running.
  ~LocalClient();

  // Submits a request with `prompt` (a text or token ids; add_special_tokens) or `messages`, and
  // the other fields of /v1/completions. All requests that are submitted before the first Wait run
  // together. Fails as the server does; the error names the field.
  Status Submit(const Json& body);

  // Called with the text so far of a request's first sample: (index of the request, text).
  using OnText = std::function<void(size_t, const std::string&)>;
  // Called at least 20 times a second. If it returns true, all answers end with the text so far
  // (kCancelled).
  using Stopped = std::function<bool()>;
  // Returns the answers in the order of submission. Afterwards the client can be used again.
  std::vector<LocalAnswer> Wait(const OnText& on_text = nullptr, const Stopped& stopped = nullptr);

 private:
  struct Call {
    std::unique_ptr<GenerationSession> session;
    RequestId id = 0;
    LocalAnswer answer;
  };
  // The outputs that come from the engine's thread. Shared with callbacks that may outlive the
  // client.
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<size_t, RequestOutput>> outputs;
  };

  Result<std::vector<TokenId>> ReadPrompt(const Json& body, FieldReader* reader) const;
  // Returns the outputs that came since the last call. Waits for an output; if it `may_be_stopped`,
  // only for a short time.
  std::deque<std::pair<size_t, RequestOutput>> TakeOutputs(bool may_be_stopped);
  // Returns true when all samples of the request have ended.
  bool Consume(size_t index, RequestOutput output, const OnText& on_text);

  const ModelEntry* model_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::vector<Call> calls_;
};

}  // namespace skein
