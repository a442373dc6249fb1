#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "skein/choice_names.h"

namespace skein {

// An error message if `text` names no choice; else empty.
template <NamedChoice Choice>
std::string CheckChoice(const std::string& text) {
  if (ChoiceOf<Choice>(text)) return "";
  return "is '" + text + "', must be one of: " + ListOfChoices<Choice>();
}

// Adds an option whose value is the name of a choice. A wrong one is a usage error that names the
// option and what is allowed.
template <NamedChoice Choice>
CLI::Option* AddChoice(CLI::App* app, const std::string& name, std::optional<Choice>* chosen,
                       const std::string& description) {
  const auto choose = [chosen](const std::string& text) { *chosen = ChoiceOf<Choice>(text); };
  return app->add_option_function<std::string>(name, choose, description)
      ->check(CheckChoice<Choice>)
      ->type_name("NAME");
}

// The same with a default, `*chosen`.
template <NamedChoice Choice>
CLI::Option* AddChoice(CLI::App* app, const std::string& name, Choice* chosen,
                       const std::string& description) {
  const auto choose = [chosen](const std::string& text) { *chosen = *ChoiceOf<Choice>(text); };
  return app->add_option_function<std::string>(name, choose, description)
      ->check(CheckChoice<Choice>)
      ->type_name("NAME")
      ->default_str(std::string(NameOf(*chosen)));
}

}  // namespace skein
