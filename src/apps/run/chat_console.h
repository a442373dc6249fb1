#pragma once

#include <string>

#include "apps/blocked_signals.h"
#include "apps/run/dialogue.h"
#include "apps/run/line_editor.h"

namespace skein {

// A dialogue on the terminal: the user types a line, and the answer is written as it arrives.
// Answers go to standard output, everything else to standard error. One thread.
class ChatConsole {
 public:
  // `dialogue` and `interrupts` outlive the console. `interrupts` is SIGINT, which stops an answer.
  // `name` is the model's name.
  ChatConsole(Dialogue* dialogue, const BlockedSignals* interrupts, std::string name);

  // Returns when the user leaves.
  void Run();

 private:
  // Runs a command. Returns false if the user wants to leave.
  bool Obey(const std::string& command);
  void Ask(const std::string& text);

  Dialogue* const dialogue_;
  const BlockedSignals* const interrupts_;
  const std::string name_;
  LineEditor editor_;
};

}  // namespace skein
