#include "server/reasoning/reasoning_counter.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "server/reasoning/harmony_parser.h"

namespace skein {

ReasoningCounter::ReasoningCounter(const AnswerParsing& parsing, const Tokenizer* tokenizer)
    : tokenizer_(tokenizer),
      style_(parsing.style),
      in_thoughts_(parsing.in_thoughts),
      has_tools_(parsing.tools && parsing.tools->style == ToolStyle::kHarmony),
      mode_(style_ == ReasoningStyle::kHarmony ? Mode::kHeader : Mode::kStart) {}

std::optional<ReasoningCounter> ReasoningCounter::Make(const AnswerParsing& parsing,
                                                       const Tokenizer* tokenizer) {
  if (parsing.style == ReasoningStyle::kNone || !parsing.separates) return std::nullopt;
  ReasoningCounter counter(parsing, tokenizer);
  const bool harmony = parsing.style == ReasoningStyle::kHarmony;
  const auto begin = tokenizer->TokenToId(harmony ? "<|message|>" : kThinkBegin);
  if (!begin) return std::nullopt;
  counter.begin_ = *begin;
  const std::string_view think_end[] = {kThinkEnd};
  for (const std::string_view mark : harmony ? HarmonyEnds() : std::span(think_end)) {
    const auto id = tokenizer->TokenToId(mark);
    if (!id) return std::nullopt;
    counter.ends_.push_back(*id);
  }
  return counter;
}

void ReasoningCounter::Count(TokenId id) {
  if (style_ == ReasoningStyle::kHarmony) {
    CountHarmony(id);
  } else {
    CountThinkTags(id);
  }
}

void ReasoningCounter::CountThinkTags(TokenId id) {
  const bool is_end = id == ends_.front();
  if (mode_ == Mode::kStart && !IsBlank(id)) {
    const bool begins = id == begin_;
    mode_ = begins || in_thoughts_ ? Mode::kReasoning : Mode::kContent;
    if (begins) {
      // White space before the mark is no reasoning.
      count_ = 0;
      return;
    }
  }
  if (is_end && mode_ == Mode::kReasoning) mode_ = Mode::kContent;
  if (mode_ == Mode::kReasoning || (mode_ == Mode::kStart && in_thoughts_)) ++count_;
}

void ReasoningCounter::CountHarmony(TokenId id) {
  if (mode_ == Mode::kHeader) {
    if (id != begin_) {
      header_.push_back(id);
      return;
    }
    const HarmonyHeader header =
        ReadHarmonyHeader(tokenizer_->Decode(header_, /*skip_special_tokens=*/false));
    header_.clear();
    const bool is_call = has_tools_ && !header.function.empty();
    mode_ = !is_call && header.channel == "analysis" ? Mode::kReasoning : Mode::kContent;
    return;
  }
  if (std::ranges::find(ends_, id) != ends_.end()) {
    header_.push_back(id);
    mode_ = Mode::kHeader;
  } else if (mode_ == Mode::kReasoning) {
    ++count_;
  }
}

bool ReasoningCounter::IsBlank(TokenId id) const {
  const std::string text = tokenizer_->Decode({&id, 1}, /*skip_special_tokens=*/false);
  return text.find_first_not_of(" \n\r\t") == text.npos;
}

}  // namespace skein
