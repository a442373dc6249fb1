#include "server/decisions/text_reading.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <utility>

#include "server/decisions/decision_requests.h"
#include "server/decisions/option_spellings.h"

namespace skein {
namespace {

// The levels' own names if each is a digit and all differ, otherwise their indices.
std::vector<std::string> DigitsOf(const DecisionQuestion& question) {
  std::vector<std::string> names;
  std::vector<std::string> places;
  for (const DecisionOption& option : question.options) {
    places.push_back(std::to_string(names.size()));
    const bool digit = option.name.size() == 1 && option.name[0] >= '0' && option.name[0] <= '9';
    if (digit && std::find(names.begin(), names.end(), option.name) == names.end()) {
      names.push_back(option.name);
    } else {
      names.emplace_back();
    }
  }
  return std::find(names.begin(), names.end(), "") == names.end() ? names : places;
}

Result<LabelFinder> FinderOf(const TextReadingConfig& config, const PromptParts& parts) {
  return LabelFinder::Make(config.model->tokenizer, parts.ending, parts.frame.space_before_label);
}

// Makes the rows that read `paths` behind the question's prompt. `answers`: the answers in the
// examples.
Result<QuestionReads> ReadBehind(const TextReadingConfig& config, const PromptParts& parts,
                                 const AskedQuestion& asked,
                                 const std::vector<std::string>& answers,
                                 const std::vector<std::vector<TokenPath>>& paths) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text,
                         ComposePrompt(*config.model, parts, asked, answers));
  SKEIN_ASSIGN_OR_RETURN(
      Request request,
      MakeRead(*config.model, config.base, text, parts.frame.add_special_tokens, config.input_field,
               fmt::format("{} with {}", config.input_field, asked.field)));
  QuestionReads reads = ReadPaths(config.base, std::move(request.prompt), paths, config.want_mass);
  reads.own_text = parts.question + parts.frame.after;
  return reads;
}

// Finds the paths of each option's texts behind an ending. No two options share a path.
class PathFinder {
 public:
  PathFinder(const LabelFinder* finder, bool exact) : finder_(finder), exact_(exact) {}

  // Adds the paths of an option with these spellings, best first. kInvalidArgument if it has none.
  Status Add(const std::vector<std::string>& spellings) {
    std::vector<TokenPath> paths;
    for (const bool space : {finder_->space_first(), !finder_->space_first()}) {
      for (const std::string& spelling : spellings) {
        auto path = finder_->PathOf(spelling, space);
        // A further spelling is used only if it needs no row of its own.
        if (!path || (!paths.empty() && path->size() > 1) || !used_.insert(*path).second) continue;
        paths.push_back(*std::move(path));
        if (exact_) break;
      }
      if (exact_ && !paths.empty()) break;
    }
    if (paths.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("has the option \"{}\", which this model's tokenizer cannot tell "
                                "from another option: word it differently",
                                spellings.front()));
    }
    paths_.push_back(std::move(paths));
    return Status::Ok();
  }

  std::vector<std::vector<TokenPath>> Take() { return std::move(paths_); }

 private:
  const LabelFinder* finder_;
  bool exact_;
  std::set<TokenPath> used_;
  std::vector<std::vector<TokenPath>> paths_;
};

// With more options, their spellings would have more first tokens than one row can read.
constexpr size_t kOptionsWithSpellings = kMaxLabels / 4;

// The spellings of each option. If a spelling of an option is another option's own text, it belongs
// to the latter alone.
std::vector<std::vector<std::string>> SpellingsOfOptions(const DecisionQuestion& question,
                                                         bool exact) {
  std::vector<std::vector<std::string>> spellings;
  if (question.kind == DecisionKind::kPredicate) {
    for (auto& list : SpellingsOfYesNo(question.instructions)) spellings.push_back(std::move(list));
  } else {
    for (const DecisionOption& option : question.options) {
      spellings.push_back(SpellingsOfText(option.text()));
    }
  }
  std::multiset<std::string> all;
  for (const auto& list : spellings) all.insert(list.begin(), list.end());
  for (auto& list : spellings) {
    if (exact || spellings.size() > kOptionsWithSpellings) list.resize(1);
    const std::string own = list.front();
    std::erase_if(list, [&](const std::string& s) { return s != own && all.count(s) > 1; });
  }
  return spellings;
}

}  // namespace

Result<DecisionLabels> LettersReading::FindLabels(const DecisionQuestion& question) const {
  std::vector<std::string> digits;
  if (question.kind == DecisionKind::kScore) digits = DigitsOf(question);
  const std::tuple key = {question.kind, question.options.size(),
                          fmt::format("{}", fmt::join(digits, ""))};
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const PromptParts parts =
      LettersPrompt(config_->frame, question, std::vector<std::string>(question.options.size()));
  SKEIN_ASSIGN_OR_RETURN(const LabelFinder finder, FinderOf(*config_, parts));
  SKEIN_ASSIGN_OR_RETURN(DecisionLabels labels, question.kind == DecisionKind::kChoice
                                                    ? finder.Letters(question.options.size())
                                                    : finder.Exactly(digits));
  known_.emplace(key, labels);
  return labels;
}

Result<QuestionReads> LettersReading::Plan(const AskedQuestion& asked) const {
  const DecisionQuestion& question = *asked.question;
  std::vector<std::string> labels = {"yes", "no"};
  std::vector<std::vector<TokenPath>> paths;
  if (question.kind == DecisionKind::kPredicate) {
    const PromptParts parts = LettersPrompt(config_->frame, question, labels);
    SKEIN_ASSIGN_OR_RETURN(const LabelFinder finder, FinderOf(*config_, parts));
    SKEIN_ASSIGN_OR_RETURN(const auto spellings,
                           finder.SpellingsOf(SpellingsOfYesNo(question.instructions)));
    for (const auto& tokens : spellings) {
      auto& of_option = paths.emplace_back();
      for (const TokenId token : tokens) of_option.push_back({token});
    }
  } else {
    SKEIN_ASSIGN_OR_RETURN(DecisionLabels found, FindLabels(question));
    for (const TokenId token : found.tokens) paths.push_back({{token}});
    labels = std::move(found.texts);
  }
  const PromptParts parts = LettersPrompt(config_->frame, question, labels);
  return ReadBehind(*config_, parts, asked, labels, paths);
}

Result<QuestionReads> WordsReading::Plan(const AskedQuestion& asked) const {
  const DecisionQuestion& question = *asked.question;
  SKEIN_RETURN_IF_ERROR(CheckOptionTexts(question));
  const PromptParts parts = WordsPrompt(config_->frame, config_->prompt, question);
  SKEIN_ASSIGN_OR_RETURN(const LabelFinder finder, FinderOf(*config_, parts));
  const auto spellings = SpellingsOfOptions(question, config_->exact_spelling);
  PathFinder paths(&finder, config_->exact_spelling);
  std::vector<std::string> answers;
  for (const auto& of_option : spellings) {
    SKEIN_RETURN_IF_ERROR(paths.Add(of_option));
    answers.push_back(of_option.front());
  }
  return ReadBehind(*config_, parts, asked, answers, paths.Take());
}

}  // namespace skein
