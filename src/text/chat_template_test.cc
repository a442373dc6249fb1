#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "testing/shared.h"

namespace skein {
namespace {

using Json = ChatTemplate::Json;

std::vector<Json> ReadLines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST(ChatTemplateTest, ReproducesQwen3) {
  SKEIN_REQUIRE_SHARED();
  const std::string dir = testing::SharedDir() + "/tokenizers/qwen3";
  auto loaded = ChatTemplate::Load(dir);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto cases = ReadLines(dir + "/chat_cases.jsonl");
  EXPECT_EQ(cases.size(), 23u);
  for (const Json& expected : cases) {
    Json variables = expected;
    variables.erase("text");
    variables.erase("ids");
    variables.erase("name");
    auto text = loaded.value()->Render(variables);
    ASSERT_TRUE(text.ok()) << expected["name"] << ": " << text.status().message();
    EXPECT_EQ(text.value(), expected["text"].get<std::string>()) << expected["name"];
  }
}

}  // namespace
}  // namespace skein
