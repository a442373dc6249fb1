#include "server/generation/chat_call.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "server/early_check.h"
#include "server/json/request_body.h"
#include "server/prompt_text.h"
#include "server/reasoning/reasoning_fields.h"

namespace skein {
namespace {

// Reads logprobs (bool) together with top_logprobs (count).
void ReadChatLogprobs(FieldReader* reader, const ModelEntry& model, GenerateSpec* spec) {
  const bool logprobs = reader->Bool("logprobs").value_or(false);
  const auto top = reader->Int("top_logprobs", 0, model.engine->Limits().max_logprobs);
  if (top && *top > 0 && !logprobs) {
    reader->Refuse("top_logprobs", "top_logprobs is allowed only with logprobs: true");
  }
  if (logprobs) spec->num_logprobs = static_cast<int32_t>(top.value_or(0));
}

// Keeps special tokens in the answer's text if `mark` is a special token.
void ShowMark(std::string_view mark, const Tokenizer& tokenizer, GenerationFields* fields) {
  const auto id = tokenizer.TokenToId(mark);
  if (id && tokenizer.IsSpecial(*id)) fields->text.skip_special_tokens = false;
}

// Has tool calls found in the answer. If the model must call a tool, a grammar constrains the
// answer to calls. If it may call one and a schema is given, the answer is either a call or a text
// of this schema.
void ReadTools(const ToolFields& tools, const ModelEntry& model, GenerationFields* fields) {
  if (!tools.active()) return;
  const ToolStyle style = model.tools.style;
  fields->parsing.tools = ToolParsing{style, tools.Names()};
  ShowMark(MarksOf(style).begin, *model.tokenizer, fields);
  GrammarField& constraint = fields->constraint;
  const bool forced = tools.choice == ToolFields::Choice::kRequired;
  const bool has_schema =
      !constraint.name.empty() && constraint.source.kind == GrammarKind::kJsonSchema;
  if (!forced && !has_schema) return;
  fields->parsing.constrains_calls = true;
  constraint.source =
      CallGrammar(tools, style, *model.tokenizer, forced ? nullptr : &constraint.source);
  if (forced) constraint.name = tools.choice_field;
}

// Whether the answer is constrained from its first token on.
bool IsConstrained(const GenerateSpec& spec) {
  return spec.grammar != nullptr || !spec.choices.empty() ||
         !spec.sampling.allowed_token_ids.empty();
}

// Sets how reasoning is found in the answer. The end of the prompt says whether the answer begins
// inside a thought. A constrained answer has no room for reasoning: all of it is content, which the
// prompt then begins, or a call.
void FindReasoning(const ModelEntry& model, std::string* prompt, GenerationFields* fields) {
  AnswerParsing& parsing = fields->parsing;
  const bool reasons = parsing.style != ReasoningStyle::kNone;
  if (reasons && IsConstrained(fields->request.generate())) {
    CloseThoughts(prompt);
    if (!parsing.constrains_calls) OpenFinalChannel(prompt);
  }
  const PromptThoughts thoughts = ThoughtsAtEnd(*prompt);
  const bool tags = parsing.style == ReasoningStyle::kThinkTags;
  if (IsConstrained(fields->request.generate()) || (tags && thoughts == PromptThoughts::kClosed)) {
    parsing.style = ReasoningStyle::kNone;
  }
  parsing.in_thoughts = tags && thoughts == PromptThoughts::kOpen;
  if (parsing.style == ReasoningStyle::kHarmony) {
    ShowMark("<|channel|>", *model.tokenizer, fields);
  } else if (parsing.style == ReasoningStyle::kThinkTags) {
    ShowMark(kThinkEnd, *model.tokenizer, fields);
  }
}

}  // namespace

Result<ChatCall> ReadChatCall(const ServerContext& context, const Json& body, ChatUse use,
                              const std::string* raw_prompt) {
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  ChatCall call;
  GenerationFields& fields = call.spec.fields;
  fields = ReadGenerationFields(&reader, *model, context.random_seed());
  GenerateSpec& generate = fields.request.generate();
  ReadChatLogprobs(&reader, *model, &generate);
  if (reader.Bool("echo").value_or(false)) {
    reader.Refuse("echo", "echo is allowed only in /v1/completions", StatusCode::kUnsupported);
  }
  call.tools = ReadToolFields(&reader);
  ReadReasoningFields(&reader, *model, &fields.parsing);
  // The template contains the model's special tokens already.
  const bool add_special_tokens = reader.Bool("add_special_tokens").value_or(false);
  if (reader.status().ok()) {
    ReadTools(call.tools, *model, &fields);
    Constrain(&reader, *model, &fields);
  }
  if (!reader.status().ok()) return reader.status();

  const MonotonicClock clock;
  const TimeUs begin_us = clock.NowUs();
  Json chat;
  if (raw_prompt == nullptr) {
    SKEIN_ASSIGN_OR_RETURN(chat, ReadChat(*model, &reader));
  }
  generate.max_tokens = fields.max_tokens.value_or(model->Room(0));
  if (use == ChatUse::kAnswer) {
    SKEIN_RETURN_IF_ERROR(CheckGenerationWait(context, *model, fields.request));
  }
  GenerationPrompt prompt;
  const size_t tokens_max = MaxPromptTokens(*model, fields);
  Status encoded;
  if (raw_prompt != nullptr) {
    fields.parsing.style = ReasoningStyle::kNone;
    encoded =
        EncodeRawPrompt(*model, *raw_prompt, /*add_special_tokens=*/true, tokens_max, &prompt.ids);
  } else {
    SKEIN_ASSIGN_OR_RETURN(std::string text, RenderChat(*model, chat));
    FindReasoning(*model, &text, &fields);
    encoded = EncodeChat(*model, text, add_special_tokens, tokens_max, &prompt.ids);
  }
  if (!encoded.ok()) return Status(encoded.code(), "messages: " + encoded.message(), "messages");
  SKEIN_RETURN_IF_ERROR(FitPrompt(*model, fields, "messages", &prompt.ids));
  call.spec.tokenize_us = clock.NowUs() - begin_us;

  generate.max_tokens = fields.max_tokens.value_or(model->Room(prompt.ids.size()));
  call.spec.prompts.push_back(std::move(prompt));
  call.spec.model = model;
  call.spec.metrics = context.metrics;
  call.spec.charge = context.charge;
  return call;
}

void StartChatCall(ChatCall call, std::unique_ptr<AnswerFormat> format,
                   std::shared_ptr<Responder> responder) {
  call.spec.format = std::move(format);
  call.spec.responder = std::move(responder);
  std::make_shared<GenerationCall>(std::move(call.spec))->Start();
}

std::string ToolCallId(uint64_t seed, int32_t choice, int32_t call, ToolStyle style) {
  // SplitMix64's finalizer makes the ids of one answer look unlike each other.
  uint64_t x = seed + 0x9E3779B97F4A7C15u *
                          (static_cast<uint64_t>(choice) * 4096u + static_cast<uint64_t>(call) + 1);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  if (style == ToolStyle::kMistral) return fmt::format("{:09x}", x & 0xFFFFFFFFFu);
  return fmt::format("call_{:016x}", x);
}

}  // namespace skein
