#pragma once

#include <functional>
#include <string>

#include "apps/decide/local_client.h"
#include "base/result.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// A conversation with a model of this process. Without a chat template, each text is continued on
// its own. One thread.
class Dialogue {
 public:
  // `model` outlives the dialogue. `fields` are the members of each request, besides the prompt.
  // `system` is the system message; empty: none.
  Dialogue(const ModelEntry* model, Json fields, std::string system);

  bool chats() const { return model_->chat_template != nullptr; }

  using OnPiece = std::function<void(const std::string&)>;
  // Returns the model's answer to `text`. `on_piece` gets the text of the answer as it grows. Once
  // `stopped` (which may be empty) returns true, the answer ends with the text so far. `text` and
  // the answer become turns of the conversation, unless the request fails or is stopped before the
  // answer begins.
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
