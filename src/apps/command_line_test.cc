#include "apps/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "apps/host/help.h"
#include "apps/host/options_page.h"

namespace skein {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Calls `visit` for the program and each of its commands.
void ForEachCommand(const CLI::App& app, const std::string& name,
                    const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(app, name);
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    ForEachCommand(*below, name + " " + below->get_name(), visit);
  }
}

// Whether a line of the help begins with this option.
bool Lists(const std::string& help, const CLI::Option& option) {
  return help.find("\n  " + option.get_name(false, true)) != std::string::npos;
}

TEST(CommandLine, AWrongCommandIsNamedWithTheLikelyOne) {
  int status = 0;
  const auto app = MakeCommandLine(&status);
  const auto why = [&](std::vector<std::string> arguments) {
    return MisspelledCommand(*app, arguments);
  };
  EXPECT_THAT(why({"serv", "model"}),
              AllOf(HasSubstr("no command 'serv', only serve"), HasSubstr("mean 'serve'?")));
  EXPECT_THAT(why({"bench", "ofline"}), EndsWith("; did you mean 'offline'?"));
  EXPECT_THAT(why({"xyzzy"}), Not(HasSubstr("mean")));
  EXPECT_EQ(why({"serve", "servv"}), "");
  EXPECT_EQ(why({"--version"}), "");
  EXPECT_EQ(why({}), "");
}

TEST(CommandLine, HelpShowsAtMostTenOptionsAndHelpAllEveryOne) {
  int status = 0;
  const auto app = MakeCommandLine(&status);
  ForEachCommand(*app, "skein", [](const CLI::App& command, const std::string& name) {
    const std::string first = command.help(), all = command.help("", CLI::AppFormatMode::All);
    int shown = 0, listed = 0;
    for (const CLI::Option* option : ListedOptions(command)) {
      EXPECT_TRUE(Lists(all, *option)) << name << " " << option->get_name();
      EXPECT_FALSE(option->get_description().empty()) << name << " " << option->get_name();
      shown += Lists(first, *option) ? 1 : 0;
      ++listed;
    }
    EXPECT_GE(shown, std::min(listed, 1)) << name;
    EXPECT_LE(shown, kMaxFirstOptions) << name << ": choose by ShowFirst what --help lists";
    if (shown < listed) {
      EXPECT_THAT(first, EndsWith("options; so does docs/options.md.\n")) << name;
    }
  });
}

TEST(CommandLine, BothHelpsOfACommandArePrintedOnRequest) {
  const auto printed = [](const std::string& line) {
    int status = 0;
    const auto app = MakeCommandLine(&status);
    std::ostringstream out;
    try {
      app->parse(line);
      ADD_FAILURE() << line;
    } catch (const CLI::ParseError& error) {
      EXPECT_EQ(app->exit(error, out, out), 0) << line;
    }
    return out.str();
  };
  EXPECT_THAT(printed("serve --help"),
              AllOf(HasSubstr("--port"), HasSubstr("--help-all"), Not(HasSubstr("--stop-rule"))));
  EXPECT_THAT(printed("serve --help-all"), AllOf(HasSubstr("--port"), HasSubstr("--stop-rule")));
  EXPECT_THAT(printed("bench quality --help"), Not(HasSubstr("--stop-rule")));
  EXPECT_THAT(printed("sim calibrate --help"), HasSubstr("--rounds"));
}

TEST(CommandLine, ThePageNamesEveryOptionOfEveryCommand) {
  int status = 0;
  const auto app = MakeCommandLine(&status);
  const std::string page = OptionsPage(*app);
  std::ifstream file(std::filesystem::path(SKEIN_SOURCE_DIR) / "docs/options.md");
  std::stringstream there;
  there << file.rdbuf();
  EXPECT_TRUE(there.str() == page)
      << "docs/options.md is old: skein --options-page > docs/options.md writes it anew";
  ForEachCommand(*app, "skein", [&](const CLI::App& command, const std::string& name) {
    const size_t begin = page.find("\n## " + name + "\n");
    ASSERT_NE(begin, std::string::npos) << name;
    const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
    for (const CLI::Option* option : ListedOptions(command)) {
      EXPECT_THAT(section, HasSubstr("`" + option->get_name(false, true))) << name;
    }
  });
}

}  // namespace
}  // namespace skein
