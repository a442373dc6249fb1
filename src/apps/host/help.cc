#include "apps/host/help.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

// Shows a few options for --help, and all options, in their groups, for --help-all.
class FirstScreen final : public CLI::Formatter {
 public:
  FirstScreen(const CLI::Formatter& usual, std::vector<const CLI::Option*> first)
      : CLI::Formatter(usual), first_(std::move(first)) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode != CLI::AppFormatMode::Normal) return CLI::Formatter::make_help(app, name, mode);
    return make_description(app) + make_usage(app, name) + make_positionals(app) +
           make_group(kUsualHelpGroup, /*is_positional=*/false, first_) +
           make_subcommands(app, mode) + "\n--help-all shows all " +
           std::to_string(ListedOptions(*app).size()) + " options; so does docs/options.md.\n";
  }

 private:
  const std::vector<const CLI::Option*> first_;
};

}  // namespace

std::vector<const CLI::Option*> ListedOptions(const CLI::App& command) {
  return command.get_options([&](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty() &&
           option != command.get_help_ptr() && option != command.get_help_all_ptr();
  });
}

void ShowFirst(CLI::App* command, const std::vector<std::string>& names) {
  SKEIN_CHECK(names.size() <= kMaxFirstOptions);
  std::vector<const CLI::Option*> first;
  for (const std::string& name : names) {
    first.push_back(command->get_option_no_throw(name));
    SKEIN_CHECK(first.back() != nullptr);
  }
  const auto usual = std::dynamic_pointer_cast<CLI::Formatter>(command->get_formatter());
  command->formatter(std::make_shared<FirstScreen>(*usual, std::move(first)));
}

}  // namespace skein
