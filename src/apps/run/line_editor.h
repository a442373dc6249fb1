#pragma once

#include <memory>
#include <optional>
#include <string>

namespace skein {

// Reads lines from the terminal with libedit. Keys are those of Emacs unless ~/.editrc says
// otherwise; earlier lines are kept in a history. Prompt and echo go to standard error where that
// is a terminal. One thread.
class LineEditor {
 public:
  // `prompt`: ASCII, stands before each line. `history_file`: where the history is read from and
  // written to after each line; created with its folders. Empty, or one that cannot be written: the
  // history ends with the editor.
  LineEditor(std::string prompt, std::string history_file);
  ~LineEditor();  // the terminal is as before
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next line, without its end. Ctrl-C begins the line anew. nullopt: Ctrl-D on an empty line,
  // or the terminal is gone.
  std::optional<std::string> Read();

 private:
  struct Library;
  void Remember(const std::string& line);

  const std::string history_file_;
  std::unique_ptr<Library> library_;
};

// $XDG_STATE_HOME/skein/history, else ~/.local/state/skein/history; empty if there is neither.
std::string HistoryFile();

}  // namespace skein
