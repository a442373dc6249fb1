#include "server/reasoning/reasoning_counter.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "testing/server_fakes.h"

namespace skein::testing {
namespace {

int32_t Counted(const MarkTokenizer& tokenizer, const AnswerParsing& parsing,
                std::string_view text) {
  auto counter = ReasoningCounter::Make(parsing, &tokenizer);
  if (!counter) return -1;
  for (const char c : tokenizer.Coded(std::string(text))) counter->Count(c);
  return counter->count();
}

TEST(ReasoningCounter, ThinkTags) {
  const MarkTokenizer tokenizer({"<think>", "</think>"});
  AnswerParsing parsing = {.style = ReasoningStyle::kThinkTags};
  EXPECT_EQ(Counted(tokenizer, parsing, "<think>four</think>five"), 4);
  EXPECT_EQ(Counted(tokenizer, parsing, "\n<think>four"), 4);
  EXPECT_EQ(Counted(tokenizer, parsing, "four<think>five</think>"), 0);
  EXPECT_EQ(Counted(tokenizer, parsing, "<think></think>five<think>six"), 0);
  parsing.in_thoughts = true;
  EXPECT_EQ(Counted(tokenizer, parsing, "\nfour</think>five"), 5);
  EXPECT_EQ(Counted(tokenizer, parsing, "\n<think>four</think>five"), 4);
  EXPECT_EQ(Counted(tokenizer, parsing, "</think>five"), 0);
}

TEST(ReasoningCounter, Harmony) {
  const MarkTokenizer tokenizer(
      {"<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|return|>", "<|call|>"});
  AnswerParsing parsing = {.style = ReasoningStyle::kHarmony};
  const std::string analysis = "<|channel|>analysis<|message|>four<|end|>";
  EXPECT_EQ(Counted(tokenizer, parsing,
                    analysis + "<|start|>assistant" + analysis +
                        "<|start|>assistant<|channel|>final<|message|>Hello<|return|>"),
            8);
  EXPECT_EQ(Counted(tokenizer, parsing, "<|channel|>final<|message|>Hello"), 0);
  const char* call = " to=functions.add<|channel|>analysis<|message|>{}<|call|>";
  EXPECT_EQ(Counted(tokenizer, parsing, call), 2);
  parsing.tools = ToolParsing{ToolStyle::kHarmony, {"add"}};
  EXPECT_EQ(Counted(tokenizer, parsing, call), 0);
}

TEST(ReasoningCounter, OnlyWhatCanBeCounted) {
  const MarkTokenizer without_end({"<think>"});
  EXPECT_EQ(Counted(without_end, {.style = ReasoningStyle::kThinkTags}, "<think>four"), -1);
  const MarkTokenizer tokenizer({"<think>", "</think>"});
  EXPECT_EQ(Counted(tokenizer, {}, "<think>four"), -1);
  AnswerParsing kept = {.style = ReasoningStyle::kThinkTags, .separates = false};
  EXPECT_EQ(Counted(tokenizer, kept, "<think>four"), -1);
}

}  // namespace
}  // namespace skein::testing
