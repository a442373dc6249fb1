#include "apps/model/mil_prove.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

extern char** environ;

namespace skein {
namespace {

constexpr char kLoaded[] = "loaded";
constexpr char kDone[] = "done";
constexpr int kLookMs = 50;  // between two checks of a child's memory

// A number in /proc/PID/status, in bytes; 0 if the file does not have it.
int64_t StatusBytes(pid_t pid, const char* key) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t kilobytes = 0;
    if (words >> word >> kilobytes && word == key) return kilobytes * 1024;
  }
  return 0;
}

// A child process whose standard input and output are pipes to this process.
class Child {
 public:
  ~Child() {
    if (in_ != nullptr) std::fclose(in_);
    if (out_ != nullptr) std::fclose(out_);
    if (pid_ <= 0) return;
    if (!done_) kill(pid_, SIGKILL);  // nobody would read the child's result
    waitpid(pid_, nullptr, 0);
  }

  Status Start(const std::vector<std::string>& command) {
    signal(SIGPIPE, SIG_IGN);  // the end of its output shows that the child has ended
    int to_child[2], from_child[2];
    if (pipe(to_child) != 0 || pipe(from_child) != 0) return Failed("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
    for (const int fd : {to_child[0], to_child[1], from_child[0], from_child[1]}) {
      posix_spawn_file_actions_addclose(&actions, fd);
    }
    std::vector<char*> arguments;
    for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
    arguments.push_back(nullptr);
    const int error =
        posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to_child[0]);
    close(from_child[1]);
    in_ = fdopen(to_child[1], "w");
    out_ = fdopen(from_child[0], "r");
    if (error == 0) return Status::Ok();
    pid_ = 0;
    return Failed(std::strerror(error));
  }

  // Reads lines until one begins with `word`; returns the rest of that line.
  Result<std::string> Expect(const std::string& word) {
    char line[1024];
    while (std::fgets(line, sizeof(line), out_) != nullptr) {
      if (std::string(line).starts_with(word)) return std::string(line + word.size());
    }
    return Failed("it ended before it was " + word);
  }
  // Whether the child writes something, or ends, within the time.
  bool Speaks(int timeout_ms) const {
    pollfd lines = {.fd = fileno(out_), .events = POLLIN, .revents = 0};
    return poll(&lines, 1, timeout_ms) > 0;
  }
  void GoOn() {
    std::fputc('\n', in_);
    std::fflush(in_);
  }
  void SetDone() { done_ = true; }
  pid_t pid() const { return pid_; }

  static Status Failed(const std::string& why) {
    return {StatusCode::kInternal, "the run in a process of its own failed: " + why};
  }

 private:
  pid_t pid_ = 0;
  bool done_ = false;
  FILE* in_ = nullptr;
  FILE* out_ = nullptr;
};

void Tell(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
  (void)std::getchar();
}

}  // namespace

Result<MilProof> WatchMilChild(const std::vector<std::string>& command, int64_t enough_bytes) {
  Child child;
  SKEIN_RETURN_IF_ERROR(child.Start(command));
  SKEIN_RETURN_IF_ERROR(child.Expect(kLoaded).status());
  const int64_t before = StatusBytes(child.pid(), "VmRSS:");
  std::ofstream reset("/proc/" + std::to_string(child.pid()) + "/clear_refs");
  if (!(reset << 5 << std::flush)) {
    return Status(StatusCode::kUnsupported, "the peak of a process's memory cannot be reset here");
  }
  child.GoOn();
  const auto peak = [&] { return StatusBytes(child.pid(), "VmHWM:") - before; };
  while (enough_bytes > 0 && !child.Speaks(kLookMs)) {
    const int64_t so_far = peak();
    if (so_far > enough_bytes) return MilProof{.peak_bytes = so_far, .stopped = true};
  }
  SKEIN_ASSIGN_OR_RETURN(const std::string seconds, child.Expect(kDone));
  const MilProof proof = {.peak_bytes = peak(), .seconds = std::strtod(seconds.c_str(), nullptr)};
  child.SetDone();
  child.GoOn();
  return proof;
}

void TellWeightsLoaded() { Tell(kLoaded); }
void TellDone(double seconds) { Tell(std::string(kDone) + " " + std::to_string(seconds)); }

}  // namespace skein
