#pragma once

#include <memory>
#include <optional>
#include <string>

namespace skein {

// Reads lines from the terminal with libedit. The keys are those of Emacs unless ~/.editrc says
// otherwise. Earlier lines are kept in a history. Prompt and echo go to standard error if it is a
// terminal. One thread.
class LineEditor {
 public:
  // `prompt`: ASCII, shown before each line. `history_file`: the history is read from this file,
  // and written to it after each line; missing folders are created. If it is empty or cannot be
  // written, the history is lost with the editor.
  LineEditor(std::string prompt, std::string history_file);
  ~LineEditor();  // restores the terminal
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Returns the next line, without its line end. Ctrl-C starts the line again. nullopt after Ctrl-D
  // on an empty line, or if the terminal is gone.
  std::optional<std::string> Read();

 private:
  struct Library;
  void Remember(const std::string& line);

  const std::string history_file_;
  std::unique_ptr<Library> library_;
};

// $XDG_STATE_HOME/skein/history, otherwise ~/.local/state/skein/history; empty if neither variable
// is set.
std::string HistoryFile();

}  // namespace skein
