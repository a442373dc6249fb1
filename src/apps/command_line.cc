#include "apps/command_line.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <new>
#include <system_error>
#include <vector>

#include "apps/commands.h"
#include "apps/host/closest_name.h"
#include "apps/host/help.h"
#include "apps/host/options_page.h"
#include "base/memory_limit.h"
#include "kernels/kernels.h"

namespace skein {
namespace {

constexpr int kUsageError = 2;
constexpr int kResourceError = 1;

}  // namespace

std::string EnvironmentName(const CLI::Option& option) {
  std::string name = "SKEIN_";
  for (char c : option.get_lnames().front())
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

void NameEnvironment(CLI::App* command) {
  for (const CLI::Option* option : ListedOptions(*command)) {
    command->get_option(option->get_name())->envname(EnvironmentName(*option));
  }
}

std::unique_ptr<CLI::App> MakeCommandLine(int* exit_status) {
  auto app = std::make_unique<CLI::App>("Skein: a decision engine for language models");
  app->set_help_all_flag("--help-all", "Print every option and exit")->configurable(false);
  app->set_version_flag("--version", SKEIN_VERSION);
  app->set_config("--config", "",
                  "Read options from a TOML file with a section per command, such as [serve] or "
                  "[bench.serve]; the command line wins")
      ->check(CLI::ExistingFile);
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->require_subcommand(1);
  app->fallthrough();
  app->add_flag_callback("--options-page",
                         [app = app.get()] {
                           std::fputs(OptionsPage(*app).c_str(), stdout);
                           throw CLI::Success();
                         })
      ->configurable(false)
      ->group("");
  app->add_flag_callback(
         "--isas",
         [] {
           for (const Isa isa : IsasHere()) std::puts(NameOf(isa));
           throw CLI::Success();
         },
         "Print this machine's instruction sets for SKEIN_FORCE_ISA, best first, "
         "and exit")
      ->configurable(false);
  AddServeCommand(app.get(), exit_status);
  AddRunCommand(app.get(), exit_status);
  AddTokenizeCommand(app.get(), exit_status);
  AddModelCommand(app.get(), exit_status);
  AddPolicyCommand(app.get(), exit_status);
  AddDecideCommand(app.get(), exit_status);
  AddBenchCommand(app.get(), exit_status);
  AddSimCommand(app.get(), exit_status);
  return app;
}

std::string MisspelledCommand(const CLI::App& app, std::span<const std::string> arguments) {
  const CLI::App* command = &app;
  for (const std::string& argument : arguments) {
    if (command->get_require_subcommand_min() == 0) return "";
    if (argument.starts_with("-")) continue;
    std::vector<std::string> names;
    const CLI::App* below = nullptr;
    for (const CLI::App* named : command->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(named->get_name());
      if (named->get_name() == argument) below = named;
    }
    if (below == nullptr) {
      std::string list;
      for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
      return "there is no command '" + argument + "', only " + list + DidYouMean(argument, names);
    }
    command = below;
  }
  return "";
}

int RunCommandLine(int argc, char** argv) {
  ShareArenas();
  int exit_status = 0;
  const auto app = MakeCommandLine(&exit_status);
  try {
    app->parse(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "skein: there is not enough memory\n");
    return kResourceError;
  } catch (const std::system_error& error) {  // of a thread
    std::fprintf(stderr, "skein: a thread cannot be started: %s\n", error.what());
    return kResourceError;
  } catch (const CLI::ConfigError& error) {
    std::fprintf(stderr, "--config: %s: there is no such option\n", error.what());
    return kUsageError;
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (const std::string why = MisspelledCommand(*app, arguments); !why.empty()) {
      std::fprintf(stderr, "skein: %s\n", why.c_str());
      return kUsageError;
    }
    return app->exit(error) == 0 ? 0 : kUsageError;  // 0: help or the version
  }
  return exit_status;
}

}  // namespace skein
