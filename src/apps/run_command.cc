#include <spdlog/spdlog.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/local_client.h"
#include "apps/model_host.h"
#include "apps/read_file.h"

namespace skein {
namespace {

struct RunOptions {
  ModelHostOptions model;
  std::string prompt;
  bool chat = false;
  std::string system;
  std::string input_json;
  std::optional<int32_t> max_tokens;
  std::optional<double> temperature, top_p, min_p;
  std::optional<int32_t> top_k;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kCancelled:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

// The sampling options as the members of a request.
Json RequestBody(const RunOptions& options) {
  Json body = Json::object();
  if (options.max_tokens) body["max_tokens"] = *options.max_tokens;
  if (options.temperature) body["temperature"] = *options.temperature;
  if (options.top_p) body["top_p"] = *options.top_p;
  if (options.min_p) body["min_p"] = *options.min_p;
  if (options.top_k) body["top_k"] = *options.top_k;
  if (options.seed) body["seed"] = *options.seed;
  if (!options.stop.empty()) body["stop"] = options.stop;
  if (options.ignore_eos) body["ignore_eos"] = true;
  return body;
}

void PrintText(size_t, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Status RunPrompt(const RunOptions& options, const ModelHost& host) {
  LocalClient client(&host.entry());
  Json body = RequestBody(options);
  body["prompt"] = options.prompt;
  SKEIN_RETURN_IF_ERROR(client.Submit(body));
  const auto answers = client.Wait(PrintText);
  std::printf("\n");
  return answers.front().status;
}

// Lines of standard input are the user's turns; an empty line or its end leaves.
Status RunChat(const RunOptions& options, const ModelHost& host) {
  Json messages = Json::array();
  if (!options.system.empty())
    messages.push_back({{"role", "system"}, {"content", options.system}});
  std::string line;
  while (std::fputs("> ", stderr), std::getline(std::cin, line) && !line.empty()) {
    messages.push_back({{"role", "user"}, {"content", line}});
    LocalClient client(&host.entry());
    Json body = RequestBody(options);
    body["messages"] = messages;
    SKEIN_RETURN_IF_ERROR(client.Submit(body));
    const auto answers = client.Wait(PrintText);
    std::printf("\n");
    SKEIN_RETURN_IF_ERROR(answers.front().status);
    messages.push_back({{"role", "assistant"}, {"content", answers.front().texts.front()}});
  }
  return Status::Ok();
}

// The file's requests run together; one line of JSON for each answer, in order.
Status RunFile(const RunOptions& options, const ModelHost& host) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.input_json));
  std::string why;
  const auto requests = ParseJson(text, &why);
  if (!requests.has_value()) {
    return Status(StatusCode::kInvalidArgument,
                  options.input_json + " is not JSON that can be taken: " + why);
  }
  if (!requests->is_array() || requests->empty()) {
    return Status(StatusCode::kInvalidArgument,
                  options.input_json +
                      " must hold a JSON array of requests, each with a prompt or "
                      "messages and the fields of /v1/completions");
  }
  LocalClient client(&host.entry());
  const Json defaults = RequestBody(options);
  for (size_t i = 0; i < requests->size(); ++i) {
    Json body = (*requests)[i];
    if (body.is_object()) {
      for (const auto& [name, value] : defaults.items())
        if (!body.contains(name)) body[name] = value;
    }
    const Status status = client.Submit(body);
    if (!status.ok())
      return Status(status.code(), "request " + std::to_string(i) + ": " + status.message());
  }
  size_t index = 0;
  Status first_error;
  for (const LocalAnswer& answer : client.Wait()) {
    if (!answer.status.ok() && first_error.ok()) first_error = answer.status;
    Json line;
    line["index"] = index++;
    line["choices"] = Json::array();
    for (size_t i = 0; i < answer.texts.size(); ++i) {
      line["choices"].push_back({{"text", answer.texts[i]},
                                 {"token_ids", answer.tokens[i]},
                                 {"finish_reason", NameOf(answer.finish[i])}});
    }
    line["prompt_tokens"] = answer.prompt_tokens;
    line["cached_tokens"] = answer.cached_tokens;
    std::printf("%s\n", DumpJson(line).c_str());
  }
  return first_error;
}

Status Run(const RunOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host, ModelHost::Load(options.model));
  if (options.chat) return RunChat(options, *host);
  if (!options.input_json.empty()) return RunFile(options, *host);
  return RunPrompt(options, *host);
}

}  // namespace

void AddRunCommand(CLI::App* app, int* exit_status) {
  auto options = std::make_shared<RunOptions>();
  options->model.show_progress = false;
  CLI::App* command = app->add_subcommand("run", "Continue a text, chat, or answer a file");
  AddModelHostOptions(command, &options->model);
  command->add_flag("--trace", options->model.trace,
                    "One line per scheduler iteration on standard error");
  auto* prompt = command->add_option("--prompt", options->prompt, "The text to continue");
  auto* chat =
      command->add_flag("--chat", options->chat, "Chat: lines of standard input are turns");
  command->add_option("--system", options->system, "System message of --chat")->needs(chat);
  auto* file = command->add_option("--input-json", options->input_json,
                                   "A JSON array of requests in the API's spelling");
  prompt->excludes(chat)->excludes(file);
  chat->excludes(file);
  command->add_option("--max-tokens", options->max_tokens, "Tokens at most; default: what fits");
  command->add_option("--temperature", options->temperature, "0: the most likely token");
  command->add_option("--top-p", options->top_p, "Keep the most likely tokens of this mass");
  command->add_option("--top-k", options->top_k, "Keep so many of the most likely tokens");
  command->add_option("--min-p", options->min_p, "Drop tokens below this share of the likeliest");
  command->add_option("--seed", options->seed, "Seed of the draws");
  command->add_option("--stop", options->stop, "Stop strings")->expected(1, 16);
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on after the end-of-text token");
  NameEnvironment(command);
  command->callback([options, exit_status] {
    // Standard output carries the answer alone.
    spdlog::set_level(spdlog::level::warn);
    const Status status = Run(*options);
    if (status.ok()) return;
    std::fprintf(stderr, "skein run: %s\n", status.message().c_str());
    *exit_status = 1;
  });
}

}  // namespace skein
