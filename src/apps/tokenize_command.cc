#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "text/tokenizer.h"

namespace skein {
namespace {

struct TokenizeOptions {
  std::string model_dir;
  bool special = false;
  bool decode = false;
};

// {"text": ..} -> {"ids": [..]}.
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

// {"ids": [..]} -> {"text": ..}.
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
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(options.model_dir);
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
  command->add_option("DIR", options->model_dir, "Model directory with tokenizer.json")
      ->required()
      ->check(CLI::ExistingDirectory);
  CLI::Option* special = command->add_flag("--special", options->special,
                                           "Add the special tokens that a prompt begins with");
  command->add_flag("--decode", options->decode, "Turn {\"ids\": [..]} into {\"text\": ..}")
      ->excludes(special);
  command->callback([options, exit_status] { *exit_status = RunTokenize(*options); });
}

}  // namespace skein
