#pragma once

#include <functional>
#include <string>

#include "apps/decide/local_client.h"
#include "base/result.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// A conversation with a model of this process. A model without a chat template continues each text
// for itself. One thread.
class Dialogue {
 public:
  // `model` outlives the dialogue. `fields`: members of each request, beside the prompt.
  // `system`: the system message; empty: none.
  Dialogue(const ModelEntry* model, Json fields, std::string system);

  bool chats() const { return model_->chat_template != nullptr; }

  using OnPiece = std::function<void(const std::string&)>;
  // The model's answer to `text`. `on_piece` gets the answer's text as it grows; once `stopped`
  // (which may be empty) is true, the answer ends with what there is. Text and answer become turns
  // of the conversation, unless the request fails or is stopped before the answer begins.
  Result<LocalAnswer> Ask(const std::string& text, const OnPiece& on_piece,
                          const LocalClient::Stopped& stopped = nullptr);
  // Forgets all turns but the system message.
  void Reset();

 private:
  Json RequestOf(const std::string& text) const;

  const ModelEntry* model_;
  const Json fields_;
  const std::string system_;
  Json messages_;
};

}  // namespace skein
