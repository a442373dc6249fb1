#pragma once

// A server over the fakes whose model can be asked for decisions.

#include <string>
#include <utility>
#include <vector>

#include "testing/fake_server.h"
#include "testing/word_tokenizer.h"

namespace skein::testing {

// yes, no and pairs of capitals are single tokens, so that all kinds of labels exist.
inline std::vector<std::string> DecisionWords() {
  std::vector<std::string> words = {"yes", "no"};
  for (char a = 'A'; a <= 'Z'; ++a) {
    for (char b = 'A'; b <= 'Z'; ++b) words.push_back({a, b});
  }
  return words;
}

class DecisionServerTest : public ServerTest {
 protected:
  // `change` may alter the model before the server gets it.
  void StartModel(const std::function<void(ModelEntry*)>& change = {}) {
    Start({}, /*set_models=*/false);
    ModelEntry entry;
    entry.names = {"fake", "jev-latest"};
    entry.engine = &engine_;
    entry.tokenizer = &words_;
    entry.chat_template = &template_;
    entry.max_model_len = 4096;
    if (change) change(&entry);
    ModelRegistry registry;
    registry.Add(std::move(entry));
    server_->SetModels(std::move(registry));
  }

  std::string PromptText(size_t index) {
    return words_.Decode(engine_.last_group().at(index).prompt, false);
  }
  std::vector<TokenId> Labels(size_t index) {
    return std::get_if<LabelSpec>(&engine_.last_group().at(index).output)->tokens;
  }
  TokenId Word(std::string_view word) { return words_.TokenToId(word).value(); }

  WordTokenizer words_{DecisionWords()};
};

}  // namespace skein::testing
