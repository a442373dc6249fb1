#include "apps/host/options_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <vector>

#include "apps/command_line.h"
#include "apps/host/help.h"

namespace skein {
namespace {

using Options = std::vector<const CLI::Option*>;

// A text in the form of a table's cell.
std::string Cell(const std::string& text) {
  return CLI::detail::find_and_replace(text, "|", "\\|");
}

// The type and the allowed values, such as " INT in [0 - 8]"; empty for a flag.
std::string TypeOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.empty()) return "";
  const size_t colon = type.find(':');
  if (colon == std::string::npos) return " " + type;
  const std::string own = type.substr(0, colon), allowed = type.substr(colon + 1);
  return " " + (allowed.starts_with(own) ? allowed : own + " of " + allowed);
}

std::string Row(const CLI::Option& option, bool shows_environment) {
  std::string purpose = Cell(option.get_description());
  if (shows_environment && !option.get_envname().empty()) {
    purpose += fmt::format(". In the environment: `{}`", option.get_envname());
  }
  const std::string usual = option.get_default_str();
  return fmt::format("| `{}{}` | {} | {} |\n", option.get_name(!option.nonpositional(), true),
                     Cell(TypeOf(option)),
                     option.get_required() ? "required"
                     : usual.empty()       ? ""
                                           : "`" + Cell(usual) + "`",
                     purpose);
}

std::string Table(const Options& options, bool shows_environment) {
  std::string text = "| option | default | purpose |\n|---|---|---|\n";
  for (const CLI::Option* option : options) text += Row(*option, shows_environment);
  return text;
}

// `text` broken into lines of at most 100 columns.
std::string Lines(const std::string& text) {
  constexpr size_t kMaxColumns = 100;
  std::string lines;
  size_t column = 0;
  for (const std::string& word : CLI::detail::split(text, ' ')) {
    const bool fits = column > 0 && column + 1 + word.size() <= kMaxColumns;
    if (column > 0) lines += fits ? ' ' : '\n';
    lines += word;
    column = fits ? column + 1 + word.size() : word.size();
  }
  return lines + "\n";
}

std::string Names(const std::string& begin, const Options& options) {
  std::string text = begin;
  for (const CLI::Option* option : options) {
    text +=
        fmt::format(" `{}`{}", option->get_name(false, true), option == options.back() ? "." : ",");
  }
  return Lines(text);
}

// Writes the commands one after the other. A group of options with the same texts as an earlier
// group is only named, not described again.
class Page {
 public:
  void Add(const CLI::App& command, const std::string& name) {
    const Options positionals = command.get_options([](const CLI::Option* option) {
      return !option->nonpositional() && !option->get_group().empty();
    });
    const Options listed = ListedOptions(command);
    text_ += fmt::format("\n## {}\n\n{}", name, Lines(command.get_description() + "."));
    const bool all_in_environment =
        !listed.empty() && std::ranges::all_of(listed, [](const CLI::Option* option) {
          return option->get_envname() == EnvironmentName(*option);
        });
    if (all_in_environment) {
      text_ +=
          "Each option can also stand in the environment: `--log-level` is `SKEIN_LOG_LEVEL`.\n";
    }
    if (!positionals.empty()) text_ += "\n" + Table(positionals, false);
    for (const std::string& group : command.get_groups()) {
      Options options = listed;
      std::erase_if(options,
                    [&](const CLI::Option* option) { return option->get_group() != group; });
      if (!options.empty()) AddGroup(name, group, options, !all_in_environment);
    }
    for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
      Add(*below, name + " " + below->get_name());
    }
  }

  const std::string& text() const { return text_; }

 private:
  void AddGroup(const std::string& command, const std::string& group, const Options& options,
                bool shows_environment) {
    constexpr size_t kMinSizeToRefer = 3;
    const std::string table = Table(options, shows_environment);
    const auto [described, is_new] = described_in_.emplace(group + table, command);
    if (is_new || options.size() < kMinSizeToRefer) {
      text_ += fmt::format("\n{}:\n\n{}", group, table);
      return;
    }
    std::string anchor = described->second;
    std::ranges::replace(anchor, ' ', '-');
    text_ += "\n" +
             Names(fmt::format("{}, as of [{}](#{}):", group, described->second, anchor), options);
  }

  std::string text_;
  // A group's texts -> the command that describes the group.
  std::map<std::string, std::string> described_in_;
};

}  // namespace

std::string OptionsPage(const CLI::App& app) {
  Page page;
  page.Add(app, "skein");
  return "# Options\n\n"
         "Every option of every command. The command line wins over the environment, and that over "
         "the file\nof `--config`. `skein COMMAND --help` shows the options that most people need; "
         "`--help-all` shows\nall. `skein --options-page > docs/options.md` writes this page.\n" +
         page.text();
}

}  // namespace skein
