#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "skein/choice_names.h"

namespace skein {

// Returns an error message if `text` is not the name of a choice, otherwise an empty text.
template <NamedChoice Choice>
std::string CheckChoice(const std::string& text) {
  if (ChoiceOf<Choice>(text)) return "";
  return "is '" + text + "', must be one of: " + ListOfChoices<Choice>();
}

// Adds an option whose value is the name of a choice. A wrong name is a usage error that names the
// option and the allowed names.
template <NamedChoice Choice>
CLI::Option* AddChoice(CLI::App* app, const std::string& name, std::optional<Choice>* chosen,
                       const std::string& description) {
  const auto choose = [chosen](const std::string& text) { *chosen = ChoiceOf<Choice>(text); };
  return app->add_option_function<std::string>(name, choose, description)
      ->check(CheckChoice<Choice>)
      ->type_name("NAME");
}

// The same for an option with a default, which is the value of `*chosen`.
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
