#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace skein {

// The most options that `skein COMMAND --help` shows, not counting --help and --help-all.
constexpr int kMaxFirstOptions = 10;

// The heading of options that are in no HelpGroup.
constexpr const char* kUsualHelpGroup = "Options";

// Puts options under the heading `name` in --help-all and in docs/options.md: those that are added
// to `command` while this object lives. Does not nest.
class HelpGroup {
 public:
  HelpGroup(CLI::App* command, const char* name) : command_(command) {
    command->option_defaults()->group(name);
  }
  ~HelpGroup() { command_->option_defaults()->group(kUsualHelpGroup); }
  HelpGroup(const HelpGroup&) = delete;
  HelpGroup& operator=(const HelpGroup&) = delete;

 private:
  CLI::App* const command_;
};

// Makes --help of `command` show only these options, in this order, and then mention --help-all. A
// command without such a list shows all of its options.
// REQUIRES: the command has all of them, and they are at most kMaxFirstOptions.
void ShowFirst(CLI::App* command, const std::vector<std::string>& names);

// The options that --help-all of `command` lists, in the order of their definition: without
// positionals, --help, --help-all and hidden options.
std::vector<const CLI::Option*> ListedOptions(const CLI::App& command);

}  // namespace skein
