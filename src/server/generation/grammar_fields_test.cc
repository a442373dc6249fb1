#include "server/generation/grammar_fields.h"

#include <gtest/gtest.h>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

class GrammarFieldsTest : public ServerTest {};

TEST_F(GrammarFieldsTest, EverySpellingConstrains) {
  Start();
  const char* const kNumber = R"({"type": "integer"})";
  const struct {
    std::string fields;
    const char* good;
    const char* bad;
  } kCases[] = {
      {R"("response_format": {"type": "json_object"})", R"({"a": [1, null]})", "[1]"},
      {std::string(R"("response_format": {"type": "json_object", "schema": )") + kNumber + "}",
       "12", "\"a\""},
      {std::string(R"("response_format": {"type": "json_schema", "json_schema": {"name": "n",
        "strict": true, "schema": )") +
           kNumber + "}}",
       "12", "\"a\""},
      {R"("response_format": {"type": "structural_tag", "format": {"type": "const_string",
        "value": "yes"}})",
       "yes", "no"},
      {std::string(R"("structured_outputs": {"json": )") + kNumber + "}", "12", "\"a\""},
      {R"("structured_outputs": {"json": "{\"type\": \"null\"}", "regex": null})", "null", "1"},
      {R"("structured_outputs": {"json_object": true})", "{}", "1"},
      {R"("structured_outputs": {"regex": "a+b"})", "aab", "b"},
      {R"("structured_outputs": {"grammar": "root ::= \"a\" | \"bc\""})", "bc", "b"},
      {R"("guided_grammar": "start: \"a\" \"b\"")", "ab", "a"},
      {std::string(R"("guided_json": )") + kNumber, "12", "\"a\""},
      {R"("guided_regex": "[x-z]")", "y", "a"},
      {R"("guided_json_object": true)", "{}", "1"},
  };
  for (const auto& [fields, good, bad] : kCases) {
    EXPECT_EQ(Complete(fields).status, 200) << fields;
    EXPECT_TRUE(Accepts(good)) << fields;
    EXPECT_FALSE(Accepts(bad)) << fields;
    const Answer chat =
        Post("/v1/chat/completions",
             R"({"messages": [{"role": "user", "content": "Hi"}], )" + fields + "}");
    EXPECT_EQ(chat.status, 200) << fields;
    EXPECT_TRUE(Accepts(good)) << fields;
  }
  EXPECT_EQ(Complete(R"("response_format": {"type": "text"}, "guided_json_object": false)").status,
            200);
  EXPECT_EQ(engine_.last_request().generate().grammar, nullptr);
}

TEST_F(GrammarFieldsTest, StopsAndEndsStay) {
  Start();
  EXPECT_EQ(Complete(R"("guided_regex": "a+", "stop": "aaa", "stop_token_ids": [65])").status, 200);
  const GenerateSpec spec = engine_.last_request().generate();
  EXPECT_EQ(spec.stop_token_ids, (std::vector<TokenId>{65, kFakeEos}));
}

TEST_F(GrammarFieldsTest, MistakesNameTheField) {
  Start();
  const std::pair<const char*, const char*> kCases[] = {
      {R"("response_format": "json")", "response_format"},
      {R"("response_format": {"type": "yaml"})", "response_format.type"},
      {R"("response_format": {"type": "json_schema"})", "response_format.json_schema"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"name": "n"}})",
       "response_format.json_schema.schema"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}})",
       "response_format.json_schema.schema"},
      {R"("structured_outputs": {"json": "{"})", "structured_outputs.json"},
      {R"("structured_outputs": {"json": 5})", "structured_outputs.json"},
      {R"("structured_outputs": {"regex": "("})", "structured_outputs.regex"},
      {R"("structured_outputs": {"regex": ""})", "structured_outputs.regex"},
      {R"("structured_outputs": {"grammar": "nothing"})", "structured_outputs.grammar"},
      {R"("structured_outputs": {"json_object": 1})", "structured_outputs.json_object"},
      {R"("structured_outputs": {"regex": "a", "json": {}})", "structured_outputs.regex"},
      {R"("guided_regex": "a", "response_format": {"type": "json_object"})", "guided_regex"},
      {R"("guided_regex": "a", "min_tokens": 1)", "min_tokens"},
      {R"("guided_regex": "a", "allowed_token_ids": [65])", "allowed_token_ids"},
      {R"("guided_regex": "a", "ignore_eos": true)", "ignore_eos"},
  };
  for (const auto& [fields, param] : kCases) {
    const Answer answer = Complete(fields);
    EXPECT_EQ(answer.status, 400) << fields << " " << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << fields << " " << answer.body;
  }
}

}  // namespace
}  // namespace skein::testing
