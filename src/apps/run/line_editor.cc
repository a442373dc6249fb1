#include "apps/run/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <signal.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

constexpr int kHistoryLines = 1000;
constexpr char kCtrlC[] = "\x03";
constexpr char kCtrlZ[] = "\x1A";

// Makes the library read UTF-8, whatever the locale says.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

bool MakeFolderOf(const std::string& file) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
  return !error;
}

}  // namespace

// The handles of libedit, and the state of its callbacks.
struct LineEditor::Library {
  explicit Library(std::string prompt_text);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  static Library* Of(EditLine* edit) {
    void* data = nullptr;
    el_get(edit, EL_CLIENTDATA, &data);
    return static_cast<Library*>(data);
  }
  static char* Prompt(EditLine* edit) { return Of(edit)->prompt.data(); }
  static unsigned char Interrupt(EditLine* edit, int) {
    Of(edit)->interrupted = true;
    return CC_NEWLINE;
  }

  static unsigned char Suspend(EditLine*, int) {
    raise(SIGTSTP);  // the library's handler restores the terminal first
    return CC_REDISPLAY;
  }
  void Bind(const char* key, const char* name, const char* help,
            unsigned char (*function)(EditLine*, int));

  std::string prompt;
  std::FILE* out = nullptr;
  EditLine* edit = nullptr;
  History* lines = nullptr;
  HistEvent event = {};
  bool interrupted = false;  // Ctrl-C ended the line
};

LineEditor::Library::Library(std::string prompt_text) : prompt(std::move(prompt_text)) {
  UseUtf8();
  out = isatty(STDERR_FILENO) != 0 ? stderr : stdout;
  edit = el_init("skein", stdin, out, stderr);
  lines = history_init();
  SKEIN_CHECK(edit != nullptr && lines != nullptr);
  history(lines, &event, H_SETSIZE, kHistoryLines);
  history(lines, &event, H_SETUNIQUE, 1);
  el_set(edit, EL_CLIENTDATA, this);
  el_set(edit, EL_PROMPT, &Prompt);
  el_set(edit, EL_EDITOR, "emacs");
  el_set(edit, EL_SIGNAL, 1);
  el_set(edit, EL_HIST, history, lines);
  el_source(edit, nullptr);
  // While a line is read, Ctrl-C and Ctrl-Z are keys and send no signals.
  el_set(edit, EL_SETTY, "-d", "-isig", nullptr);
  Bind(kCtrlC, "skein-interrupt", "Begins the line anew", &Interrupt);
  Bind(kCtrlZ, "skein-suspend", "Stops the process", &Suspend);
}

// Binds a key in both key maps: in the usual one and in that of vi's commands.
void LineEditor::Library::Bind(const char* key, const char* name, const char* help,
                               unsigned char (*function)(EditLine*, int)) {
  el_set(edit, EL_ADDFN, name, help, function);
  el_set(edit, EL_BIND, key, name, nullptr);
  el_set(edit, EL_BIND, "-a", key, name, nullptr);
}

LineEditor::Library::~Library() {
  el_end(edit);
  history_end(lines);
}

LineEditor::LineEditor(std::string prompt, std::string history_file)
    : history_file_(!history_file.empty() && MakeFolderOf(history_file) ? std::move(history_file)
                                                                        : std::string()),
      library_(std::make_unique<Library>(std::move(prompt))) {
  if (!history_file_.empty()) {
    history(library_->lines, &library_->event, H_LOAD, history_file_.c_str());
  }
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::Read() {
  for (;;) {
    library_->interrupted = false;
    int count = 0;
    // The mode is set before the prompt is shown, so that a key that is pressed after the prompt is
    // read in this mode.
    el_set(library_->edit, EL_PREP_TERM, 1);
    const char* text = el_gets(library_->edit, &count);
    if (library_->interrupted) {
      std::fputs("^C\n", library_->out);
      continue;
    }
    if (text == nullptr || count <= 0) return std::nullopt;
    std::string line(text);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) Remember(line);
    return line;
  }
}

void LineEditor::Remember(const std::string& line) {
  history(library_->lines, &library_->event, H_ENTER, line.c_str());
  if (!history_file_.empty()) {
    history(library_->lines, &library_->event, H_SAVE, history_file_.c_str());
  }
}

std::string HistoryFile() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return std::string(state) + "/skein/history";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return {};
  return std::string(home) + "/.local/state/skein/history";
}

}  // namespace skein
