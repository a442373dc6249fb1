#include "apps/model/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

extern char** environ;

namespace skein {
namespace {

Status Unavailable(const std::string& message) { return Status(StatusCode::kUnavailable, message); }

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

}  // namespace

Status RunProgram(const ProgramOptions& options) {
  SKEIN_CHECK(!options.arguments.empty());
  std::vector<char*> argv;
  for (const std::string& argument : options.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (options.show_output) {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, options.log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return Unavailable("cannot run " + options.arguments[0] + ": " + std::strerror(error));
  }
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) {
      return Unavailable("cannot wait for " + options.arguments[0] + ": " + std::strerror(errno));
    }
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return Status::Ok();
  const std::string line = LastLine(options.log);
  if (!line.empty()) return Unavailable(line);
  return Unavailable(options.arguments[0] +
                     (WIFEXITED(state) ? " ends with status " + std::to_string(WEXITSTATUS(state))
                                       : std::string(" is killed")));
}

}  // namespace skein
