#include "server/decisions/similarity_reading.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "server/decisions/decision_prompt.h"
#include "server/decisions/decision_requests.h"
#include "server/decisions/option_spellings.h"
#include "server/reads/read_inputs.h"
#include "server/reads/vectors.h"

namespace skein {
namespace {

// The text of an option that is embedded.
std::string OptionText(const DecisionQuestion& question, const DecisionOption& option,
                       PromptForm prompt) {
  const bool predicate = question.kind == DecisionKind::kPredicate;
  std::string text = predicate ? option.description : option.text();
  if (!predicate && !option.name.empty() && !option.description.empty()) {
    text += ": " + option.description;
  }
  if (prompt == PromptForm::kQuestion) return question.instructions + " " + text;
  if (prompt != PromptForm::kCue) return text;
  const std::string cue = question.cue.empty() ? CueOf(question.instructions) : question.cue;
  return cue.empty() ? text : cue + ": " + text;
}

}  // namespace

Result<QuestionReads> SimilarityReading::Plan(const AskedQuestion& asked) const {
  const DecisionQuestion& question = *asked.question;
  if (!model_->traits.embeds) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("the reading similarity needs a model that embeds; {} does not",
                              model_->name()),
                  "reading");
  }
  if (!asked.examples.empty()) {
    return Status(StatusCode::kUnsupported, "the reading similarity takes no examples", "examples");
  }
  if (question.kind == DecisionKind::kPredicate &&
      (question.options[0].description.empty() || question.options[1].description.empty())) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("is a question of yes or no, which the model {} cannot answer: it "
                              "compares texts. Ask a choice between two texts, or describe yes and "
                              "no",
                              model_->name()));
  }
  SKEIN_RETURN_IF_ERROR(CheckOptionTexts(question));
  QuestionReads reads;
  const auto add = [&](std::string_view text, const std::string& field,
                       const std::string& what) -> Status {
    Request request = base_;
    const Status encoded = model_->tokenizer->Encode(text, true, &request.prompt);
    if (!encoded.ok()) return Status(encoded.code(), what + ": " + encoded.message(), field);
    SKEIN_RETURN_IF_ERROR(
        CheckPromptLength(MaxTokens(*model_), request.prompt.size(), field, what));
    request.output = EmbedSpec{};
    reads.rows.push_back({std::move(request), true});
    return Status::Ok();
  };
  SKEIN_RETURN_IF_ERROR(add(asked.input, input_field_, input_field_));
  for (const DecisionOption& option : question.options) {
    SKEIN_RETURN_IF_ERROR(add(OptionText(question, option, prompt_), std::string(asked.field),
                              fmt::format("{}'s option \"{}\"", asked.field, option.text())));
  }
  reads.read = [sparse = model_->traits.sparse.has_value()](std::span<const RowOutput> outputs) {
    OptionScores scores;
    for (size_t i = 1; i < outputs.size(); ++i) {
      const ReadValues &input = *outputs[0].read, &option = *outputs[i].read;
      scores.logprobs.push_back(kSimilarityScale * (sparse ? SparseCosine(input, option)
                                                           : Cosine(input.values, option.values)));
    }
    return scores;
  };
  return reads;
}

}  // namespace skein
