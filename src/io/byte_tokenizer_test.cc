#include "io/byte_tokenizer.h"

#include <gtest/gtest.h>

#include <set>

#include "io/json_file.h"

namespace skein {
namespace {

TEST(ByteTokenizer, EveryByteIsOneToken) {
  const Result<JsonFile> json = JsonFile::Parse(ByteTokenizerJson(), "tokenizer.json");
  ASSERT_TRUE(json.ok()) << json.status().message();
  const JsonObject model = *json.value().root().Object("model").value();
  const JsonObject vocab = *model.Object("vocab").value();
  std::set<int64_t> ids;
  for (const auto& member : vocab.members()) ids.insert(int64_t{member.value});
  EXPECT_EQ(ids.size(), 256u);
  EXPECT_EQ(vocab.Int("A").value(), 'A');
  EXPECT_EQ(vocab.Int("\"").value(), '"');
  EXPECT_EQ(vocab.Int("\\").value(), '\\');
  EXPECT_EQ(vocab.Int("\u0120").value(), ' ');  // space is the 33rd byte that is not printable
  EXPECT_EQ(vocab.Int("\u010a").value(), '\n');
  EXPECT_EQ(vocab.Int("\u0143").value(), 0xad);  // the last byte that is not printable
  EXPECT_EQ(vocab.Int("\u00ff").value(), 0xff);
}

TEST(ByteTokenizer, ConfigIsValid) {
  const Result<JsonFile> json = JsonFile::Parse(ByteTokenizerConfigJson(), "tokenizer_config.json");
  ASSERT_TRUE(json.ok()) << json.status().message();
  const std::string chat = *json.value().root().String("chat_template").value();
  EXPECT_NE(chat.find("'\\n'"), std::string::npos);  // the escape is the template's, not the file's
}

}  // namespace
}  // namespace skein
