#include "server/reads/read_session.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "server/generation/answer_format.h"
#include "server/json/api_error.h"

namespace skein {
namespace {
constexpr size_t kLongAnswerValues = 16384;  // take about a millisecond to write
}  // namespace

ReadSession::ReadSession(Spec spec)
    : model_(spec.model),
      metrics_(spec.metrics),
      charge_(std::move(spec.charge)),
      route_class_(spec.route_class),
      responder_(std::move(spec.responder)),
      tokenize_us_(spec.tokenize_us),
      answer_(std::move(spec.answer)),
      write_(std::move(spec.write)),
      content_type_(std::move(spec.content_type)),
      requests_(std::move(spec.requests)),
      reads_(requests_.size()),
      prompt_logprobs_(requests_.size()),
      num_unfinished_(requests_.size()) {
  SKEIN_CHECK(!requests_.empty());
  SKEIN_CHECK(spec.charged.empty() || spec.charged.size() == requests_.size());
  const int32_t shared = requests_.front().group.parent_prefix_len;
  parts_.reserve(requests_.size());
  std::vector<const std::vector<TokenId>*> prompts;
  std::vector<int32_t> sizes;
  for (const Request& request : requests_) {
    SKEIN_CHECK(!request.generates() && request.group.parent_prefix_len == shared);
    const bool charged = spec.charged.empty() || spec.charged[parts_.size()];
    if (charged) prompts.push_back(&request.prompt);
    parts_.push_back(
        {request.slo_ttft_us, static_cast<int32_t>(request.prompt.size()), 0, false, charged});
  }
  if (spec.charged.empty()) {
    for (const Part& part : parts_) sizes.push_back(part.prompt_tokens);
    tree_ = PromptTree(shared, sizes);
  } else {
    tree_ = PromptTree(prompts);
  }
}

void ReadSession::Start() {
  if (const Status fits = CheckNumReads(*model_, "", requests_.size()); !fits.ok()) {
    return responder_->Send(ErrorResponse(fits));
  }
  auto self = shared_from_this();
  mailbox_ = std::make_shared<OutputMailbox>(
      [self] { self->responder_->Post([self] { self->OnOutputs(); }); });
  for (Request& request : requests_) request.adapter_id = model_->adapter_id;
  std::vector<RequestId> ids;
  const Status status = model_->engine->SubmitGroup(
      std::move(requests_),
      [mailbox = mailbox_](RequestOutput output) { mailbox->Put(0, std::move(output)); }, &ids);
  if (!status.ok()) {
    mailbox_->Close();
    return responder_->Send(ErrorResponse(status));
  }
  if (charge_) charge_(tree_.num_tokens());
  responder_->Post([self, ids = std::move(ids)]() mutable { self->OnStarted(std::move(ids)); });
  responder_->OnAbort([self](AbortReason reason) { self->OnAbort(reason); });
}

void ReadSession::OnStarted(std::vector<RequestId> ids) {
  SKEIN_CHECK(ids.size() == parts_.size());
  ids_ = std::move(ids);
  for (size_t i = 0; i < ids_.size(); ++i) index_of_.emplace(ids_[i], i);
  started_ = true;
  if (finished_) return CancelAll();
  OnOutputs();
}

void ReadSession::OnOutputs() {
  if (!started_ || finished_) return;
  bool more = false;
  for (OutputMailbox::Item& item : mailbox_->Take(kOutputsPerTurn, &more)) {
    OnOutput(std::move(item.output));
    if (finished_) return;
  }
  if (num_unfinished_ == 0) return Complete();
  if (more) responder_->Post([self = shared_from_this()] { self->OnOutputs(); });
}

void ReadSession::OnOutput(RequestOutput output) {
  const size_t index = index_of_.at(output.request);
  Part& part = parts_[index];
  part.cached_tokens = std::max(part.cached_tokens, output.cached_tokens);
  for (const PromptLogprob& token : output.prompt_logprobs) {
    prompt_logprobs_[index].push_back(token.chosen.logprob);
  }
  if (!output.finish) return;
  part.done = true;
  --num_unfinished_;
  metrics_->CountFinish(*model_, *output.finish);
  if (*output.finish == FinishReason::kError || *output.finish == FinishReason::kCancelled) {
    return Fail(output.status.ok() ? Status(StatusCode::kUnavailable, "the request was cancelled")
                                   : output.status);
  }
  SKEIN_CHECK(output.read.has_value());
  reads_[index] = *std::move(output.read);
  metrics_->Observe(*model_, {.prompt_tokens = part.prompt_tokens,
                              .generation_tokens = 0,
                              .tokenize_us = tokenize_us_ / static_cast<TimeUs>(parts_.size()),
                              .times = output.times,
                              .one_shot = true,
                              .route_class = route_class_,
                              .slo_ttft_us = part.slo_ttft_us,
                              .slo_tpot_us = std::nullopt});
}

void ReadSession::Complete() {
  Finish();
  size_t num_values = 0;
  for (const ReadValues& read : reads_) num_values += read.values.size();
  if (num_values < kLongAnswerValues) return SendAnswer();
  responder_->PostWork([self = shared_from_this()] { self->SendAnswer(); });
}

// Other code no longer touches the parts of the answer.
void ReadSession::SendAnswer() {
  HttpResponse response;
  ReadResults results{std::move(reads_), std::move(prompt_logprobs_), Usage()};
  if (write_) {
    response.body = write_(std::move(results));
    response.content_type = content_type_;
  } else if (Result<Json> body = answer_(results); body.ok()) {
    response.body = DumpJson(*body);
  } else {
    response = ErrorResponse(body.status());
  }
  responder_->Send(std::move(response));
}

void ReadSession::OnAbort(AbortReason reason) {
  if (finished_) return;
  if (reason == AbortReason::kShutdown) {
    return Fail(Status(StatusCode::kUnavailable, "the server is shutting down"));
  }
  CancelAll();
  Finish();
}

void ReadSession::Fail(const Status& status) {
  CancelAll();
  responder_->Send(ErrorResponse(status));
  Finish();
}

void ReadSession::CancelAll() {
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (parts_[i].done) continue;
    parts_[i].done = true;
    model_->engine->Cancel(ids_[i]);
    metrics_->CountFinish(*model_, FinishReason::kCancelled);
  }
}

void ReadSession::Finish() {
  finished_ = true;
  mailbox_->Close();
}

ReadUsage ReadSession::Usage() const {
  std::vector<int32_t> cached;
  for (const Part& part : parts_) {
    if (part.charged) cached.push_back(part.cached_tokens);
  }
  return {tree_.num_tokens(), tree_.NumCached(cached)};
}

Status CheckNumReads(const ModelEntry& model, const std::string& field, size_t num_reads) {
  const auto reads_max = static_cast<size_t>(model.engine->Limits().max_queued_requests);
  if (num_reads <= reads_max) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}one request may ask for at most {} reads (--max-queued-requests), "
                            "got {}: send several requests",
                            field.empty() ? "" : field + ": ", reads_max, num_reads),
                field);
}

void StartReads(const ServerContext& context, const ModelEntry* model,
                std::shared_ptr<Responder> responder, TimeUs tokenize_begin_us,
                std::vector<Request> requests,
                std::function<Result<Json>(const ReadResults& results)> answer,
                std::vector<bool> charged) {
  ReadSession::Spec spec;
  spec.model = model;
  spec.metrics = context.metrics;
  spec.charge = context.charge;
  spec.route_class = context.route_class;
  spec.responder = std::move(responder);
  spec.requests = std::move(requests);
  spec.tokenize_us = MonotonicClock().NowUs() - tokenize_begin_us;
  spec.answer = std::move(answer);
  spec.charged = std::move(charged);
  std::make_shared<ReadSession>(std::move(spec))->Start();
}

Json ReadUsageJson(const ReadUsage& usage) {
  return UsageJson({usage.input_tokens, 0, usage.cached_tokens});
}

}  // namespace skein
