#include "text/tokenizer/models/wordpiece.h"

#include <algorithm>

#include "text/unicode/utf8.h"

namespace skein {

Result<std::unique_ptr<const Model>> WordPiece::Create(Vocabulary vocabulary, Spec spec) {
  const std::optional<TokenId> unk_id = vocabulary.TokenToId(spec.unk_token);
  if (!unk_id) {
    return Status(StatusCode::kInvalidArgument, "tokenizer.json: model: unk_token '" +
                                                    spec.unk_token + "' is not in the vocabulary");
  }
  return std::unique_ptr<const Model>(
      new WordPiece(std::move(vocabulary), std::move(spec), *unk_id));
}

WordPiece::WordPiece(Vocabulary vocabulary, Spec spec, TokenId unk_id)
    : vocabulary_(std::move(vocabulary)), spec_(std::move(spec)), unk_id_(unk_id) {
  for (TokenId id = 0; id <= vocabulary_.max_id(); ++id) {
    max_token_bytes_ = std::max(max_token_bytes_, vocabulary_.IdToToken(id).size());
  }
}

Status WordPiece::Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const {
  const size_t old_size = tokens->size();
  const auto unknown = [&] {
    tokens->resize(old_size);
    tokens->push_back({unk_id_, 0, static_cast<uint32_t>(piece.size())});
    return Status::Ok();
  };
  const size_t num_chars =
      piece.size() - std::count_if(piece.begin(), piece.end(), IsContinuationByte);
  if (num_chars > spec_.max_input_chars_per_word) return unknown();
  std::string candidate;
  for (size_t begin = 0; begin < piece.size();) {
    candidate = begin > 0 ? spec_.continuing_subword_prefix : "";
    const size_t prefix = candidate.size();
    candidate += piece.substr(begin, max_token_bytes_);
    std::optional<TokenId> found;
    while (candidate.size() > prefix && !(found = vocabulary_.TokenToId(candidate))) {
      candidate.pop_back();
    }
    if (!found) return unknown();
    const size_t end = begin + candidate.size() - prefix;
    tokens->push_back({*found, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = end;
  }
  return Status::Ok();
}

Status WordLevel::Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const {
  std::optional<TokenId> id = vocabulary_.TokenToId(piece);
  if (!id) id = unk_id_;
  if (!id) {
    return Status(StatusCode::kInvalidArgument,
                  "the word '" + std::string(piece) +
                      "' is not in the vocabulary, which has no token for unknown words");
  }
  tokens->push_back({*id, 0, static_cast<uint32_t>(piece.size())});
  return Status::Ok();
}

}  // namespace skein
