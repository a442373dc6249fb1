#pragma once

// A server over the fakes whose model can be asked for decisions.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
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

  // Asks for each row of `golden`, while the engine answers its questions with the reference's
  // logits: the JSON is then that of the reference's server. `check(request, question, id)`
  // compares what the engine is asked, `take_own(&json)` checks and erases what each server has of
  // its own.
  void AnswersAreThoseOf(
      const Json& golden,
      const std::function<void(const Request&, const Json&, const std::string&)>& check,
      const std::function<void(Json*)>& take_own) {
    std::map<std::vector<TokenId>, std::vector<float>> values;
    engine_.set_reader([&values](const Request& request) {
      ReadValues read;
      const auto found = values.find(request.prompt);
      const size_t count = std::get<DecideSpec>(request.output).markers.size();
      read.values = found == values.end() ? std::vector<float>(count) : found->second;
      return read;
    });
    for (const Json& row : golden["rows"]) {
      for (const auto& [id, question] : row["questions"].items()) {
        values[question["ids"].get<std::vector<TokenId>>()] =
            question["logits"].get<std::vector<float>>();
      }
      const Answer answer = Post("/v1/systemone", row["body"].dump());
      ASSERT_EQ(answer.status, 200) << answer.body;
      const std::vector<Request> requests = engine_.last_group();
      ASSERT_EQ(requests.size(), row["questions"].size());
      size_t index = 0;
      for (const auto& [id, question] : row["questions"].items()) {
        check(requests[index++], question, id);
      }
      Json json = answer.json();
      take_own(&json);
      EXPECT_EQ(json, row["answer"]) << json.dump() << "\n" << row["answer"].dump();
    }
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
