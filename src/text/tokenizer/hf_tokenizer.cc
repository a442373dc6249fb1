#include <algorithm>
#include <utility>

#include "base/interrupt/work_pause.h"
#include "text/tokenizer.h"
#include "text/tokenizer/json/tokenizer_json.h"
#include "text/tokenizer/pipeline.h"
#include "text/tokenizer/token_bytes.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

Status EncodingStopped() {
  return {StatusCode::kUnavailable, "the encoding of the text was stopped"};
}

// Runs the stages of the reference in this order: added tokens, normalizer, added tokens of the
// normalized text, pre-tokenizer, model, post-processor.
class HfTokenizer final : public Tokenizer {
 public:
  explicit HfTokenizer(TokenizerParts parts)
      : parts_(std::move(parts)),
        raw_bytes_(parts_.pre_tokenizer.byte_level_last() && parts_.bpe.can_encode_bytes()),
        whole_scanner_(raw_bytes_ ? parts_.pre_tokenizer.whole_scanner() : nullptr),
        pipeline_(&parts_) {
    if (parts_.decoder.joins_bytes()) FillTokenBytes();
    FindMaxBytes();
  }

  Status Encode(std::string_view text, bool add_special_tokens,
                std::vector<TokenId>* ids) const override {
    return EncodeWith(text, {}, add_special_tokens, ids);
  }
  Status EncodeWith(std::string_view text, const SpecialAsText& as_text, bool add_special_tokens,
                    std::vector<TokenId>* ids) const override;
  std::vector<size_t> FindSpecialTokens(std::string_view text) const override {
    return parts_.added_tokens.FindSpecial(text);
  }
  size_t max_bytes_per_token() const override { return max_bytes_per_token_; }
  Status EncodeFull(const EncodeInput& input, const EncodeOptions& options,
                    Encoding* encoding) const override {
    SKEIN_RETURN_IF_ERROR(pipeline_.EncodeFull(*this, input, options, encoding));
    return MayGoOn() ? Status::Ok() : EncodingStopped();
  }
  std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const override;
  std::unique_ptr<TextStream> NewTextStream(bool skip_special_tokens) const override;

  int32_t vocab_size() const override {
    return std::max(parts_.model_max_id(), parts_.added_tokens.max_id()) + 1;
  }
  std::optional<TokenId> TokenToId(std::string_view token) const override {
    const std::optional<TokenId> added = parts_.added_tokens.TokenToId(token);
    return added ? added : parts_.ModelTokenToId(token);
  }
  std::string_view IdToToken(TokenId id) const override {
    const AddedToken* added = parts_.added_tokens.Find(id);
    return added != nullptr ? std::string_view(added->spelling) : parts_.ModelIdToToken(id);
  }
  std::string TokenBytes(TokenId id) const override {
    return parts_.decoder.TokenBytes(IdToToken(id));
  }
  bool IsSpecial(TokenId id) const override { return parts_.added_tokens.IsSpecial(IdToToken(id)); }
  std::optional<TokenId> bos_id() const override { return parts_.bos_id; }
  std::optional<TokenId> eos_id() const override { return parts_.eos_id; }
  std::optional<TokenId> pad_id() const override { return parts_.pad_id; }

 private:
  class Stream;
  class ByteStream;

  void FillTokenBytes();
  void FindMaxBytes();
  // Encodes a part of the original text that contains no added token.
  Status EncodeSegment(std::string_view text, bool at_start, const SpecialAsText& as_text,
                       IdWriter* out) const;
  // Encodes a part of the normalized text that contains no added token.
  Status EncodePlain(std::string_view text, bool at_start, IdWriter* out) const;

  const TokenizerParts parts_;
  const bool raw_bytes_;  // the model gets pieces as bytes, not as letters of the byte alphabet
  const SplitScanner* const
      whole_scanner_;  // does the whole work of the pre-tokenizer; may be nullptr
  const Pipeline pipeline_;
  TokenBytesTable token_bytes_;  // filled if the decoder joins bytes
  size_t max_bytes_per_token_ = 0;
};

class HfTokenizer::Stream final : public TextStream {
 public:
  Stream(const HfTokenizer* tokenizer, bool skip_special_tokens)
      : tokenizer_(*tokenizer),
        skip_special_tokens_(skip_special_tokens),
        state_(tokenizer->parts_.decoder.NewState()) {}

  void Push(TokenId id, std::string* out) override {
    const std::string_view token = tokenizer_.IdToToken(id);
    if (token.empty()) return;
    if (skip_special_tokens_ && tokenizer_.parts_.added_tokens.IsSpecial(token)) return;
    tokenizer_.parts_.decoder.Push(token, &state_, out);
  }
  void Finish(std::string* out) override { tokenizer_.parts_.decoder.Finish(&state_, out); }

 private:
  const HfTokenizer& tokenizer_;
  const bool skip_special_tokens_;
  Decoder::State state_;
};

// A text stream for a decoder that only joins the bytes of tokens.
class HfTokenizer::ByteStream final : public TextStream {
 public:
  ByteStream(const TokenBytesTable* table, bool skip_special_tokens)
      : table_(*table), skip_special_tokens_(skip_special_tokens) {}

  void Push(TokenId id, std::string* out) override {
    const TokenBytesTable::Entry* entry = table_.Find(id, skip_special_tokens_);
    if (entry == nullptr) return;
    if (entry->is_text && pending_.empty()) {
      out->append(table_.Bytes(*entry));
      return;
    }
    pending_ += table_.Bytes(*entry);
    const size_t whole = pending_.size() - IncompleteSuffixBytes(pending_);
    AppendUtf8Lossy(std::string_view(pending_).substr(0, whole), out);
    pending_.erase(0, whole);
  }
  void Finish(std::string* out) override {
    AppendUtf8Lossy(pending_, out);
    pending_.clear();
  }

 private:
  const TokenBytesTable& table_;
  const bool skip_special_tokens_;
  std::string pending_;  // bytes that are no whole character yet
};

void HfTokenizer::FillTokenBytes() {
  token_bytes_.Reserve(static_cast<size_t>(vocab_size()), size_t{8} * vocab_size());
  std::string bytes;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    const std::string_view token = IdToToken(id);
    bytes.clear();
    parts_.decoder.AppendByteLevel(token, &bytes);
    const bool is_special = parts_.added_tokens.Find(id) != nullptr && IsSpecial(id);
    token_bytes_.Add(bytes, is_special);
  }
  token_bytes_.Finish();
}

// Finds the most bytes of text that a token can stand for. A token of a byte-level BPE stands for
// its own bytes. Tokens of other models and added tokens may stand for runs of any length (unknown
// words, white space). NFC is the only normalizer with a known bound: no character of its result
// comes from more than kNfcFactor times as many bytes.
void HfTokenizer::FindMaxBytes() {
  constexpr size_t kNfcFactor = 4;
  if (!raw_bytes_ || !parts_.decoder.joins_bytes() || parts_.needs_pipeline()) return;
  if (!parts_.normalizer.is_at_most_nfc() || parts_.added_tokens.TakesSpace()) return;
  size_t longest = 0;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    const AddedToken* added = parts_.added_tokens.Find(id);
    if (added != nullptr) longest = std::max(longest, added->content.size());
    const TokenBytesTable::Entry* entry = token_bytes_.Find(id, /*skip_special=*/false);
    if (entry != nullptr) longest = std::max<size_t>(longest, entry->size);
  }
  max_bytes_per_token_ = longest * (parts_.normalizer.empty() ? 1 : kNfcFactor);
}

Status HfTokenizer::EncodePlain(std::string_view text, bool at_start, IdWriter* out) const {
  if (whole_scanner_ != nullptr) {
    for (size_t pos = 0; pos < text.size();) {
      // A meter inside this loop would cost 4 % of the time.
      const size_t slice_end = std::min(text.size(), pos + SliceMeter::kSliceBytes);
      while (pos < slice_end) {
        const size_t end = whole_scanner_->MatchEnd(*parts_.classes, text, pos);
        parts_.bpe.EncodeBytes(text.substr(pos, end - pos), text.size() - pos, out);
        pos = end;
      }
      if (pos < text.size() && !MayGoOn()) return EncodingStopped();
    }
    return Status::Ok();
  }
  Pieces pieces;
  SKEIN_RETURN_IF_ERROR(parts_.pre_tokenizer.Run(std::string(text), at_start, raw_bytes_, &pieces));
  size_t begin = 0;
  SliceMeter slices;
  for (const size_t end : pieces.ends) {
    if (!slices.GoOn(begin)) return EncodingStopped();
    const std::string_view piece = std::string_view(pieces.text).substr(begin, end - begin);
    if (raw_bytes_) {
      parts_.bpe.EncodeBytes(piece, pieces.text.size() - begin, out);
    } else {
      parts_.bpe.Encode(piece, out);
    }
    begin = end;
  }
  return Status::Ok();
}

Status HfTokenizer::EncodeSegment(std::string_view text, bool at_start,
                                  const SpecialAsText& as_text, IdWriter* out) const {
  std::string normalized;
  if (!parts_.normalizer.IsNormalized(text)) {
    SKEIN_RETURN_IF_ERROR(parts_.normalizer.Normalize(text, &normalized));
    text = normalized;
  }
  SliceMeter slices;
  return parts_.added_tokens.ForEachSegment(
      *parts_.classes, text, true, as_text, [&](const AddedTokens::Segment& segment) -> Status {
        if (!slices.GoOn(segment.begin)) return EncodingStopped();
        if (!segment.id) {
          return EncodePlain(text.substr(segment.begin, segment.end - segment.begin),
                             at_start && segment.begin == 0, out);
        }
        out->Put(*segment.id);
        return Status::Ok();
      });
}

Status HfTokenizer::EncodeWith(std::string_view text, const SpecialAsText& as_text,
                               bool add_special_tokens, std::vector<TokenId>* ids) const {
  if (!MayGoOn()) return EncodingStopped();
  if (!IsValidUtf8(text)) {
    return Status(StatusCode::kInvalidArgument, "the text is not valid UTF-8");
  }
  const auto add_all = [ids](const std::vector<TokenId>& more) {
    ids->insert(ids->end(), more.begin(), more.end());
  };
  if (add_special_tokens) add_all(parts_.prefix_ids);
  if (parts_.needs_pipeline()) {
    SKEIN_RETURN_IF_ERROR(pipeline_.AppendIds(text, as_text, ids));
  } else {
    IdWriter out(ids);
    SliceMeter slices;
    SKEIN_RETURN_IF_ERROR(parts_.added_tokens.ForEachSegment(
        *parts_.classes, text, false, as_text, [&](const AddedTokens::Segment& segment) -> Status {
          if (!slices.GoOn(segment.begin)) return EncodingStopped();
          if (!segment.id) {
            return EncodeSegment(text.substr(segment.begin, segment.end - segment.begin),
                                 segment.begin == 0, InsideOf(segment, as_text), &out);
          }
          out.Put(*segment.id);
          return Status::Ok();
        }));
  }
  if (add_special_tokens) add_all(parts_.suffix_ids);
  // A loop that was told to end has left its ids incomplete.
  return MayGoOn() ? Status::Ok() : EncodingStopped();
}

std::unique_ptr<TextStream> HfTokenizer::NewTextStream(bool skip_special_tokens) const {
  if (parts_.decoder.joins_bytes()) {
    return std::make_unique<ByteStream>(&token_bytes_, skip_special_tokens);
  }
  return std::make_unique<Stream>(this, skip_special_tokens);
}

std::string HfTokenizer::Decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  if (parts_.decoder.joins_bytes()) return token_bytes_.Decode(ids, skip_special_tokens);
  std::string text;
  Stream stream(this, skip_special_tokens);
  for (const TokenId id : ids) stream.Push(id, &text);
  stream.Finish(&text);
  return text;
}

}  // namespace

Status Tokenizer::EncodeWith(std::string_view text, const SpecialAsText&, bool add_special_tokens,
                             std::vector<TokenId>* ids) const {
  return Encode(text, add_special_tokens, ids);
}

std::vector<size_t> Tokenizer::FindSpecialTokens(std::string_view) const { return {}; }

Status Tokenizer::EncodeFull(const EncodeInput&, const EncodeOptions&, Encoding*) const {
  return Status(StatusCode::kUnsupported, "this tokenizer encodes single texts to ids only");
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(TokenizerParts parts, LoadTokenizerParts(model_dir));
  return std::unique_ptr<Tokenizer>(std::make_unique<HfTokenizer>(std::move(parts)));
}

}  // namespace skein
