#include "apps/decide/local_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/json/request_body.h"

namespace skein {
namespace {

constexpr std::chrono::milliseconds kStopPoll(50);

}  // namespace

LocalClient::~LocalClient() {
  for (const Call& call : calls_)
    if (!call.session->done()) model_->engine->Cancel(call.id);
}

Result<std::vector<TokenId>> LocalClient::ReadPrompt(const Json& body, FieldReader* reader) const {
  std::vector<TokenId> ids;
  if (body.contains("messages")) {
    SKEIN_ASSIGN_OR_RETURN(const Json chat, ReadChat(*model_, reader));
    SKEIN_ASSIGN_OR_RETURN(const std::string text, RenderChat(*model_, chat));
    // The rendered template contains the special tokens already.
    SKEIN_RETURN_IF_ERROR(EncodeChat(*model_, text, false, /*max_tokens=*/0, &ids));
    return ids;
  }
  const bool special = reader->Bool("add_special_tokens").value_or(true);
  const Json* prompt = reader->Find("prompt");
  if (prompt == nullptr)
    return Status(StatusCode::kInvalidArgument, "prompt or messages must be given", "prompt");
  if (prompt->is_string()) {
    SKEIN_RETURN_IF_ERROR(
        model_->tokenizer->Encode(prompt->get_ref<const std::string&>(), special, &ids));
    return ids;
  }
  ids = reader->TokenIds("prompt", model_->engine->Limits().vocab_size);
  if (!reader->status().ok()) return reader->status();
  return ids;
}

Status LocalClient::Submit(const Json& body) {
  if (!body.is_object())
    return Status(StatusCode::kInvalidArgument, "a request must be a JSON object");
  FieldReader reader(body);
  GenerationFields fields = ReadGenerationFields(&reader, *model_, /*seed=*/0);
  Constrain(&reader, *model_, &fields);
  SKEIN_RETURN_IF_ERROR(reader.status());
  SKEIN_ASSIGN_OR_RETURN(std::vector<TokenId> ids, ReadPrompt(body, &reader));
  SKEIN_RETURN_IF_ERROR(FitPrompt(*model_, fields, "prompt", &ids));

  const auto prompt_tokens = static_cast<int32_t>(ids.size());
  fields.request.generate().max_tokens = std::min(
      model_->max_model_len - prompt_tokens, fields.max_tokens.value_or(model_->Room(ids.size())));
  const int32_t num_samples = fields.request.generate().num_samples;
  Call call;
  call.session =
      std::make_unique<GenerationSession>(model_->tokenizer, fields.text, num_samples, ids);
  call.answer.prompt_tokens = prompt_tokens;
  call.answer.texts.resize(num_samples);
  call.answer.tokens.resize(num_samples);
  call.answer.finish.resize(num_samples, FinishReason::kError);
  fields.request.prompt = std::move(ids);
  const auto deliver = [mailbox = mailbox_, index = calls_.size()](RequestOutput output) {
    const std::lock_guard lock(mailbox->mutex);
    mailbox->outputs.emplace_back(index, std::move(output));
    mailbox->changed.notify_one();
  };
  SKEIN_RETURN_IF_ERROR(model_->engine->Submit(std::move(fields.request), deliver, &call.id));
  calls_.push_back(std::move(call));
  return Status::Ok();
}

bool LocalClient::Consume(size_t index, RequestOutput output, const OnText& on_text) {
  Call& call = calls_[index];
  auto delta = call.session->Consume(std::move(output));
  if (!delta.has_value()) return false;
  LocalAnswer& answer = call.answer;
  answer.texts[delta->sample] += delta->text;
  for (const OutputToken& token : delta->tokens)
    answer.tokens[delta->sample].push_back(token.token);
  if (on_text && delta->sample == 0 && !delta->text.empty()) on_text(index, delta->text);
  if (delta->stopped_by_string) model_->engine->CancelSample(call.id, delta->sample);
  if (!delta->finish.has_value()) return false;
  answer.finish[delta->sample] = *delta->finish;
  if (!delta->status.ok()) answer.status = delta->status;
  answer.cached_tokens = call.session->cached_tokens();
  return call.session->done();
}

std::deque<std::pair<size_t, RequestOutput>> LocalClient::TakeOutputs(bool may_be_stopped) {
  std::unique_lock lock(mailbox_->mutex);
  const auto any = [this] { return !mailbox_->outputs.empty(); };
  if (may_be_stopped) {
    mailbox_->changed.wait_for(lock, kStopPoll, any);
  } else {
    mailbox_->changed.wait(lock, any);
  }
  return std::exchange(mailbox_->outputs, {});
}

std::vector<LocalAnswer> LocalClient::Wait(const OnText& on_text, const Stopped& stopped) {
  size_t num_open = calls_.size();
  bool was_stopped = false;
  while (num_open > 0) {
    if (stopped && !was_stopped && stopped()) {
      was_stopped = true;
      for (const Call& call : calls_) model_->engine->Cancel(call.id);
    }
    for (auto& [index, output] : TakeOutputs(stopped != nullptr))
      num_open -= Consume(index, std::move(output), on_text) ? 1 : 0;
  }
  std::vector<LocalAnswer> answers;
  for (Call& call : calls_) answers.push_back(std::move(call.answer));
  calls_.clear();
  // Late outputs of stopped samples go to the old mailbox, which nobody reads.
  mailbox_ = std::make_shared<Mailbox>();
  return answers;
}

}  // namespace skein
