#include "server/decisions/heads/laya_sequence.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace skein {
namespace {

constexpr size_t kOptionTokensMax = 48;     // without the marker
constexpr int32_t kInstructionTokens = 16;  // at least so many are left for the instructions
constexpr int32_t kOptionTokensMin = 4;     // with the marker
constexpr int32_t kInstructionTokensMin = 8;

std::string_view TypeName(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kChoice:
      return "choice";
    case DecisionKind::kScore:
      return "score";
    case DecisionKind::kPredicate:
      break;
  }
  return "noul";
}

std::string WithoutMarks(std::string_view text, std::string_view mark) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t found = text.find(mark, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) break;
    out += ' ';
    at = found + mark.size();
  }
  return out;
}

}  // namespace

std::vector<std::string> LayaOptions(const DecisionQuestion& question) {
  std::vector<std::string> texts;
  if (question.kind == DecisionKind::kPredicate) {
    const std::string& yes = question.options[0].description;
    const std::string& no = question.options[1].description;
    texts.push_back("false: " + (no.empty() ? "no, the statement does not hold" : no));
    texts.push_back("true: " + (yes.empty() ? "yes, the statement holds" : yes));
    return texts;
  }
  for (size_t i = 0; i < question.options.size(); ++i) {
    const DecisionOption& option = question.options[i];
    if (question.kind == DecisionKind::kChoice) {
      texts.push_back(LabelledText(option.name, option.description));
    } else {
      const std::string text =
          option.name.empty() ? option.description : LabelledText(option.name, option.description);
      texts.push_back(fmt::format("level {}: {}", i, text));
    }
  }
  return texts;
}

Result<LayaEncoder> LayaEncoder::Make(const ModelEntry& model, const LayaBudgets& budgets) {
  const DecisionModelTraits& traits = *model.traits.decision_model;
  LayaEncoder encoder(model);
  encoder.budgets_ = budgets;
  encoder.mask_text_ = traits.mask_token;
  const std::pair<const std::string*, TokenId*> tokens[] = {{&traits.cls_token, &encoder.cls_},
                                                            {&traits.sep_token, &encoder.sep_},
                                                            {&traits.mask_token, &encoder.mask_}};
  for (const auto& [text, id] : tokens) {
    SKEIN_ASSIGN_OR_RETURN(*id, FindSpecialToken(model, *text));
  }
  return encoder;
}

Status LayaEncoder::Encode(std::string_view text, std::vector<TokenId>* ids) const {
  return EncodeForHead(*model_, WithoutMarks(text, mask_text_), ids);
}

Result<std::vector<TokenId>> LayaEncoder::State(std::string_view text) const {
  std::vector<TokenId> ids;
  SKEIN_RETURN_IF_ERROR(Encode(text, &ids));
  return ids;
}

Result<HeadSequence> LayaEncoder::Sequence(const DecisionQuestion& question,
                                           std::span<const TokenId> state, bool keep_end) const {
  std::vector<TokenId> head;
  SKEIN_RETURN_IF_ERROR(Encode(
      fmt::format("{} question: {}", TypeName(question.kind), question.instructions), &head));
  std::vector<std::vector<TokenId>> options;
  for (const std::string& text : LayaOptions(question)) {
    std::vector<TokenId>& ids = options.emplace_back();
    SKEIN_RETURN_IF_ERROR(Encode(" " + text, &ids));
    ids.resize(std::min(ids.size(), kOptionTokensMax));
    ids.insert(ids.begin(), mask_);
  }
  const auto left = [&] {
    int64_t tokens = budgets_.head_max_len;
    for (const auto& option : options) tokens -= std::ssize(option);
    return tokens;
  };
  HeadSequence sequence;
  if (left() < kInstructionTokens) {
    const int64_t share =
        std::max<int64_t>(budgets_.head_max_len - kInstructionTokens, 0) / std::ssize(options);
    sequence.option_limit = std::max(kOptionTokensMin, static_cast<int32_t>(share));
    for (auto& option : options) {
      option.resize(std::min(option.size(), static_cast<size_t>(*sequence.option_limit)));
    }
  }
  const int64_t room_for_head = std::max<int64_t>(kInstructionTokensMin, left());
  head.resize(std::min(head.size(), static_cast<size_t>(room_for_head)));
  std::vector<TokenId>& ids = sequence.ids;
  ids.push_back(cls_);
  ids.insert(ids.end(), head.begin(), head.end());
  ids.push_back(sep_);
  for (const auto& option : options) {
    sequence.markers.push_back(static_cast<int32_t>(ids.size()));
    ids.insert(ids.end(), option.begin(), option.end());
  }
  if (model_->traits.decision_model->parallel) {
    sequence.option_bounds = sequence.markers;
    sequence.option_bounds.push_back(static_cast<int32_t>(ids.size()));
  }
  ids.push_back(sep_);
  if (sequence.markers.back() >= budgets_.max_len) {
    const auto fits = std::ranges::lower_bound(sequence.markers, budgets_.max_len);
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("has {} options, of which {} fit into max_len {} with head_max_len "
                              "{}: lower head_max_len, raise max_len or use fewer options",
                              options.size(), fits - sequence.markers.begin(), budgets_.max_len,
                              budgets_.head_max_len));
  }
  const auto room =
      static_cast<size_t>(std::max<int64_t>(budgets_.max_len - std::ssize(ids) - 1, 0));
  const size_t count = std::min(room, state.size());
  const auto kept = keep_end ? state.last(count) : state.first(count);
  ids.insert(ids.end(), kept.begin(), kept.end());
  ids.push_back(sep_);
  ids.resize(std::min(ids.size(), static_cast<size_t>(budgets_.max_len)));
  if (!sequence.option_bounds.empty()) {
    int32_t& end = sequence.option_bounds.back();
    end = std::min(end, static_cast<int32_t>(ids.size()));
  }
  sequence.state_tokens = static_cast<int32_t>(count);
  sequence.distinct_options = CountDistinct(options);
  return sequence;
}

}  // namespace skein
