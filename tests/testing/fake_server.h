#pragma once

// A server on a free port over the fakes.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/generation/grammar_fields.h"
#include "server/http/http_server.h"
#include "testing/http_client.h"
#include "testing/server_fakes.h"

namespace skein::testing {

// "role: content" lines and the tools' names; raises on a role "bad".
class FakeTemplate final : public ChatTemplate {
 public:
  explicit FakeTemplate(std::string source = {}) : source_(std::move(source)) {}
  std::string source() const override { return source_; }
  Result<std::string> Render(const Json& variables) const override {
    std::string text;
    for (const Json& message : variables.at("messages")) {
      if (message.at("role") == "bad") {
        return Status(StatusCode::kInvalidArgument, "roles must alternate");
      }
      text += message.at("role").get<std::string>() + ": " +
              message.at("content").get<std::string>() + "\n";
    }
    if (!variables.at("tools").is_null()) text += variables.at("tools").dump() + "\n";
    if (variables.contains("mood")) text += variables.at("mood").get<std::string>() + "\n";
    if (variables.at("add_generation_prompt").get<bool>()) text += "assistant: ";
    return text;
  }

 private:
  std::string source_;
};

// Waits for something that other threads bring about.
inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class ServerTest : public ::testing::Test {
 protected:
  void Start(ServerConfig config = {}, bool set_models = true) {
    config.port = 0;
    server_ = std::make_unique<HttpServer>(std::move(config));
    Result<uint16_t> port = server_->Start();
    ASSERT_TRUE(port.ok()) << port.status().message();
    port_ = *port;
    if (set_models) server_->SetModels(Registry());
  }

  ModelEntry Entry() {
    ModelEntry entry;
    entry.names = {"fake", "alias/of-fake"};
    entry.engine = &engine_;
    entry.tokenizer = model_tokenizer_;
    entry.chat_template = chat_template_;
    entry.tools = tools_;
    entry.reasoning = reasoning_;
    entry.defaults.eos_token_ids = {kFakeEos};
    entry.max_model_len = 4096;
    entry.max_kv_tokens = max_kv_tokens_;
    entry.traits = traits_;
    entry.created_s = 7;
    entry.grammars = MakeGrammarCompiler(entry);
    return entry;
  }
  // Whether the last request's grammar allows these bytes one after the other, and then the end.
  bool Accepts(std::string_view text) const {
    const auto grammar = engine_.last_request().generate().grammar;
    if (grammar == nullptr) return false;
    const auto state = grammar->NewState();
    std::vector<TokenId> output;
    std::vector<uint32_t> mask((kFakeVocabSize + 31) / 32);
    const auto allows = [&](TokenId id) {
      return !state->FindNext(output, mask) || (mask[static_cast<size_t>(id) / 32] >> id % 32 & 1);
    };
    for (const char c : text) {
      const auto id = static_cast<TokenId>(static_cast<unsigned char>(c));
      if (!allows(id)) return false;
      output.push_back(id);
    }
    return allows(kFakeEos);
  }
  ModelRegistry Registry() {
    ModelRegistry registry;
    registry.Add(Entry());
    return registry;
  }

  Answer Post(const std::string& path, const std::string& body, const Headers& headers = {}) {
    return Client(port_).Post(path, body, headers);
  }
  Answer Get(const std::string& path, const Headers& headers = {}) {
    return Client(port_).Get(path, headers);
  }
  Answer Complete(const std::string& fields) {
    return Post("/v1/completions", R"({"model": "fake", "prompt": "Hi")" +
                                       (fields.empty() ? "" : ", " + fields) + "}");
  }

  ModelTraits traits_;  // of the model, from Start on
  ToolFormat tools_ = {.style = ToolStyle::kHermes, .in_template = true};
  int64_t max_kv_tokens_ = 0;
  ReasoningFormat reasoning_;
  ByteTokenizer tokenizer_;
  const Tokenizer* model_tokenizer_ = &tokenizer_;  // of the model, from Start on
  FakeTemplate template_;
  const ChatTemplate* chat_template_ = &template_;  // of the model, from Start on
  FakeEngine engine_;
  std::unique_ptr<HttpServer> server_;  // ends before the engine
  uint16_t port_ = 0;
};

}  // namespace skein::testing
