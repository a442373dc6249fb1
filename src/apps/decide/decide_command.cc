#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "apps/commands.h"
#include "apps/decide/answer_file.h"
#include "apps/decide/decide_lines.h"
#include "apps/host/help.h"
#include "apps/host/model_choices.h"
#include "apps/host/model_host.h"
#include "apps/read_file.h"
#include "server/decisions/decision_method_names.h"
#include "server/local_routes.h"

namespace skein {
namespace {

struct DecideOptions {
  ModelHostOptions model;
  std::string questions;
  std::string input;
  std::string output;
  int32_t window = 32;
};

// A text that is equal for two runs with the same questions and the same model: the questions, the
// name, size and time of the model's files, and the options that change answers.
Result<std::string> FingerprintOf(const DecideOptions& options, const DecideQuestions& questions,
                                  const ModelHost& host) {
  const ModelHostOptions& model = options.model;
  DecisionMethod method;
  if (model.decision_reading) SetReading(*model.decision_reading, &method);
  const std::string reading = model.decision_reading ? ReadingName(method) : "";
  const std::string_view prompt = model.decision_prompt ? NameOf(*model.decision_prompt) : "";
  std::string all = fmt::format("{}\n{}\n{} {} {} {} {}\n", questions.path,
                                DumpJson(questions.body), NameOf(model.dtype),
                                NameOf(model.quantization), reading, prompt, model.chat_template);
  for (const std::string& dir : {host.model_dir(), host.decision_dir()}) {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (!entry.is_regular_file()) continue;
      files.insert(fmt::format("{} {} {}\n", entry.path().filename().string(), entry.file_size(),
                               entry.last_write_time().time_since_epoch().count()));
    }
    for (const std::string& file : files) all += file;
  }
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  return fmt::format("skein decide {:016x}{:016x}", hash.high64, hash.low64);
}

Status WriteOut(const std::string& line) {
  std::cout << line << std::flush;
  if (std::cout) return Status::Ok();
  return {StatusCode::kInvalidArgument, "output: the answers could not be written", "output"};
}

// A line on stderr that counts answers, if stderr is a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(int64_t skipped) : skipped_(skipped) {}
  ~ProgressLine() {
    if (drawn_) std::fputs("\n", stderr);
  }

  void Show(const DecideProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    std::fputs(fmt::format("\r{} answered, {} failed, {:.1f} per second ",
                           skipped_ + progress.answered, progress.failed,
                           static_cast<double>(progress.answered) / std::max(seconds, 1e-9))
                   .c_str(),
               stderr);
    drawn_ = true;
  }

 private:
  const int64_t skipped_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_ = begin_;
  bool drawn_ = false;
};

// Returns the exit status: 0 if every line was answered without an error.
Result<int> RunDecide(const DecideOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.questions));
  SKEIN_ASSIGN_OR_RETURN(const DecideQuestions questions, ParseDecideQuestions(text));
  std::ifstream input;
  if (!options.input.empty()) {
    input.open(options.input, std::ios::binary);
    if (!input) {
      return Status(StatusCode::kNotFound, "input: " + options.input + " cannot be read", "input");
    }
  }
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host, ModelHost::Load(options.model));
  // The output is opened only after everything else has been checked.
  std::optional<AnswerFile> file;
  int64_t skip = 0;
  if (!options.output.empty()) {
    SKEIN_ASSIGN_OR_RETURN(const std::string fingerprint, FingerprintOf(options, questions, *host));
    SKEIN_ASSIGN_OR_RETURN(file, AnswerFile::Open(options.output, fingerprint));
    skip = file->num_lines();
    if (skip > 0) fmt::print(stderr, "{} holds {} answers; going on\n", options.output, skip);
  }
  Status written = Status::Ok();
  DecideProgress done;
  {
    LocalRoutes routes(RegistryOf(*host));
    ProgressLine progress(skip);
    // The engine's queue must hold all questions of all lines that are asked at once.
    const auto per_line = static_cast<int32_t>(questions.body["questions"].size());
    const int32_t window =
        std::clamp(options.model.max_queued_requests / std::max(per_line, 1), 1, options.window);
    done = DecideLines(
        options.input.empty() ? std::cin : input, skip, window, questions,
        [&](std::string body, std::function<void(HttpResponse)> answered) {
          routes.Post(questions.path, std::move(body), std::move(answered));
        },
        [&](const std::string& line) {
          written = file ? file->Append(line) : WriteOut(line);
          return written.ok();
        },
        [&](const DecideProgress& now) { progress.Show(now); });
  }
  host->Shutdown(kShutdownUs);
  SKEIN_RETURN_IF_ERROR(written);
  return done.failed == 0 ? 0 : 1;
}

}  // namespace

void AddDecideCommand(CLI::App* app, int* exit_status) {
  auto options = std::make_shared<DecideOptions>();
  CLI::App* command = app->add_subcommand(
      "decide",
      "Answer typed questions about many inputs, one JSON value a line, without a server");
  AddModelHostOptions(command, &options->model);
  command
      ->add_option("--questions", options->questions,
                   "A JSON file: the questions of /v1/decisions or /v1/systemone")
      ->required();
  command->add_option("--input", options->input, "One JSON value a line; default: standard input");
  command->add_option("--output", options->output,
                      "Answers are appended here, behind those it already holds, whose inputs are "
                      "skipped; default: standard output");
  command->add_option("--window", options->window, "Inputs worked on at once, at most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  ShowFirst(command,
            {"--questions", "--input", "--output", "--window", "--decision-reading",
             "--decision-prompt", "--scheduling", "--quantization", "--threads", "--memory"});
  command->callback([options, exit_status] {
    const Result<int> result = RunDecide(*options);
    if (result.ok()) {
      *exit_status = result.value();
      return;
    }
    std::fprintf(stderr, "skein decide: %s\n", result.status().message().c_str());
    *exit_status = 1;
  });
}

}  // namespace skein
