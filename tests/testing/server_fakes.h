#pragma once

// Stand-ins for the engine and the tokenizer, for the server's tests only.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "skein/engine.h"
#include "text/tokenizer.h"

namespace skein::testing {

constexpr TokenId kFakeEos = 256;
constexpr int32_t kFakeVocabSize = 257;

// One token per byte; 256 is a special end token.
class ByteTokenizer : public Tokenizer {
 public:
  Status Encode(std::string_view text, bool, std::vector<TokenId>* ids) const override {
    for (unsigned char c : text) ids->push_back(c);
    return Status::Ok();
  }
  // A pair has the end token between its texts.
  Status EncodeFull(const EncodeInput& input, const EncodeOptions& options,
                    Encoding* encoding) const override {
    if (!input.pair || options.truncation) {
      return Status(StatusCode::kUnsupported, "only pairs, and as they are");
    }
    (void)Encode(input.text, true, &encoding->ids);
    encoding->ids.push_back(kFakeEos);
    encoding->type_ids.assign(encoding->ids.size(), 0);
    (void)Encode(*input.pair, true, &encoding->ids);
    encoding->type_ids.resize(encoding->ids.size(), 1);
    return Status::Ok();
  }
  std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const override {
    std::string text;
    for (TokenId id : ids) {
      if (id < 256) text += static_cast<char>(id);
      if (id == kFakeEos && !skip_special_tokens) text += "<eos>";
    }
    return text;
  }
  std::unique_ptr<TextStream> NewTextStream(bool skip_special_tokens) const override {
    return std::make_unique<Stream>(this, skip_special_tokens);
  }
  int32_t vocab_size() const override { return kFakeVocabSize; }
  std::optional<TokenId> TokenToId(std::string_view token) const override {
    if (token == "<eos>") return kFakeEos;
    if (token.size() == 1) return static_cast<unsigned char>(token[0]);
    return std::nullopt;
  }
  std::string_view IdToToken(TokenId id) const override {
    static const std::string kBytes = [] {
      std::string bytes;
      for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
      return bytes;
    }();
    if (id == kFakeEos) return "<eos>";
    return std::string_view(kBytes).substr(static_cast<size_t>(id), 1);
  }
  std::string TokenBytes(TokenId id) const override { return std::string(IdToToken(id)); }
  bool IsSpecial(TokenId id) const override { return id == kFakeEos; }
  std::optional<TokenId> bos_id() const override { return std::nullopt; }
  std::optional<TokenId> eos_id() const override { return kFakeEos; }
  std::optional<TokenId> pad_id() const override { return std::nullopt; }

 private:
  // Holds a character back until its last byte has come, by the count in its first byte.
  class Stream final : public TextStream {
   public:
    Stream(const ByteTokenizer* tokenizer, bool skip) : tokenizer_(tokenizer), skip_(skip) {}
    void Push(TokenId id, std::string* out) override {
      held_ += tokenizer_->Decode({&id, 1}, skip_);
      const auto first = held_.empty() ? 0 : static_cast<unsigned char>(held_[0]);
      const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
      if (held_.size() >= size) *out += std::exchange(held_, {});
    }
    void Finish(std::string* out) override {
      if (!std::exchange(held_, {}).empty()) *out += "\xEF\xBF\xBD";
    }

   private:
    const ByteTokenizer* tokenizer_;
    bool skip_;
    std::string held_;
  };
};

// Bytes, of which the first ones after 0 stand for marks: byte 1 is the first mark.
class MarkTokenizer final : public ByteTokenizer {
 public:
  explicit MarkTokenizer(std::vector<std::string> marks) : marks_(std::move(marks)) {}

  std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const override {
    std::string text;
    for (TokenId id : ids) {
      if (!IsMark(id)) {
        text += ByteTokenizer::Decode({&id, 1}, skip_special_tokens);
      } else if (!skip_special_tokens) {
        text += marks_[static_cast<size_t>(id) - 1];
      }
    }
    return text;
  }
  std::optional<TokenId> TokenToId(std::string_view token) const override {
    for (size_t i = 0; i < marks_.size(); ++i) {
      if (marks_[i] == token) return static_cast<TokenId>(i) + 1;
    }
    return ByteTokenizer::TokenToId(token);
  }
  bool IsSpecial(TokenId id) const override { return IsMark(id) || ByteTokenizer::IsSpecial(id); }

  // The text with a byte instead of each mark.
  std::string Coded(std::string text) const {
    for (size_t i = 0; i < marks_.size(); ++i) {
      const std::string& mark = marks_[i];
      for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
        text.replace(at, mark.size(), 1, static_cast<char>(i + 1));
      }
    }
    return text;
  }

 private:
  bool IsMark(TokenId id) const { return id > 0 && id <= static_cast<TokenId>(marks_.size()); }

  const std::vector<std::string> marks_;
};

inline constexpr int32_t kFakeMaxTailLen = 8192;

// Answers each request with `reply` (bytes as tokens, then the end token) over and over until the
// budget is used up, one token of every request per round, on a thread of its own.
class FakeEngine final : public Engine {
 public:
  FakeEngine() : thread_([this] { Loop(); }) {}
  ~FakeEngine() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Status Submit(Request request, OutputCallback callback, RequestId* id) override {
    std::lock_guard lock(mutex_);
    if (static_cast<int32_t>(running_.size()) >= queue_limit_) {
      return Status(StatusCode::kResourceExhausted, "the queue is full");
    }
    *id = next_id_++;
    last_request_ = request;
    Running running;
    running.samples.resize(static_cast<size_t>(NumSamples(request)));
    running.request = std::move(request);
    running.callback = std::move(callback);
    running_.emplace(*id, std::move(running));
    changed_.notify_all();
    return Status::Ok();
  }
  Status SubmitGroup(std::vector<Request> requests, OutputCallback callback,
                     std::vector<RequestId>* ids) override {
    {
      std::lock_guard lock(mutex_);
      if (static_cast<int32_t>(running_.size() + requests.size()) > queue_limit_) {
        return Status(StatusCode::kResourceExhausted, "the queue is full");
      }
      last_group_ = requests;
    }
    ids->clear();
    for (Request& request : requests) {
      ids->emplace_back();
      if (Status status = Submit(std::move(request), callback, &ids->back()); !status.ok()) {
        return status;
      }
    }
    return Status::Ok();
  }
  Status CheckWait(const Request&, int64_t) override {
    if (!Get(refuses_early_)) return Status::Ok();
    return Status(StatusCode::kResourceExhausted, "the queue is too long").RetryAfter(3);
  }
  void Cancel(RequestId id) override {
    std::lock_guard lock(mutex_);
    const auto found = running_.find(id);
    if (found == running_.end()) return;
    ++num_cancelled_;
    for (Sample& sample : found->second.samples) sample.cancelled = true;
    changed_.notify_all();
  }
  void CancelSample(RequestId id, int32_t index) override {
    std::lock_guard lock(mutex_);
    const auto found = running_.find(id);
    if (found == running_.end()) return;
    ++num_samples_cancelled_;
    found->second.samples[static_cast<size_t>(index)].cancelled = true;
    changed_.notify_all();
  }
  EngineLimits Limits() const override {
    return {kFakeVocabSize,
            /*max_model_len=*/max_model_len_,
            /*max_num_seqs=*/8,
            /*max_logprobs=*/5,
            queue_limit_,
            max_whole_prompt_len_,
            /*max_tail_len=*/kFakeMaxTailLen};
  }
  EngineStats Stats() const override {
    std::lock_guard lock(mutex_);
    EngineStats stats;
    stats.num_requests_running = static_cast<int32_t>(running_.size());
    stats.generation_tokens = num_tokens_;
    stats.iteration_tokens[1] = 3;
    stats.iteration_tokens_sum = 12;
    stats.ttft_error_alone.counts[18] = 2;  // in (0.75, 1]
    stats.rounds_arrival = 5;
    stats.rounds_cancellation = 1;
    stats.rounds_timer = 2;
    stats.rounds_completion = 7;
    stats.steps_oneshot = 3;
    stats.steps_mixed = 20;
    stats.steps_decode = 100;
    stats.steps_preempted = 6;
    stats.steps_resumed = 4;
    stats.steps_dropped = 2;
    stats.signals = 8;
    stats.blocking_us = 2'500'000;
    stats.max_blocking_us = 750'000;
    stats.wakeups = 9;
    stats.wakeup_us = 1'500'000;
    stats.max_wakeup_us = 250'000;
    stats.scheduler_us = 500'000;
    return stats;
  }

  Status View(std::function<void(EngineView)> done) override {
    {
      std::lock_guard lock(mutex_);
      if (holds_views_) {
        held_views_.push_back(std::move(done));
        return Status::Ok();
      }
    }
    done(Get(view_));
    return Status::Ok();
  }

  // Set before requests that should see them.
  void set_view(EngineView view) {
    Set([&] { view_ = std::move(view); });
  }
  // Views are never answered. Their callbacks are kept to the end of the engine.
  void set_holds_views(bool holds) {
    Set([&] { holds_views_ = holds; });
  }
  void set_reply(std::string reply) {
    Set([&] { reply_ = std::move(reply); });
  }
  // The values [num_labels, embedding size or num_classes] of requests that do not generate.
  void set_reader(std::function<ReadValues(const Request&)> reader) {
    Set([&] { reader_ = std::move(reader); });
  }
  // Sample i says i * `lag` dots before its reply.
  void set_lag(int32_t lag) {
    Set([&] { lag_ = lag; });
  }
  // So long each output of a sample but the first is on its way.
  void set_delay(std::chrono::milliseconds delay) {
    Set([&] { delay_ = delay; });
  }
  void set_paused(bool paused) {
    Set([&] { paused_ = paused; });
  }
  void set_failing(bool failing) {
    Set([&] { failing_ = failing; });
  }
  void set_queue_limit(int32_t limit) {
    Set([&] { queue_limit_ = limit; });
  }
  // CheckWait fails, and Submit does not.
  void set_refuses_early(bool refuses) {
    Set([&] { refuses_early_ = refuses; });
  }
  void set_max_whole_prompt_len(int32_t num_tokens) {
    Set([&] { max_whole_prompt_len_ = num_tokens; });
  }

  int num_cancelled() const { return Get(num_cancelled_); }
  int num_samples_cancelled() const { return Get(num_samples_cancelled_); }
  Request last_request() const { return Get(last_request_); }
  std::vector<Request> last_group() const { return Get(last_group_); }
  int num_held_views() const {
    std::lock_guard lock(mutex_);
    return static_cast<int>(held_views_.size());
  }
  int num_running() const {
    std::lock_guard lock(mutex_);
    return static_cast<int>(running_.size());
  }

 private:
  struct Sample {
    int32_t num_tokens = 0;
    bool cancelled = false;
    bool finished = false;
  };
  struct Running {
    Request request;
    OutputCallback callback;
    std::vector<Sample> samples;
  };

  template <typename Fn>
  void Set(Fn fn) {
    std::lock_guard lock(mutex_);
    fn();
    changed_.notify_all();
  }
  template <typename T>
  T Get(const T& value) const {
    std::lock_guard lock(mutex_);
    return value;
  }

  bool HasWork() const {
    return std::any_of(running_.begin(), running_.end(), [this](const auto& entry) {
      const auto& samples = entry.second.samples;
      return !paused_ || std::any_of(samples.begin(), samples.end(),
                                     [](const Sample& s) { return s.cancelled && !s.finished; });
    });
  }

  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || HasWork(); });
      if (stop_) return;
      std::vector<std::pair<OutputCallback, RequestOutput>> outputs;
      for (auto it = running_.begin(); it != running_.end();) {
        bool done = true;
        for (size_t i = 0; i < it->second.samples.size(); ++i) {
          if (auto output = Step(&it->second, i)) {
            output->request = it->first;
            outputs.emplace_back(it->second.callback, *std::move(output));
          }
          done = done && it->second.samples[i].finished;
        }
        it = done ? running_.erase(it) : std::next(it);
      }
      const std::chrono::milliseconds delay = delay_;
      lock.unlock();
      for (auto& [callback, output] : outputs) {
        if (output.sample > 0) std::this_thread::sleep_for(delay);
        callback(std::move(output));
      }
      lock.lock();
    }
  }

  std::optional<RequestOutput> Step(Running* running, size_t index) {
    Sample& sample = running->samples[index];
    if (sample.finished || (paused_ && !sample.cancelled)) return std::nullopt;
    RequestOutput output;
    output.sample = static_cast<int32_t>(index);
    output.cached_tokens = 2;
    output.times = {1000, 2000, 3000, 0};
    if (sample.cancelled) {
      output.finish = FinishReason::kCancelled;
    } else if (failing_ && sample.num_tokens > 0) {
      output.finish = FinishReason::kError;
      output.status = Status(StatusCode::kInternal, "the fake engine fails");
    } else if (!running->request.generates()) {
      output.read = reader_(running->request);
      output.finish = FinishReason::kStop;
    } else {
      const GenerateSpec& spec = running->request.generate();
      if (index == 0 && sample.num_tokens == 0) FillPromptLogprobs(running->request, &output);
      if (spec.max_tokens == 0) {
        output.finish = FinishReason::kLength;
        output.times.finished_us = 9000;
        sample.finished = true;
        return output;
      }
      const int32_t num_dots = lag_ * output.sample;
      output.tokens.push_back(NextToken(spec, sample.num_tokens++ - num_dots));
      ++num_tokens_;
      const TokenId id = output.tokens[0].token;
      const auto& stops = spec.stop_token_ids;
      const bool whole_choice = !spec.choices.empty() &&
                                sample.num_tokens == static_cast<int32_t>(spec.choices[0].size());
      if (whole_choice || std::find(stops.begin(), stops.end(), id) != stops.end()) {
        output.finish = FinishReason::kStop;
      } else if (sample.num_tokens >= spec.max_tokens) {
        output.finish = FinishReason::kLength;
      }
    }
    if (output.finish) output.times.finished_us = 9000;
    sample.finished = output.finish.has_value();
    return output;
  }

  // The token at position p has logprob -p and rank 3; 'A', 'B' and so on are the likely ones.
  static void FillPromptLogprobs(const Request& request, RequestOutput* output) {
    if (!request.prompt_logprobs) return;
    for (size_t p = std::max(1, request.prompt_logprobs->start); p < request.prompt.size(); ++p) {
      PromptLogprob entry = {static_cast<int32_t>(p), {request.prompt[p], -float(p), 3}, {}};
      for (int32_t k = 0; k < request.prompt_logprobs->num_top; ++k) {
        entry.top_logprobs.push_back({'A' + k, -0.25f - float(k), k + 1});
      }
      output->prompt_logprobs.push_back(std::move(entry));
    }
  }

  // A dot before the reply begins, at position 0.
  OutputToken NextToken(const GenerateSpec& spec, int32_t position) const {
    const size_t at = static_cast<size_t>(position) % (reply_.size() + 1);
    OutputToken token;
    // A fake keeps to the first choice.
    token.token = position < 0            ? '.'
                  : !spec.choices.empty() ? spec.choices[0][static_cast<size_t>(position)]
                  : at == reply_.size()   ? kFakeEos
                                          : static_cast<unsigned char>(reply_[at]);
    if (spec.num_logprobs) {
      token.chosen = {token.token, -0.5f, 1};
      for (int32_t k = 0; k < *spec.num_logprobs; ++k) {
        token.top_logprobs.push_back({k == 0 ? token.token : 'A' + k, -0.5f - k, k + 1});
      }
      for (TokenId id : spec.logprob_token_ids) token.named_logprobs.push_back({id, -9.5f, 0});
    }
    return token;
  }

  const int32_t max_model_len_ = 100'000'000;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, Running> running_;
  RequestId next_id_ = 1;
  Request last_request_;
  std::vector<Request> last_group_;
  // By default the i-th label has logit -i, and every vector is (0.6, 0.8).
  std::function<ReadValues(const Request&)> reader_ = [](const Request& request) {
    ReadValues read = {.values = {0.6f, 0.8f}, .log_sum_exp = 2.0f};
    if (const auto* labels = std::get_if<LabelSpec>(&request.output)) {
      read.values.clear();
      for (size_t i = 0; i < labels->tokens.size(); ++i) read.values.push_back(-float(i));
    }
    return read;
  };
  EngineView view_;
  bool holds_views_ = false;
  std::vector<std::function<void(EngineView)>> held_views_;
  std::string reply_ = "Hello, world";
  int32_t lag_ = 0;
  std::chrono::milliseconds delay_{0};
  bool paused_ = false;
  bool failing_ = false;
  int32_t queue_limit_ = 1000;
  bool refuses_early_ = false;
  int32_t max_whole_prompt_len_ = 0;
  int num_cancelled_ = 0;
  int num_samples_cancelled_ = 0;
  uint64_t num_tokens_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace skein::testing
