#include "apps/run/chat_console.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "apps/run/answer_printer.h"

namespace skein {
namespace {

constexpr char kHelp[] =
    "/reset   forget what was said\n"
    "/help    this list\n"
    "/exit    leave; Ctrl-D does, too\n"
    "Ctrl-C stops an answer, or clears the line. A line that begins with a blank is no command.\n";

// A command is one word that begins with '/'.
bool IsCommand(const std::string& line) {
  return line.front() == '/' && line.find_first_of(" \t") == std::string::npos;
}

}  // namespace

ChatConsole::ChatConsole(Dialogue* dialogue, const BlockedSignals* interrupts, std::string name)
    : dialogue_(dialogue),
      interrupts_(interrupts),
      name_(std::move(name)),
      editor_("> ", HistoryFile()) {}

void ChatConsole::Run() {
  std::fprintf(stderr, "%s%s /help lists the commands, Ctrl-D leaves.\n", name_.c_str(),
               dialogue_->chats() ? "." : " has no chat template: it continues each line.");
  while (const std::optional<std::string> line = editor_.Read()) {
    if (line->find_first_not_of(" \t") == std::string::npos) continue;
    if (!IsCommand(*line)) {
      Ask(*line);
    } else if (!Obey(*line)) {
      return;
    }
  }
  std::fputs("\n", stderr);
}

bool ChatConsole::Obey(const std::string& command) {
  if (command == "/exit") return false;
  if (command == "/help") {
    std::fputs(kHelp, stderr);
  } else if (command == "/reset") {
    dialogue_->Reset();
    std::fputs("The conversation begins anew.\n", stderr);
  } else {
    std::fprintf(stderr, "There is no command %s; /help lists them.\n", command.c_str());
  }
  return true;
}

void ChatConsole::Ask(const std::string& text) {
  const auto stopped = [this] { return interrupts_->WaitFor(std::chrono::milliseconds(0)); };
  while (stopped()) {
    // Drops interrupts from before the answer, so that they do not stop it.
  }
  const Result<LocalAnswer> answer = dialogue_->Ask(text, &PrintPiece, stopped);
  if (answer.ok()) {
    EndAnswer();
    return;
  }
  std::fprintf(stderr, "%s\n", answer.status().message().c_str());
}

}  // namespace skein
