#include "apps/run/dialogue.h"

#include <utility>

namespace skein {
namespace {

Json Message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

}  // namespace

Dialogue::Dialogue(const ModelEntry* model, Json fields, std::string system)
    : model_(model), fields_(std::move(fields)), system_(std::move(system)) {
  Reset();
}

void Dialogue::Reset() {
  messages_ = Json::array();
  if (!system_.empty()) messages_.push_back(Message("system", system_));
}

Json Dialogue::RequestOf(const std::string& text) const {
  Json body = fields_;
  if (!chats()) {
    body["prompt"] = text;
    return body;
  }
  body["messages"] = messages_;
  body["messages"].push_back(Message("user", text));
  return body;
}

Result<LocalAnswer> Dialogue::Ask(const std::string& text, const OnPiece& on_piece,
                                  const LocalClient::Stopped& stopped) {
  LocalClient client(model_);
  SKEIN_RETURN_IF_ERROR(client.Submit(RequestOf(text)));
  LocalAnswer answer = std::move(
      client.Wait([&](size_t, const std::string& piece) { on_piece(piece); }, stopped).front());
  SKEIN_RETURN_IF_ERROR(answer.status);
  const bool was_stopped = answer.finish.front() == FinishReason::kCancelled;
  if (!was_stopped || !answer.texts.front().empty()) {
    messages_.push_back(Message("user", text));
    messages_.push_back(Message("assistant", answer.texts.front()));
  }
  return answer;
}

}  // namespace skein
