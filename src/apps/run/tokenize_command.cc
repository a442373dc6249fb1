#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/host/decision_model_traits.h"
#include "apps/model/model_cache.h"
#include "text/tokenizer.h"

namespace skein {
namespace {

struct TokenizeOptions {
  std::string model;  // any name that FindModelDir accepts
  bool special = false;
  bool decode = false;
  bool full = false;
};

// Reads a truncation: {"max_length": n, "strategy": "longest_first", "direction": "right"}.
Result<Truncation> ReadTruncation(const nlohmann::json& in) {
  const Status wanted(
      StatusCode::kInvalidArgument,
      "wanted {\"truncation\": {\"max_length\": number, \"strategy\": longest_first, "
      "only_first or only_second, \"direction\": right or left}}");
  if (!in.is_object() || !in.contains("max_length") || !in["max_length"].is_number_unsigned()) {
    return wanted;
  }
  Truncation truncation;
  truncation.max_length = in["max_length"].get<size_t>();
  const auto strategy = in.value<nlohmann::json>("strategy", "longest_first");
  const auto direction = in.value<nlohmann::json>("direction", "right");
  if (strategy == "only_first") {
    truncation.strategy = Truncation::Strategy::kOnlyFirst;
  } else if (strategy == "only_second") {
    truncation.strategy = Truncation::Strategy::kOnlySecond;
  } else if (strategy != "longest_first") {
    return wanted;
  }
  if (direction == "left") {
    truncation.direction = Truncation::Direction::kLeft;
  } else if (direction != "right") {
    return wanted;
  }
  return truncation;
}

// Answers {"text": .., "pair": .., "truncation": ..} with {"ids": .., "type_ids": .., "offsets":
// ..}; "pair" and "truncation" may be left out. An impossible truncation gives {"error": ..}.
Status EncodeFullLine(const Tokenizer& tokenizer, bool special, const nlohmann::json& in,
                      nlohmann::json* out) {
  if (!in.is_object() || !in.contains("text") || !in["text"].is_string() ||
      (in.contains("pair") && !in["pair"].is_string())) {
    return Status(StatusCode::kInvalidArgument, "wanted {\"text\": string, \"pair\": string}");
  }
  EncodeInput input{in["text"].get_ref<const std::string&>(), std::nullopt};
  if (in.contains("pair")) input.pair = in["pair"].get_ref<const std::string&>();
  EncodeOptions options{special, /*with_offsets=*/true, std::nullopt};
  if (in.contains("truncation")) {
    SKEIN_ASSIGN_OR_RETURN(options.truncation, ReadTruncation(in["truncation"]));
  }
  Encoding encoding;
  const Status status = tokenizer.EncodeFull(input, options, &encoding);
  if (!status.ok() && options.truncation) {
    (*out)["error"] = status.message();
    return Status::Ok();
  }
  SKEIN_RETURN_IF_ERROR(status);
  (*out)["ids"] = encoding.ids;
  (*out)["type_ids"] = encoding.type_ids;
  nlohmann::json offsets = nlohmann::json::array();
  for (const TokenOffsets& span : encoding.offsets) offsets.push_back({span.begin, span.end});
  (*out)["offsets"] = std::move(offsets);
  return Status::Ok();
}

// Answers {"text": ..} with {"ids": [..]}.
Status EncodeLine(const Tokenizer& tokenizer, bool special, const nlohmann::json& in,
                  nlohmann::json* out) {
  if (!in.is_object() || !in.contains("text") || !in["text"].is_string()) {
    return Status(StatusCode::kInvalidArgument, "wanted {\"text\": string}");
  }
  std::vector<TokenId> ids;
  SKEIN_RETURN_IF_ERROR(tokenizer.Encode(in["text"].get_ref<const std::string&>(), special, &ids));
  (*out)["ids"] = ids;
  return Status::Ok();
}

// Answers {"ids": [..]} with {"text": ..}.
Status DecodeLine(const Tokenizer& tokenizer, const nlohmann::json& in, nlohmann::json* out) {
  const Status wanted(
      StatusCode::kInvalidArgument,
      "wanted {\"ids\": array of token ids below " + std::to_string(tokenizer.vocab_size()) + "}");
  if (!in.is_object() || !in.contains("ids") || !in["ids"].is_array()) return wanted;
  std::vector<TokenId> ids;
  for (const nlohmann::json& id : in["ids"]) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= uint64_t(tokenizer.vocab_size())) {
      return wanted;
    }
    ids.push_back(id.get<TokenId>());
  }
  (*out)["text"] = tokenizer.Decode(ids, /*skip_special_tokens=*/false);
  return Status::Ok();
}

int RunTokenize(const TokenizeOptions& options) {
  // A directory need not have a config.json: a tokenizer is enough.
  const Result<std::string> dir = std::filesystem::is_directory(options.model)
                                      ? Result<std::string>(options.model)
                                      : FindModelDir(options.model);
  Result<std::unique_ptr<Tokenizer>> tokenizer =
      dir.ok() ? Tokenizer::Load(TokenizerDirOf(dir.value()))
               : Result<std::unique_ptr<Tokenizer>>(dir.status());
  if (!tokenizer.ok()) {
    std::cerr << "skein tokenize: " << tokenizer.status().message() << "\n";
    return 1;
  }
  std::ios::sync_with_stdio(false);
  int64_t line_number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++line_number;
    const nlohmann::json in = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    nlohmann::json out;
    Status status = in.is_discarded()
                        ? Status(StatusCode::kInvalidArgument, "not a JSON value in UTF-8")
                    : options.decode ? DecodeLine(**tokenizer, in, &out)
                    : options.full   ? EncodeFullLine(**tokenizer, options.special, in, &out)
                                     : EncodeLine(**tokenizer, options.special, in, &out);
    if (!status.ok()) {
      std::cout.flush();
      std::cerr << "skein tokenize: line " << line_number << ": " << status.message() << "\n";
      return 1;
    }
    std::cout << out.dump() << '\n';
  }
  std::cout.flush();
  return std::cout ? 0 : 1;
}

}  // namespace

void AddTokenizeCommand(CLI::App* app, int* exit_status) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command =
      app->add_subcommand("tokenize", "Turn lines {\"text\": ..} into {\"ids\": [..]}, or back");
  command
      ->add_option("MODEL", options->model,
                   "A directory with tokenizer.json, a GGUF file, a fetched model, or org/name in "
                   "the local cache")
      ->required();
  CLI::Option* special = command->add_flag("--special", options->special,
                                           "Add the special tokens that a prompt begins with");
  CLI::Option* decode =
      command->add_flag("--decode", options->decode, "Turn {\"ids\": [..]} into {\"text\": ..}")
          ->excludes(special);
  command
      ->add_flag("--full", options->full,
                 "Give type ids and offsets, too; lines may have a \"pair\" and a \"truncation\"")
      ->excludes(decode);
  command->callback([options, exit_status] { *exit_status = RunTokenize(*options); });
}

}  // namespace skein
