#include "apps/gguf/tokenizer_entries.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/gguf/gguf_tokenizer.h"
#include "apps/gguf/gguf_vocabulary.h"
#include "apps/read_file.h"
#include "base/json_numbers.h"
#include "text/tokenizer.h"

namespace skein {
namespace {

// The vocabulary is one large object. An ordered object would find its members by linear search.
using Tree = nlohmann::json;

constexpr char kTokenizerFile[] = "tokenizer.json",
               kTokenizerConfigFile[] = "tokenizer_config.json";
constexpr char kSpaceMark[] = "\u2581";

Status CannotSay(const std::string& part, const std::string& problem) {
  return Status(StatusCode::kUnsupported,
                std::string(kTokenizerFile) + ": '" + part + "' " + problem, part);
}

Result<Tree> ReadTree(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Tree tree = Tree::parse(WithReadableNumbers(text), nullptr, /*allow_exceptions=*/false);
  if (!tree.is_object())
    return Status(StatusCode::kInvalidArgument, path + " is not a JSON object");
  return tree;
}

std::string TextOf(const Tree& object, const char* member) {
  if (!object.is_object()) return "";
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool FlagOf(const Tree& object, const char* member, bool absent) {
  const auto found = object.find(member);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : absent;
}

Tree MemberOf(const Tree& object, const char* member) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(member);
  return found == object.end() ? Tree(nullptr) : *found;
}

// The steps of a normalizer or a pre-tokenizer, which may be a sequence, a single step or missing.
std::vector<Tree> StepsOf(const Tree& part, const char* list) {
  if (part.is_null()) return {};
  if (TextOf(part, "type") != "Sequence") return {part};
  std::vector<Tree> steps;
  for (const Tree& step : MemberOf(part, list)) {
    for (Tree& inner : StepsOf(step, list)) steps.push_back(std::move(inner));
  }
  return steps;
}

// The members that determine the cuts of a pre-tokenizer, as text. Equal texts mean equal cuts.
std::string CutsOf(const Tree& pre_tokenizer) {
  Tree cuts = Tree::array();
  for (const Tree& step : StepsOf(pre_tokenizer, "pretokenizers")) {
    const std::string type = TextOf(step, "type");
    if (type == "ByteLevel") {
      cuts.push_back(
          {type, FlagOf(step, "add_prefix_space", true), FlagOf(step, "use_regex", true)});
    } else if (type == "Split") {
      cuts.push_back({type, MemberOf(step, "pattern"), TextOf(step, "behavior"),
                      FlagOf(step, "invert", false)});
    } else if (type == "Digits") {
      cuts.push_back({type, FlagOf(step, "individual_digits", false)});
    } else {
      cuts.push_back(step);
    }
  }
  return cuts.dump(-1, ' ', false, Tree::error_handler_t::replace);
}

bool ComposesOnly(const std::vector<Tree>& normalizers) {
  return std::ranges::all_of(normalizers,
                             [](const Tree& step) { return TextOf(step, "type") == "NFC"; });
}

// The tokens in the order of their ids, with their types.
struct GgufVocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
};

Result<GgufVocabulary> GgufVocabularyOf(const Tree& tokenizer, int32_t size) {
  GgufVocabulary found = {std::vector<std::string>(size), std::vector<int32_t>(size, kGgufUnused)};
  const auto put = [&](const std::string& token, const Tree& id, GgufTokenType type) -> Status {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= size) {
      return Status(StatusCode::kInvalidArgument,
                    std::string(kTokenizerFile) + ": token '" + token + "' has the id " +
                        id.dump() + "; the model has " + std::to_string(size) + " rows",
                    "vocab");
    }
    const auto at = id.get<size_t>();
    found.tokens[at] = token;
    found.types[at] = type;
    return Status::Ok();
  };
  const Tree& model = tokenizer.at("model");
  const Tree tokens = MemberOf(model, "vocab");
  for (const auto& [token, id] : tokens.items()) {
    const bool is_byte = token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
    const bool byte_fallback = FlagOf(model, "byte_fallback", false);
    SKEIN_RETURN_IF_ERROR(put(token, id, is_byte && byte_fallback ? kGgufByte : kGgufNormal));
  }
  const std::string unknown = TextOf(model, "unk_token");
  for (const Tree& token : MemberOf(tokenizer, "added_tokens")) {
    const std::string content = TextOf(token, "content");
    for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
      if (FlagOf(token, flag, false)) {
        return CannotSay("added_tokens",
                         "has '" + content + "' with " + flag + ", which GGUF cannot say");
      }
    }
    const bool special = FlagOf(token, "special", false);
    SKEIN_RETURN_IF_ERROR(put(content, MemberOf(token, "id"),
                              !special             ? kGgufUserDefined
                              : content == unknown ? kGgufUnknown
                                                   : kGgufControl));
  }
  for (int32_t id = 0; id < size; ++id) {
    if (found.tokens[id].empty()) found.tokens[id] = "[PAD" + std::to_string(id) + "]";
  }
  return found;
}

// Reads the merges as pairs, in either of the two forms of tokenizer.json.
Result<std::vector<std::pair<std::string, std::string>>> ReadMerges(const Tree& model) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const Tree& merge : MemberOf(model, "merges")) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos) {
      return Status(StatusCode::kInvalidArgument,
                    std::string(kTokenizerFile) + ": 'merges' holds " + merge.dump(), "merges");
    }
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

Status AddByteLevel(const Tree& tokenizer, GgufEntries* entries) {
  const Tree& model = tokenizer.at("model");
  const auto normalizers = StepsOf(MemberOf(tokenizer, "normalizer"), "normalizers");
  const std::string cuts = CutsOf(MemberOf(tokenizer, "pre_tokenizer"));
  const GgufPreTokenizer* found = nullptr;
  std::string known;
  for (const GgufPreTokenizer& pre : GgufPreTokenizers()) {
    if (pre.num_separators > 0) continue;  // an encoder's
    known += (known.empty() ? "" : ", ") + std::string(pre.name);
    const bool same = CutsOf(Tree(pre.cuts())) == cuts && ComposesOnly(normalizers) &&
                      pre.composes == !normalizers.empty() &&
                      pre.ignores_merges == FlagOf(model, "ignore_merges", false);
    if (same && found == nullptr) found = &pre;
  }
  if (found == nullptr) {
    return CannotSay("pre_tokenizer", "with its normalizer is none that GGUF names: " + known);
  }
  SKEIN_ASSIGN_OR_RETURN(const auto pairs, ReadMerges(model));
  std::vector<std::string> merges;
  for (const auto& [left, right] : pairs) {
    if (left.find(' ') != std::string::npos || right.find(' ') != std::string::npos) {
      return CannotSay("merges", "holds a token with a space");
    }
    merges.push_back(left + " " + right);
  }
  entries->Text("tokenizer.ggml.model", "gpt2");
  entries->Text("tokenizer.ggml.pre", found->name);
  entries->Texts("tokenizer.ggml.merges", merges);
  return Status::Ok();
}

// Whether the normalizer replaces spaces by marks; *prepends tells whether it also puts a mark
// before the text. SentencePiece does not cut a text into words. So the pre-tokenizer may only
// split at spaces, of which the normalizer leaves none.
bool MarksSpaces(const Tree& tokenizer, bool* prepends) {
  const auto steps = StepsOf(MemberOf(tokenizer, "normalizer"), "normalizers");
  const auto is_replace = [](const Tree& step) {
    return TextOf(step, "type") == "Replace" && TextOf(step, "content") == kSpaceMark &&
           TextOf(MemberOf(step, "pattern"), "String") == " ";
  };
  const auto is_prepend = [](const Tree& step) {
    return TextOf(step, "type") == "Prepend" && TextOf(step, "prepend") == kSpaceMark;
  };
  for (const Tree& step : StepsOf(MemberOf(tokenizer, "pre_tokenizer"), "pretokenizers")) {
    const bool splits_spaces =
        TextOf(step, "type") == "Split" && TextOf(MemberOf(step, "pattern"), "String") == " ";
    if (!splits_spaces) return false;
  }
  *prepends = steps.size() == 2 && is_prepend(steps[0]);
  return (*prepends || steps.size() == 1) && is_replace(steps.back());
}

Status AddSentencePiece(const Tree& tokenizer, const GgufVocabulary& vocabulary,
                        GgufEntries* entries) {
  bool prepends = false;
  if (!MarksSpaces(tokenizer, &prepends)) {
    return CannotSay("normalizer",
                     "does more, or other, than to mark spaces as SentencePiece does");
  }
  SKEIN_ASSIGN_OR_RETURN(const auto merges, ReadMerges(tokenizer.at("model")));
  // A token's score falls with the position of its first merge. Tokens that no merge makes get the
  // lowest score.
  std::unordered_map<std::string, int64_t> place_of;
  for (const auto& [left, right] : merges) {
    place_of.emplace(left + right, static_cast<int64_t>(place_of.size()));
  }
  const std::vector<std::string_view> tokens(vocabulary.tokens.begin(), vocabulary.tokens.end());
  std::vector<float> scores;
  std::vector<double> exact;
  for (const std::string& token : vocabulary.tokens) {
    const auto place = place_of.find(token);
    const auto last = static_cast<int64_t>(place_of.size());
    scores.push_back(-static_cast<float>(place == place_of.end() ? last : place->second));
    exact.push_back(scores.back());
  }
  const std::vector<GgufMerge> again = MergesOfScores(tokens, exact);
  const auto same = [&](const GgufMerge& merge, const std::pair<std::string, std::string>& pair) {
    return tokens[merge.left] == pair.first && tokens[merge.right] == pair.second;
  };
  if (!std::ranges::equal(again, merges, same)) {
    return CannotSay("merges", "are not those that SentencePiece's scores give");
  }
  entries->Text("tokenizer.ggml.model", "llama");
  entries->Text("tokenizer.ggml.pre", "default");
  entries->F32s("tokenizer.ggml.scores", scores);
  entries->Bool("tokenizer.ggml.add_space_prefix", prepends);
  return Status::Ok();
}

// Adds whether the tokenizer puts BOS before a text and EOS behind it. Other tokens around a text
// are an error.
Status AddAround(const Tokenizer& tokenizer, std::optional<TokenId> bos, std::optional<TokenId> eos,
                 GgufEntries* entries) {
  std::vector<TokenId> plain, around;
  SKEIN_RETURN_IF_ERROR(tokenizer.Encode("a", false, &plain));
  SKEIN_RETURN_IF_ERROR(tokenizer.Encode("a", true, &around));
  const auto at = std::ranges::search(around, plain).begin();
  const std::vector<TokenId> before(around.begin(), at);
  const std::vector<TokenId> behind(at + std::min(std::ssize(plain), around.end() - at),
                                    around.end());
  const auto is = [](const std::vector<TokenId>& ids, std::optional<TokenId> token) {
    return ids.empty() || (ids.size() == 1 && token == ids[0]);
  };
  if (!is(before, bos) || !is(behind, eos)) {
    return CannotSay("post_processor", "adds other tokens than BOS and EOS");
  }
  entries->Bool("tokenizer.ggml.add_bos_token", !before.empty());
  entries->Bool("tokenizer.ggml.add_eos_token", !behind.empty());
  return Status::Ok();
}

// Adds BOS, EOS and further end tokens. The tokenizer's EOS comes first if generation ends there,
// too.
Status AddSpecialTokens(const Tokenizer& tokenizer, const ModelConfig& config,
                        const std::string& unknown, GgufEntries* entries) {
  const auto add = [&](const char* key, std::optional<TokenId> id) {
    if (id) entries->U32(key, static_cast<uint32_t>(*id));
  };
  std::optional<TokenId> bos = tokenizer.bos_id(), eos = tokenizer.eos_id();
  if (!bos) bos = config.bos_token_id;
  std::vector<int32_t> ends = config.eos_token_ids;
  const auto own = std::ranges::find(ends, eos.value_or(-1));
  if (own != ends.end()) std::iter_swap(ends.begin(), own);
  if (ends.empty() && eos) ends.push_back(*eos);
  if (!ends.empty()) eos = ends[0];
  constexpr const char* kEnds[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                   "tokenizer.ggml.eom_token_id"};
  if (ends.size() > std::size(kEnds)) {
    return Status(
        StatusCode::kUnsupported,
        "'eos_token_id' has " + std::to_string(ends.size()) + " tokens; GGUF has places for 3",
        "eos_token_id");
  }
  add("tokenizer.ggml.bos_token_id", bos);
  for (size_t i = 0; i < ends.size(); ++i) add(kEnds[i], ends[i]);
  add("tokenizer.ggml.padding_token_id", tokenizer.pad_id());
  if (!unknown.empty()) add("tokenizer.ggml.unknown_token_id", tokenizer.TokenToId(unknown));
  return AddAround(tokenizer, bos, eos, entries);
}

// The source of the chat template as ChatTemplate::Load finds it; empty: none.
std::string ChatTemplateOf(const std::string& dir) {
  const Result<std::string> file = ReadFile(dir + "/chat_template.jinja");
  if (file.ok()) return file.value();
  const Result<Tree> config = ReadTree(dir + "/" + kTokenizerConfigFile);
  if (!config.ok()) return "";
  const Tree found = MemberOf(config.value(), "chat_template");
  if (found.is_string()) return found.get<std::string>();
  for (const Tree& named : found) {
    if (TextOf(named, "name") == "default") return TextOf(named, "template");
  }
  return "";
}

}  // namespace

Status AddTokenizerEntries(const std::string& dir, const ModelConfig& config,
                           GgufEntries* entries) {
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(dir));
  SKEIN_ASSIGN_OR_RETURN(const Tree tree, ReadTree(dir + "/" + kTokenizerFile));
  const Tree model = MemberOf(tree, "model");
  if (TextOf(model, "type") != "BPE") {
    return CannotSay("model", "has the type " + TextOf(model, "type") + "; GGUF is written of BPE");
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!TextOf(model, affix).empty()) return CannotSay(affix, "is there, which GGUF cannot say");
  }
  SKEIN_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                         GgufVocabularyOf(tree, config.vocab_size));
  if (FlagOf(model, "byte_fallback", false)) {
    SKEIN_RETURN_IF_ERROR(AddSentencePiece(tree, vocabulary, entries));
  } else {
    SKEIN_RETURN_IF_ERROR(AddByteLevel(tree, entries));
  }
  entries->Texts("tokenizer.ggml.tokens", vocabulary.tokens);
  entries->I32s("tokenizer.ggml.token_type", vocabulary.types);
  SKEIN_RETURN_IF_ERROR(AddSpecialTokens(*tokenizer, config, TextOf(model, "unk_token"), entries));
  const std::string chat_template = ChatTemplateOf(dir);
  if (!chat_template.empty()) entries->Text("tokenizer.chat_template", chat_template);
  return Status::Ok();
}

}  // namespace skein
