#include "text/bpe.h"

#include <algorithm>
#include <cstdio>
#include <queue>

#include "text/utf8.h"

namespace skein {
namespace {

// More ids than any vocabulary has: a file that names one is broken, and the table would be large.
constexpr TokenId kMaxTokenId = 1 << 24;

uint64_t PairKey(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

struct Bpe::Symbol {
  TokenId id;
  int32_t prev, next;  // -1: none
  bool alive;
};

struct Bpe::Candidate {
  uint32_t rank;
  int32_t pos;  // of the left symbol
  TokenId id;
  // The queue hands out the largest: the best rank, then the leftmost.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : pos > other.pos;
  }
};

Result<Bpe> Bpe::Create(BpeSpec spec) {
  Bpe bpe;
  SKEIN_RETURN_IF_ERROR(bpe.Init(std::move(spec)));
  return bpe;
}

Status Bpe::Init(BpeSpec spec) {
  const auto invalid = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, "tokenizer.json: model: " + what);
  };
  TokenId max_id = -1;
  for (const auto& [token, id] : spec.vocab) {
    if (id < 0 || id > kMaxTokenId) {
      return invalid("token '" + token + "' has the id " + std::to_string(id) +
                     "; allowed are 0 to " + std::to_string(kMaxTokenId));
    }
    max_id = std::max(max_id, id);
  }
  tokens_.resize(max_id + 1);
  token_ids_.reserve(spec.vocab.size());
  for (auto& [token, id] : spec.vocab) {
    if (!tokens_[id].empty()) {
      return invalid("the tokens '" + tokens_[id] + "' and '" + token + "' share the id " +
                     std::to_string(id));
    }
    tokens_[id] = std::move(token);
    if (!token_ids_.emplace(tokens_[id], id).second) {
      return invalid("the token '" + tokens_[id] + "' stands there twice");
    }
  }

  merges_.reserve(spec.merges.size());
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    const std::optional<TokenId> left_id = TokenToId(left), right_id = TokenToId(right),
                                 merged_id = TokenToId(left + right);
    if (!left_id || !right_id || !merged_id) {
      return invalid("merge " + std::to_string(rank) + ": the token '" +
                     (!left_id    ? left
                      : !right_id ? right
                                  : left + right) +
                     "' is not in the vocabulary");
    }
    // Of a pair that stands there twice the reference keeps the later.
    merges_[PairKey(*left_id, *right_id)] = {static_cast<uint32_t>(rank), *merged_id};
  }

  const ByteAlphabet alphabet;
  has_byte_alphabet_ = true;
  for (int byte = 0; byte < 256; ++byte) {
    const std::optional<TokenId> letter = TokenToId(alphabet.CharOf(static_cast<uint8_t>(byte)));
    has_byte_alphabet_ = has_byte_alphabet_ && letter.has_value();
    letter_ids_[byte] = letter.value_or(-1);
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    fallback_ids_[byte] = TokenToId(name).value_or(-1);
  }
  if (has_byte_alphabet_ && spec.ignore_merges) {
    for (const auto& [token, id] : token_ids_) {
      if (std::optional<std::string> bytes = alphabet.Unmap(token)) {
        byte_token_ids_.emplace(std::move(*bytes), id);
      }
    }
  }
  if (spec.unk_token) {
    unk_id_ = TokenToId(*spec.unk_token);
    if (!unk_id_) return invalid("unk_token '" + *spec.unk_token + "' is not in the vocabulary");
  }
  fuse_unk_ = spec.fuse_unk;
  byte_fallback_ = spec.byte_fallback;
  ignore_merges_ = spec.ignore_merges;
  return Status::Ok();
}

std::optional<TokenId> Bpe::TokenToId(std::string_view token) const {
  const auto it = token_ids_.find(token);
  if (it == token_ids_.end()) return std::nullopt;
  return it->second;
}

std::string_view Bpe::IdToToken(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) return {};
  return tokens_[id];
}

const Bpe::Merge* Bpe::FindMerge(TokenId left, TokenId right) const {
  const auto it = merges_.find(PairKey(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

void Bpe::EncodeBytes(std::string_view bytes, std::vector<TokenId>* ids) const {
  if (ignore_merges_) {
    const auto it = byte_token_ids_.find(std::string(bytes));
    if (it != byte_token_ids_.end()) {
      ids->push_back(it->second);
      return;
    }
  }
  std::vector<Symbol> symbols;
  symbols.reserve(bytes.size());
  for (const char c : bytes) {
    symbols.push_back({letter_ids_[static_cast<uint8_t>(c)], 0, 0, true});
  }
  MergeAll(&symbols, ids);
}

void Bpe::Encode(std::string_view piece, std::vector<TokenId>* ids) const {
  if (ignore_merges_) {
    if (const std::optional<TokenId> id = TokenToId(piece)) {
      ids->push_back(*id);
      return;
    }
  }
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  const auto add = [&symbols](TokenId id) { symbols.push_back({id, 0, 0, true}); };
  // An unknown character waits until the next known one: bytes of a fallback overtake it, as they
  // do in the reference.
  bool unk_waits = false;
  for (size_t pos = 0; pos < piece.size();) {
    const size_t begin = pos;
    NextCodePoint(piece, &pos);
    const std::string_view character = piece.substr(begin, pos - begin);
    if (const std::optional<TokenId> id = TokenToId(character)) {
      if (unk_waits) add(*unk_id_);
      unk_waits = false;
      add(*id);
      continue;
    }
    const auto fallback = [this](char c) { return fallback_ids_[static_cast<uint8_t>(c)]; };
    if (byte_fallback_ &&
        std::all_of(character.begin(), character.end(), [&](char c) { return fallback(c) >= 0; })) {
      for (const char c : character) add(fallback(c));
      continue;
    }
    if (!unk_id_) continue;  // the reference drops the character
    if (unk_waits && !fuse_unk_) add(*unk_id_);
    unk_waits = true;
  }
  if (unk_waits) add(*unk_id_);
  MergeAll(&symbols, ids);
}

void Bpe::MergeAll(std::vector<Symbol>* symbols_out, std::vector<TokenId>* ids) const {
  std::vector<Symbol>& symbols = *symbols_out;
  const auto count = static_cast<int32_t>(symbols.size());
  std::vector<Candidate> initial;
  for (int32_t i = 0; i < count; ++i) {
    symbols[i].prev = i - 1;
    symbols[i].next = i + 1 < count ? i + 1 : -1;
    if (i + 1 == count) break;
    if (const Merge* merge = FindMerge(symbols[i].id, symbols[i + 1].id)) {
      initial.push_back({merge->rank, i, merge->id});
    }
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(initial));
  const auto push = [&](int32_t pos) {
    const int32_t next = symbols[pos].next;
    if (const Merge* merge = FindMerge(symbols[pos].id, symbols[next].id)) {
      queue.push({merge->rank, pos, merge->id});
    }
  };
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.pos];
    if (!left.alive || left.next < 0) continue;
    Symbol& right = symbols[left.next];
    // A stale candidate whose pair gives the same token still counts, at its old rank.
    const Merge* merge = FindMerge(left.id, right.id);
    if (merge == nullptr || merge->id != top.id) continue;
    left.id = top.id;
    left.next = right.next;
    right.alive = false;
    if (left.next >= 0) symbols[left.next].prev = top.pos;
    if (left.prev >= 0) push(left.prev);
    if (left.next >= 0) push(top.pos);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.alive) ids->push_back(symbol.id);
  }
}

}  // namespace skein
