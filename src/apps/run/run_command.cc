#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/blocked_signals.h"
#include "apps/commands.h"
#include "apps/decide/local_client.h"
#include "apps/decide/request_file.h"
#include "apps/host/help.h"
#include "apps/host/model_host.h"
#include "apps/run/answer_printer.h"
#include "apps/run/chat_console.h"
#include "apps/run/dialogue.h"
#include "apps/run/generation_options.h"

namespace skein {
namespace {

constexpr int kInterruptedStatus = 128 + SIGINT;

struct RunOptions {
  ModelHostOptions model;
  std::vector<std::string> words;     // the arguments TEXT
  std::optional<std::string> prompt;  // --prompt
  bool chat = false;
  std::string system;
  std::string input_json;
  GenerationOptions generation;
};

Dialogue MakeDialogue(const RunOptions& options, const ModelHost& host) {
  return Dialogue(&host.entry(), RequestFields(options.generation), options.system);
}

Status EmptyInput() {
  return Status(StatusCode::kInvalidArgument,
                "the text is empty: give one behind MODEL, with --prompt or on standard input, or "
                "start from a terminal to chat");
}

// The words joined by spaces or, without words, standard input without its last line end.
Result<std::string> ReadText(const RunOptions& options) {
  std::string text;
  if (options.words.empty()) {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
  }
  for (const std::string& word : options.words) text += (text.empty() ? "" : " ") + word;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return EmptyInput();
  return text;
}

Status CheckChat(const ModelHost& host) {
  if (host.chat_template() != nullptr) return Status::Ok();
  return Status(
      StatusCode::kInvalidArgument,
      "the model " + host.name() + " has no chat template: give one with --chat-template");
}

// Continues the text of --prompt as it is, without a chat.
Status Continue(const RunOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host, ModelHost::Load(options.model));
  LocalClient client(&host->entry());
  Json body = RequestFields(options.generation);
  body["prompt"] = *options.prompt;
  SKEIN_RETURN_IF_ERROR(client.Submit(body));
  const auto answers = client.Wait([](size_t, const std::string& text) { PrintPiece(text); });
  EndAnswer();
  return answers.front().status;
}

// Asks one text, as a chat message if the model has a template.
Status AskOnce(const RunOptions& options, const std::string& text) {
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host, ModelHost::Load(options.model));
  if (options.chat || !options.system.empty()) SKEIN_RETURN_IF_ERROR(CheckChat(*host));
  Dialogue dialogue = MakeDialogue(options, *host);
  SKEIN_RETURN_IF_ERROR(dialogue.Ask(text, &PrintPiece).status());
  EndAnswer();
  return Status::Ok();
}

// Reads the user's turns from standard input, one per line. An empty line or the end of the input
// ends the chat.
Status ChatWithLines(const RunOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host, ModelHost::Load(options.model));
  SKEIN_RETURN_IF_ERROR(CheckChat(*host));
  Dialogue dialogue = MakeDialogue(options, *host);
  bool asked = false;
  std::string line;
  while (std::getline(std::cin, line) && !line.empty()) {
    SKEIN_RETURN_IF_ERROR(dialogue.Ask(line, &PrintPiece).status());
    EndAnswer();
    asked = true;
  }
  return asked ? Status::Ok() : EmptyInput();
}

Status ChatOnTerminal(const RunOptions& options) {
  const BlockedSignals interrupts({SIGINT});
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host,
                         LoadUnlessStopped(options.model, interrupts, kInterruptedStatus));
  if (options.chat || !options.system.empty()) SKEIN_RETURN_IF_ERROR(CheckChat(*host));
  Dialogue dialogue = MakeDialogue(options, *host);
  ChatConsole(&dialogue, &interrupts, host->name()).Run();
  return Status::Ok();
}

Status RunFile(const RunOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const Json requests, ReadRequestFile(options.input_json));
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host, ModelHost::Load(options.model));
  return AnswerRequests(requests, RequestFields(options.generation), host->entry());
}

Status RunModel(const RunOptions& options) {
  if (!options.input_json.empty()) return RunFile(options);
  if (options.prompt && !options.chat) return Continue(options);
  if (options.prompt) return AskOnce(options, *options.prompt);
  if (options.words.empty() && isatty(STDIN_FILENO) != 0) return ChatOnTerminal(options);
  if (options.words.empty() && options.chat) return ChatWithLines(options);
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadText(options));
  return AskOnce(options, text);
}

// Adds the options for the text that is asked.
void AddTextOptions(CLI::App* command, RunOptions* o) {
  auto* text = command->add_option(
      "TEXT", o->words,
      "The question; a model without a chat template continues it. Default: standard input, which "
      "on a terminal is a conversation");
  auto* prompt = command->add_option("--prompt", o->prompt,
                                     "A text to continue as it is; with --chat: a message");
  auto* chat = command->add_flag(
      "--chat", o->chat,
      "Refuse a model without a chat template; lines of standard input are turns");
  auto* system = command->add_option("--system", o->system, "System message of the chat");
  auto* file = command->add_option("--input-json", o->input_json,
                                   "A JSON array of requests in the API's spelling");
  text->excludes(prompt)->excludes(file);
  prompt->excludes(file);
  chat->excludes(file);
  system->excludes(file);
}

}  // namespace

void AddRunCommand(CLI::App* app, int* exit_status) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app->add_subcommand("run", "Chat, ask once, continue a text, answer a file");
  AddModelHostOptions(command, &options->model);
  AddTextOptions(command, options.get());
  AddGenerationOptions(command, &options->generation);
  {
    const HelpGroup group(command, "Observing");
    command->add_flag("--trace", options->model.trace,
                      "One line per scheduler iteration on standard error");
  }
  NameEnvironment(command);
  ShowFirst(command, {"--prompt", "--chat", "--system", "--max-tokens", "--temperature", "--seed",
                      "--input-json", "--ignore-eos", "--quantization", "--threads"});
  command->callback([options, exit_status] {
    if (options->prompt && !options->chat && !options->system.empty()) {
      std::fputs("skein run: --system beside --prompt needs --chat\n", stderr);
      *exit_status = 2;
      return;
    }
    spdlog::set_level(spdlog::level::warn);
    options->model.show_progress = isatty(STDERR_FILENO) != 0;
    const Status status = RunModel(*options);
    if (status.ok()) return;
    std::fprintf(stderr, "skein run: %s\n", status.message().c_str());
    *exit_status = 1;
  });
}

}  // namespace skein
