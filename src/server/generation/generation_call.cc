#include "server/generation/generation_call.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/json/api_error.h"

namespace skein {
namespace {

constexpr size_t kLongAnswerEntries =
    2048;  // tokens of an answer that takes some milliseconds to write: a worker writes it

}  // namespace

GenerationCall::GenerationCall(Spec spec)
    : model_(spec.model),
      metrics_(spec.metrics),
      charge_(std::move(spec.charge)),
      responder_(std::move(spec.responder)),
      fields_(std::move(spec.fields)),
      format_(std::move(spec.format)),
      tokenize_us_(spec.tokenize_us) {
  const int32_t n = fields_.request.generate().num_samples;
  parts_.reserve(spec.prompts.size());
  choices_.resize(spec.prompts.size() * static_cast<size_t>(n));
  for (size_t p = 0; p < spec.prompts.size(); ++p) {
    GenerationSession session(model_->tokenizer, fields_.text, n, spec.prompts[p].ids);
    parts_.push_back({std::move(spec.prompts[p]), std::move(session), {}});
    parts_.back().last_token_us.resize(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) {
      ChoiceState& choice = choices_[p * static_cast<size_t>(n) + static_cast<size_t>(i)];
      choice.index = static_cast<int32_t>(p) * n + i;
      choice.text = choice.echo = parts_.back().prompt.echo;
      if (!fields_.parsing.IsPlain()) choice.parser.emplace(fields_.parsing);
      choice.reasoning = ReasoningCounter::Make(fields_.parsing, model_->tokenizer);
      choice.prompt_ids = &parts_.back().prompt.ids;
      choice.prompt_logprobs = &parts_.back().prompt_logprobs;
    }
  }
}

void GenerationCall::Start() {
  auto self = shared_from_this();
  mailbox_ = std::make_shared<OutputMailbox>(
      [self] { self->responder_->Post([self] { self->OnOutputs(); }); });
  std::vector<RequestId> ids;
  for (size_t p = 0; p < parts_.size(); ++p) {
    Request request = fields_.request;
    request.prompt = parts_[p].prompt.ids;
    request.adapter_id = model_->adapter_id;
    RequestId id = 0;
    const Status status = model_->engine->Submit(
        std::move(request),
        [mailbox = mailbox_, p](RequestOutput output) { mailbox->Put(p, std::move(output)); }, &id);
    if (!status.ok()) {
      mailbox_->Close();
      for (RequestId submitted : ids) model_->engine->Cancel(submitted);
      responder_->Send(format_->Failure(status));
      return;
    }
    ids.push_back(id);
  }
  if (charge_) charge_(UsageNow().prompt_tokens);
  responder_->Post([self, ids = std::move(ids)]() mutable { self->OnStarted(std::move(ids)); });
  responder_->OnAbort([self](AbortReason reason) { self->OnAbort(reason); });
}

void GenerationCall::OnStarted(std::vector<RequestId> ids) {
  for (size_t p = 0; p < parts_.size(); ++p) parts_[p].id = ids[p];
  started_ = true;
  OnOutputs();
}

void GenerationCall::OnOutputs() {
  if (!started_ || finished_) return;
  std::string events;
  bool more = false;
  for (OutputMailbox::Item& item : mailbox_->Take(kOutputsPerTurn, &more)) {
    OnOutput(std::move(item), &events);
    if (finished_) return;
  }
  if (std::all_of(parts_.begin(), parts_.end(),
                  [](const Part& part) { return part.session.done(); })) {
    return Complete(&events);
  }
  WriteEvents(std::move(events));
  if (more && !finished_) {
    responder_->Post([self = shared_from_this()] { self->OnOutputs(); });
  }
}

void GenerationCall::OnOutput(OutputMailbox::Item item, std::string* events) {
  Part& part = parts_[item.prompt];
  ObserveTimes(item, &part);
  std::ranges::move(item.output.prompt_logprobs, std::back_inserter(part.prompt_logprobs));
  std::optional<ChoiceDelta> delta = part.session.Consume(std::move(item.output));
  if (!delta) return;
  if (delta->stopped_by_string) {
    model_->engine->CancelSample(part.id, delta->sample);
    // The choice ends here, before the engine has ended it. The time between the first token's and
    // this token's receipt gives the time of its end.
    part.times.finished_us =
        std::max(part.times.finished_us,
                 part.times.first_token_us + item.received_us - part.first_received_us);
  }
  if (delta->finish) metrics_->CountFinish(*model_, *delta->finish);
  if (delta->finish == FinishReason::kError || delta->finish == FinishReason::kCancelled) {
    const auto n = static_cast<size_t>(fields_.request.generate().num_samples);
    choices_[item.prompt * n + static_cast<size_t>(delta->sample)].finish = delta->finish;
    WriteEvents(std::move(*events));
    return Fail(delta->status.ok() ? Status(StatusCode::kUnavailable, "the request was cancelled")
                                   : delta->status);
  }
  OnDelta(item.prompt, *std::move(delta), events);
  if (!part.session.done() || part.observed) return;
  part.observed = true;
  metrics_->Observe(*model_, {.prompt_tokens = static_cast<int32_t>(part.prompt.ids.size()),
                              .generation_tokens = part.session.completion_tokens(),
                              .longest_choice_tokens = part.session.longest_choice_tokens(),
                              .tokenize_us = tokenize_us_ / static_cast<TimeUs>(parts_.size()),
                              .times = part.times,
                              .one_shot = fields_.request.generate().max_tokens <= 1,
                              .route_class = RouteClass::kGenerate,
                              .slo_ttft_us = fields_.request.slo_ttft_us,
                              .slo_tpot_us = fields_.request.slo_tpot_us});
}

void GenerationCall::ObserveTimes(const OutputMailbox::Item& item, Part* part) {
  const RequestTimes& times = item.output.times;
  RequestTimes& known = part->times;
  if (known.arrival_us == 0) known.arrival_us = times.arrival_us;
  if (known.first_scheduled_us == 0) known.first_scheduled_us = times.first_scheduled_us;
  if (known.first_token_us == 0) known.first_token_us = times.first_token_us;
  known.finished_us = std::max(known.finished_us, times.finished_us);
  if (item.output.tokens.empty()) return;
  if (part->first_received_us == 0) part->first_received_us = item.received_us;
  TimeUs& last_us = part->last_token_us[static_cast<size_t>(item.output.sample)];
  if (last_us != 0) metrics_->ObserveInterToken(*model_, item.received_us - last_us);
  last_us = item.received_us;
}

void GenerationCall::OnDelta(size_t prompt, ChoiceDelta delta, std::string* events) {
  const auto n = static_cast<size_t>(fields_.request.generate().num_samples);
  ChoiceState& choice = choices_[prompt * n + static_cast<size_t>(delta.sample)];
  choice.text += delta.text;
  if (choice.reasoning) {
    for (const OutputToken& token : delta.tokens) choice.reasoning->Count(token.token);
  }
  choice.tokens.insert(choice.tokens.end(), std::make_move_iterator(delta.tokens.begin()),
                       std::make_move_iterator(delta.tokens.end()));
  choice.finish = delta.finish;
  choice.stop_reason = std::move(delta.stop_reason);
  if (!fields_.stream) return;
  format_->AppendEvents(
      &choice, [this] { return UsageNow(); }, events);
}

// The stream begins with its first content, or with its end if it has none. A failure before that
// still gets its own HTTP status.
void GenerationCall::BeginStream() {
  if (streaming_) return;
  streaming_ = true;
  responder_->BeginStream(format_->StreamHead());
}

void GenerationCall::WriteEvents(std::string events) {
  if (events.empty()) return;
  BeginStream();
  responder_->Write(std::move(events));
}

void GenerationCall::Complete(std::string* events) {
  if (fields_.stream) {
    format_->AppendEnd(UsageNow(), events);
    WriteEvents(std::move(*events));
    BeginStream();
    responder_->End();
    return Finish();
  }
  Finish();
  if (NumEntries() < kLongAnswerEntries) return SendAnswer();
  responder_->PostWork([self = shared_from_this()] { self->SendAnswer(); });
}

// Other code no longer touches the parts of the answer.
void GenerationCall::SendAnswer() {
  HttpResponse response;
  response.body = DumpJson(format_->Answer(&choices_, UsageNow()));
  responder_->Send(std::move(response));
}

size_t GenerationCall::NumEntries() const {
  const auto of = [](const auto& told) { return 1 + told.top_logprobs.size(); };
  size_t count = 0;
  for (const Part& part : parts_) {
    for (const PromptLogprob& position : part.prompt_logprobs) count += of(position);
  }
  for (const ChoiceState& choice : choices_) {
    for (const OutputToken& token : choice.tokens) count += of(token) + token.named_logprobs.size();
  }
  return count;
}

void GenerationCall::OnAbort(AbortReason reason) {
  if (finished_) return;
  if (reason == AbortReason::kShutdown) {
    return Fail(Status(StatusCode::kUnavailable, "the server is shutting down"));
  }
  CancelAll();
  Finish();
}

void GenerationCall::Fail(const Status& status) {
  CancelAll();
  if (streaming_) {
    responder_->Write(format_->FailureEvents(status));
    responder_->End();
  } else {
    responder_->Send(format_->Failure(status));
  }
  Finish();
}

void GenerationCall::CancelAll() {
  for (const Part& part : parts_) {
    if (part.session.done()) continue;
    model_->engine->Cancel(part.id);
  }
  for (const ChoiceState& choice : choices_) {
    if (!choice.finish) metrics_->CountFinish(*model_, FinishReason::kCancelled);
  }
}

void GenerationCall::Finish() {
  finished_ = true;
  mailbox_->Close();
  if (charge_) charge_(UsageNow().completion_tokens);
}

Usage GenerationCall::UsageNow() const {
  Usage usage;
  const RequestTimes& times = parts_.front().times;
  usage.ttft_us = std::max<TimeUs>(0, times.first_token_us - times.arrival_us);
  usage.total_us = std::max(usage.ttft_us, times.finished_us - times.arrival_us);
  for (const Part& part : parts_) {
    usage.prompt_tokens += static_cast<int64_t>(part.prompt.ids.size());
    usage.completion_tokens += part.session.completion_tokens();
    usage.cached_tokens += part.session.cached_tokens();
  }
  for (const ChoiceState& choice : choices_) {
    if (!choice.reasoning) continue;
    usage.reasoning_tokens = usage.reasoning_tokens.value_or(0) + choice.reasoning->count();
  }
  return usage;
}

Handler Starting(Status (*start)(const ServerContext&, const HttpRequest&,
                                 std::shared_ptr<Responder>),
                 HttpResponse (*failure)(const Status&)) {
  return [start, failure](const ServerContext& context, std::shared_ptr<const HttpRequest> request,
                          std::shared_ptr<Responder> responder) {
    const Status status = start(context, *request, responder);
    if (status.ok()) return;
    responder->Send(failure != nullptr ? failure(status) : ErrorResponse(status));
  };
}

}  // namespace skein
