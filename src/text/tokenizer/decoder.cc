#include "text/tokenizer/decoder.h"

#include <optional>
#include <utility>

#include "text/unicode/utf8.h"

namespace skein {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte of a token <0xNN>. Like the reference's number parser, it accepts a plus sign.
std::optional<char> ByteOfToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  const int high = token[3] == '+' ? 0 : HexValue(token[3]);
  const int low = HexValue(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

bool IsOneCharacter(std::string_view text) {
  if (text.empty()) return false;
  size_t pos = 0;
  NextCodePoint(text, &pos);
  return pos == text.size();
}

void ReplaceAll(std::string_view text, std::string_view from, std::string_view to,
                std::string* out) {
  size_t pos = 0;
  for (size_t found; (found = text.find(from, pos)) != std::string_view::npos;
       pos = found + from.size()) {
    out->append(text.substr(pos, found - pos)).append(to);
  }
  out->append(text.substr(pos));
}

// Applies a rule to a token. Decoding cannot fail: if the regular expression engine gives up, the
// token stays unchanged.
std::string Replaced(const ReplaceRule& rule, std::string_view token) {
  std::string out;
  if (!rule.Apply(token, &out).ok()) return std::string(token);
  return out;
}

// Makes the replacements that the reference makes in each token, in its order.
std::string CleanedUp(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) {
    std::string cleaned;
    ReplaceAll(text, from, to, &cleaned);
    text = std::move(cleaned);
  }
  return text;
}

std::string WordPieceText(const Decoder::WordPiece& step, bool is_first, std::string_view token) {
  std::string text;
  if (is_first) {
    text = token;
  } else if (token.starts_with(step.prefix)) {
    text = token.substr(step.prefix.size());
  } else {
    text.append(" ").append(token);
  }
  return step.cleanup ? CleanedUp(std::move(text)) : text;
}

}  // namespace

Result<Decoder> Decoder::Create(std::vector<Step> steps) {
  Decoder decoder;
  const auto refuse = [](const char* what) {
    return Status(StatusCode::kUnsupported,
                  std::string("tokenizer.json: decoder: ") + what +
                      " behind a step that joins all tokens is not supported");
  };
  bool fused = false;
  for (const Step& step : steps) {
    decoder.fused_.push_back(fused);
    if (const auto* rule = std::get_if<ReplaceRule>(&step)) {
      if (fused && (rule->regex || !IsOneCharacter(rule->literal))) {
        return refuse("Replace of more than one character");
      }
    } else if (std::holds_alternative<ByteLevel>(step)) {
      if (fused) return refuse("ByteLevel");
      fused = true;
    } else if (std::holds_alternative<ByteFallback>(step)) {
      if (fused) return refuse("ByteFallback");
    } else if (std::holds_alternative<Metaspace>(step)) {
      if (fused) return refuse("Metaspace");
    } else if (std::holds_alternative<WordPiece>(step)) {
      if (fused) return refuse("WordPiece");
    } else if (std::holds_alternative<Fuse>(step)) {
      fused = true;
    }
  }
  decoder.steps_ = std::move(steps);
  return decoder;
}

Decoder Decoder::Joining() {
  Decoder decoder;
  decoder.joins_ = true;
  return decoder;
}

Decoder::State Decoder::NewState() const {
  State state;
  state.steps_.resize(steps_.size());
  return state;
}

void Decoder::Push(std::string_view token, State* state, std::string* out) const {
  if (joins_ && state->num_tokens_ > 0) out->push_back(' ');
  ++state->num_tokens_;
  Feed(0, std::string(token), state, out);
}

void Decoder::Finish(State* state, std::string* out) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (std::holds_alternative<ByteFallback>(steps_[i])) {
      FlushByteFallback(i, state, out);
    } else if (std::holds_alternative<ByteLevel>(steps_[i])) {
      std::string text;
      AppendUtf8Lossy(state->steps_[i].pending, &text);
      if (!text.empty()) Feed(i + 1, std::move(text), state, out);
    }
  }
  *state = NewState();
}

// Ends a run of bytes: the whole run is valid text, or each of its bytes becomes U+FFFD.
void Decoder::FlushByteFallback(size_t step, State* state, std::string* out) const {
  const std::string bytes = std::move(state->steps_[step].pending);
  state->steps_[step].pending.clear();
  if (bytes.empty()) return;
  if (IsValidUtf8(bytes)) {
    Feed(step + 1, bytes, state, out);
    return;
  }
  for (size_t i = 0; i < bytes.size(); ++i) Feed(step + 1, "\xEF\xBF\xBD", state, out);
}

void Decoder::Feed(size_t i, std::string token, State* state, std::string* out) const {
  if (i == steps_.size()) {
    out->append(token);
    return;
  }
  State::StepState& memory = state->steps_[i];
  const Step& step = steps_[i];
  if (const auto* rule = std::get_if<ReplaceRule>(&step)) {
    Feed(i + 1, Replaced(*rule, token), state, out);
  } else if (std::holds_alternative<ByteLevel>(step)) {
    memory.pending += alphabet_.Unmap(token).value_or(token);
    const size_t whole = memory.pending.size() - IncompleteSuffixBytes(memory.pending);
    std::string text;
    AppendUtf8Lossy(std::string_view(memory.pending).substr(0, whole), &text);
    memory.pending.erase(0, whole);
    if (!text.empty()) Feed(i + 1, std::move(text), state, out);
  } else if (std::holds_alternative<ByteFallback>(step)) {
    if (const std::optional<char> byte = ByteOfToken(token)) {
      memory.pending.push_back(*byte);
      return;
    }
    FlushByteFallback(i, state, out);
    Feed(i + 1, std::move(token), state, out);
  } else if (std::holds_alternative<Fuse>(step)) {
    Feed(i + 1, std::move(token), state, out);
  } else if (const auto* strip = std::get_if<Strip>(&step)) {
    State::StepState of_token;
    State::StepState& progress = fused_[i] ? memory : of_token;
    std::string_view rest = token;
    while (!progress.done && progress.count < strip->start && rest.starts_with(strip->content)) {
      rest.remove_prefix(strip->content.size());
      ++progress.count;
    }
    if (!rest.empty()) progress.done = true;
    Feed(i + 1, std::string(rest), state, out);
  } else if (const auto* word_piece = std::get_if<WordPiece>(&step)) {
    Feed(i + 1, WordPieceText(*word_piece, memory.count++ == 0, token), state, out);
  } else {
    const auto& metaspace = std::get<Metaspace>(step);
    const bool is_first = memory.count++ == 0;
    std::string text;
    ReplaceAll(token, metaspace.replacement, is_first && metaspace.drop_in_first ? "" : " ", &text);
    Feed(i + 1, std::move(text), state, out);
  }
}

std::string Decoder::TokenBytes(std::string_view token) const {
  std::string bytes(token);
  for (const Step& step : steps_) {
    if (const auto* rule = std::get_if<ReplaceRule>(&step)) {
      bytes = Replaced(*rule, bytes);
    } else if (std::holds_alternative<ByteLevel>(step)) {
      bytes = alphabet_.Unmap(bytes).value_or(bytes);
    } else if (std::holds_alternative<ByteFallback>(step)) {
      if (const std::optional<char> byte = ByteOfToken(bytes)) return std::string(1, *byte);
    } else if (const auto* metaspace = std::get_if<Metaspace>(&step)) {
      std::string text;
      ReplaceAll(bytes, metaspace->replacement, " ", &text);
      bytes = std::move(text);
    } else if (const auto* word_piece = std::get_if<WordPiece>(&step)) {
      bytes = WordPieceText(*word_piece, false, bytes);
    }
  }
  return bytes;
}

}  // namespace skein
