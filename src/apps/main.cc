#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <string>

#include "apps/commands.h"

namespace skein {

void NameEnvironment(CLI::App* command) {
  for (CLI::Option* option : command->get_options()) {
    if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
    std::string name = "SKEIN_";
    for (char c : option->get_lnames().front())
      name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    option->envname(name);
  }
}

}  // namespace skein

constexpr int kUsageError = 2;

int main(int argc, char** argv) {
  CLI::App app{"Skein: a decision engine for language models"};
  app.set_version_flag("--version", SKEIN_VERSION);
  app.set_config("--config", "",
                 "Read options from a TOML file with a section per command, such as [serve] or "
                 "[bench.serve]; the command line wins")
      ->check(CLI::ExistingFile);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.require_subcommand(1);
  app.fallthrough();
  int exit_status = 0;
  skein::AddServeCommand(&app, &exit_status);
  skein::AddRunCommand(&app, &exit_status);
  skein::AddTokenizeCommand(&app, &exit_status);
  skein::AddModelCommand(&app, &exit_status);
  skein::AddPolicyCommand(&app, &exit_status);
  skein::AddDecideCommand(&app, &exit_status);
  skein::AddBenchCommand(&app, &exit_status);
  skein::AddSimCommand(&app, &exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ConfigError& error) {
    std::fprintf(stderr, "--config: %s: there is no such option\n", error.what());
    return kUsageError;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;  // 0: help or the version
  }
  return exit_status;
}
