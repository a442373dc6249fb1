#include <CLI/CLI.hpp>

#include "apps/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Skein: a decision engine for language models"};
  app.set_version_flag("--version", SKEIN_VERSION);
  app.set_config("--config", "", "Read options from a TOML file; the command line wins");
  app.require_subcommand(1);
  int exit_status = 0;
  skein::AddModelCommand(&app, &exit_status);
  skein::AddTokenizeCommand(&app, &exit_status);
  CLI11_PARSE(app, argc, argv);
  return exit_status;
}
