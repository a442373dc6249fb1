#include "server/decisions/heads/sysone_sequence.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "server/decisions/heads/python_text.h"

namespace skein {
namespace {

constexpr std::string_view kOptionOpen = "<option>", kOptionClose = "</option>",
                           kAnswerCue = "The answer is:";
constexpr std::string_view kGap = "\n\n", kNewline = "\n";

// The text with its words in braces replaced. LoadSysoneConfig has checked these words.
std::string Filled(std::string_view text,
                   std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('{', at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    const size_t close = text.find('}', open);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    for (const auto& [word, value] : words) {
      if (word == name) out += value;
    }
    at = close + 1;
  }
  return out;
}

void AppendTokens(std::span<const TokenId> tokens, std::vector<TokenId>* ids) {
  ids->insert(ids->end(), tokens.begin(), tokens.end());
}

}  // namespace

std::vector<std::string> SysoneOptions(const SysoneTraits& traits,
                                       const DecisionQuestion& question) {
  std::vector<std::string> texts;
  if (question.kind == DecisionKind::kPredicate) {
    texts.push_back(LabelledText(traits.noul_labels[0], question.options[1].description));
    texts.push_back(LabelledText(traits.noul_labels[1], question.options[0].description));
    return texts;
  }
  for (size_t i = 0; i < question.options.size(); ++i) {
    const DecisionOption& option = question.options[i];
    if (question.kind == DecisionKind::kScore) {
      const std::string level =
          option.name.empty() ? option.description : LabelledText(option.name, option.description);
      texts.push_back(
          Filled(traits.score_option, {{"index", std::to_string(i)}, {"level", level}}));
    } else if (option.description.empty()) {
      texts.push_back(option.name);
    } else {
      texts.push_back(Filled(traits.choice_option,
                             {{"label", option.name}, {"description", option.description}}));
    }
  }
  return texts;
}

Result<SysoneEncoder> SysoneEncoder::Make(const ModelEntry& model) {
  SysoneEncoder encoder(model);
  SKEIN_RETURN_IF_ERROR(encoder.MakeParts());
  return encoder;
}

Status SysoneEncoder::MakeParts() {
  const DecisionModelTraits& traits = *model_->traits.decision_model;
  if (traits_->encoder) {
    for (const auto& [text, part] :
         {std::pair(&traits.cls_token, &begin_), std::pair(&traits.sep_token, &separator_),
          std::pair(&traits.mask_token, &open_)}) {
      SKEIN_ASSIGN_OR_RETURN(const TokenId id, FindSpecialToken(*model_, *text));
      part->push_back(id);
    }
    return Status::Ok();
  }
  if (!traits_->bos_token.empty()) {
    SKEIN_ASSIGN_OR_RETURN(const TokenId id, FindSpecialToken(*model_, traits_->bos_token));
    begin_.push_back(id);
  }
  for (const auto& [text, part] :
       {std::pair(kGap, &gap_), std::pair(kNewline, &newline_), std::pair(kOptionOpen, &open_),
        std::pair(kOptionClose, &close_), std::pair(kAnswerCue, &cue_)}) {
    SKEIN_RETURN_IF_ERROR(model_->tokenizer->Encode(text, false, part));
  }
  return Status::Ok();
}

Result<std::vector<TokenId>> SysoneEncoder::State(std::string_view text) const {
  std::vector<TokenId> ids;
  SKEIN_RETURN_IF_ERROR(EncodeForHead(*model_, text, &ids));
  return ids;
}

Result<HeadSequence> SysoneEncoder::Sequence(const DecisionQuestion& question,
                                             std::span<const TokenId> state) const {
  const std::string_view instructions = Stripped(question.instructions);
  if (instructions.empty()) {
    return Status(StatusCode::kInvalidArgument, "has instructions of white space alone");
  }
  if (question.options.size() < kChoicesMin) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("has {} option; the model takes at least {}", question.options.size(),
                              kChoicesMin));
  }
  std::vector<TokenId> head;
  SKEIN_RETURN_IF_ERROR(
      EncodeForHead(*model_,
                    traits_->task_lines[TypeIndex(question.kind)] + "\n" +
                        Filled(traits_->question, {{"instructions", instructions}}),
                    &head));
  std::vector<std::vector<TokenId>> options;
  for (const std::string& text : SysoneOptions(*traits_, question)) {
    std::vector<TokenId>& ids = options.emplace_back();
    SKEIN_RETURN_IF_ERROR(EncodeForHead(*model_, text, &ids));
    ids.resize(std::min(ids.size(), static_cast<size_t>(traits_->max_option_tokens)));
  }
  std::span<const TokenId> kept =
      state.first(std::min(state.size(), static_cast<size_t>(traits_->max_state_tokens)));
  HeadSequence sequence = Arrange(head, kept, options);
  const int64_t max_len = model_->traits.decision_model->max_len;
  const int64_t overflow = std::ssize(sequence.ids) - max_len;
  if (overflow > std::ssize(kept)) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("has {} options and takes {} tokens without a state, of which the model's "
                    "max_len allows {}: shorten its options or use fewer",
                    options.size(), std::ssize(sequence.ids) - std::ssize(kept), max_len));
  }
  if (overflow > 0) {
    kept = kept.first(kept.size() - static_cast<size_t>(overflow));
    sequence = Arrange(head, kept, options);
  }
  sequence.state_tokens = static_cast<int32_t>(kept.size());
  sequence.distinct_options = CountDistinct(options);
  return sequence;
}

// Each option is read at its marker, or at the last token of its own text.
void SysoneEncoder::AddOptions(const std::vector<std::vector<TokenId>>& options,
                               HeadSequence* sequence) const {
  std::vector<TokenId>& ids = sequence->ids;
  const bool parallel = model_->traits.decision_model->parallel;
  for (const std::vector<TokenId>& option : options) {
    const auto begin = static_cast<int32_t>(ids.size());
    if (parallel) sequence->option_bounds.push_back(begin);
    AppendTokens(open_, &ids);
    if (traits_->encoder) sequence->markers.push_back(begin);
    AppendTokens(option, &ids);
    if (!traits_->encoder) sequence->markers.push_back(static_cast<int32_t>(ids.size()) - 1);
    AppendTokens(close_, &ids);
  }
  if (parallel) sequence->option_bounds.push_back(static_cast<int32_t>(ids.size()));
}

HeadSequence SysoneEncoder::Arrange(std::span<const TokenId> head, std::span<const TokenId> state,
                                    const std::vector<std::vector<TokenId>>& options) const {
  HeadSequence sequence;
  std::vector<TokenId>& ids = sequence.ids;
  AppendTokens(begin_, &ids);
  AppendTokens(head, &ids);
  if (traits_->encoder) {
    AppendTokens(separator_, &ids);
    AddOptions(options, &sequence);
    AppendTokens(separator_, &ids);
    AppendTokens(state, &ids);
    AppendTokens(separator_, &ids);
    return sequence;
  }
  AppendTokens(gap_, &ids);
  AppendTokens(state, &ids);
  AppendTokens(newline_, &ids);
  AddOptions(options, &sequence);
  AppendTokens(cue_, &ids);
  sequence.summary = static_cast<int32_t>(ids.size()) - 1;
  return sequence;
}

}  // namespace skein
