#pragma once

#include <string>

#include "apps/blocked_signals.h"
#include "apps/run/dialogue.h"
#include "apps/run/line_editor.h"

namespace skein {

// A dialogue on the terminal: a line is asked, the answer is written as it comes. Answers go to
// standard output, all else to standard error. One thread.
class ChatConsole {
 public:
  // Both outlive the console. `interrupts`: SIGINT, which stops an answer. `name`: the model's.
  ChatConsole(Dialogue* dialogue, const BlockedSignals* interrupts, std::string name);

  // Returns when the user leaves.
  void Run();

 private:
  // Runs a command. Returns false if the user leaves.
  bool Obey(const std::string& command);
  void Ask(const std::string& text);

  Dialogue* const dialogue_;
  const BlockedSignals* const interrupts_;
  const std::string name_;
  LineEditor editor_;
};

}  // namespace skein
