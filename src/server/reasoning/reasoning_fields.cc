#include "server/reasoning/reasoning_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "server/prompt_text.h"

namespace skein {
namespace {

constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                         "high", "xhigh",   "max"};

}  // namespace

void ReadReasoningFields(FieldReader* reader, const ModelEntry& model, AnswerParsing* parsing) {
  parsing->style = model.reasoning.style;
  parsing->separates = model.reasoning.separates;
  parsing->includes = reader->Bool("include_reasoning").value_or(true);
  const auto format = reader->String("reasoning_format");
  if (!format) return;
  if (*format != "none" && *format != "auto" && *format != "deepseek") {
    return reader->RefuseValue("reasoning_format", R"("none", "auto" or "deepseek")",
                               Json(*format));
  }
  parsing->separates = *format != "none";
}

void ReadReasoningEffort(FieldReader* reader, const ModelEntry& model, Json* variables) {
  const auto effort = reader->String("reasoning_effort");
  if (!effort) return;
  if (std::ranges::find(kEfforts, *effort) == std::end(kEfforts)) {
    return reader->RefuseValue("reasoning_effort",
                               R"("none", "minimal", "low", "medium", "high", "xhigh" or "max")",
                               Json(*effort));
  }
  const bool thinks = *effort != "none";
  (*variables)["enable_thinking"] = thinks;
  if (model.reasoning.style == ReasoningStyle::kHarmony) {
    const bool is_low = !thinks || *effort == "minimal";
    const bool is_high = *effort == "xhigh" || *effort == "max";
    (*variables)["reasoning_effort"] = is_low ? "low" : is_high ? "high" : *effort;
  } else if (thinks) {
    (*variables)["reasoning_effort"] = *effort;
  }
}

Status PassReasoning(const ModelEntry& model, const std::string& param, Json* message) {
  const auto given = message->find("reasoning_content");
  if (given != message->end() && !given->is_string()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}.reasoning_content must be a string", param),
                  param + ".reasoning_content");
  }
  for (const char* name : {"reasoning_content", "reasoning", "thinking"}) {
    const auto found = message->find(name);
    if (found == message->end() || !found->is_string() || *found == "") continue;
    std::string text = found->get<std::string>();
    message->erase("reasoning");  // a template sees the two members below alone
    if (model.user_special_tokens == UserSpecialTokens::kPlain) text = PlainText(model, text);
    // The template of gpt-oss refuses a call with both a text and a thought before it.
    const auto calls = message->find("tool_calls");
    const bool has_calls = calls != message->end() && !calls->empty();
    if (model.reasoning.style == ReasoningStyle::kHarmony && has_calls && !text.empty()) {
      (*message)["content"] = "";
    }
    (*message)["thinking"] = text;
    (*message)["reasoning_content"] = std::move(text);
    return Status::Ok();
  }
  return Status::Ok();
}

}  // namespace skein
