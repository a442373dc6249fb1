#include "text/tokenizer/models/bpe.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <queue>

#include "base/interrupt/work_pause.h"
#include "text/tokenizer/models/model.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

// Up to this length, searching all pairs for each merge is faster than a queue of pairs.
constexpr size_t kMaxShort = 48;

struct Symbol {
  TokenId id;
  int32_t prev, next;  // -1: none
  bool alive;
};

struct Candidate {
  MergeValue merge;
  int32_t pos;  // of the left symbol
  // The queue returns the largest candidate: that of the best rank, then the leftmost. A rank
  // belongs to one id only.
  bool operator<(const Candidate& other) const {
    return merge != other.merge ? merge > other.merge : pos > other.pos;
  }
};

Status Invalid(const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "tokenizer.json: model: " + what);
}

}  // namespace

Result<Bpe> Bpe::Create(const BpeSpec& spec) {
  Bpe bpe;
  SKEIN_RETURN_IF_ERROR(bpe.AddVocab(spec));
  SKEIN_RETURN_IF_ERROR(bpe.AddMerges(spec));
  SKEIN_RETURN_IF_ERROR(bpe.AddAlphabets(spec));
  bpe.fuse_unk_ = spec.fuse_unk;
  bpe.byte_fallback_ = spec.byte_fallback;
  bpe.ignore_merges_ = spec.ignore_merges;
  bpe.short_words_ = std::make_unique<ShortWords>();
  bpe.long_words_ = std::make_unique<LongWords>();
  return bpe;
}

Status Bpe::AddVocab(const BpeSpec& spec) {
  TokenId max_id = -1;
  size_t num_bytes = 0;
  for (const auto& [token, id] : spec.vocab) {
    if (id < 0 || id > kMaxTokenId) {
      return Invalid("token '" + std::string(token) + "' has the id " + std::to_string(id) +
                     "; allowed are 0 to " + std::to_string(kMaxTokenId));
    }
    max_id = std::max(max_id, id);
    num_bytes += token.size();
  }
  tokens_ = TokenTable(static_cast<size_t>(max_id + 1), num_bytes);
  for (const auto& [token, id] : spec.vocab) {
    const TokenTable::AddResult result = tokens_.Add(token, id);
    if (result == TokenTable::AddResult::kIdTaken) {
      return Invalid("the tokens '" + std::string(tokens_.Text(id)) + "' and '" +
                     std::string(token) + "' share the id " + std::to_string(id));
    }
    if (result == TokenTable::AddResult::kTokenTaken) {
      return Invalid("the token '" + std::string(token) + "' appears twice");
    }
    has_empty_token_ = has_empty_token_ || token.empty();
  }
  return Status::Ok();
}

Status Bpe::AddMerges(const BpeSpec& spec) {
  merges_ = MergeTable(spec.merges.size());
  std::string merged;
  TokenId guess = 0;  // a guess: most files number tokens in the order of their merges
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    merged.assign(left).append(right);
    const std::optional<TokenId> left_id = TokenToId(left), right_id = TokenToId(right);
    const std::optional<TokenId> merged_id =
        tokens_.Has(guess) && tokens_.Text(guess) == merged ? guess : TokenToId(merged);
    if (!left_id || !right_id || !merged_id) {
      return Invalid("merge " + std::to_string(rank) + ": the token '" +
                     (!left_id    ? std::string(left)
                      : !right_id ? std::string(right)
                                  : merged) +
                     "' is not in the vocabulary");
    }
    guess = *merged_id + 1;
    // The later of two equal pairs counts, as in the reference.
    merges_.Set(*left_id, *right_id, MakeMergeValue(static_cast<uint32_t>(rank), *merged_id));
  }
  return Status::Ok();
}

Status Bpe::AddAlphabets(const BpeSpec& spec) {
  const ByteAlphabet alphabet;
  bool has_all_letters = true;
  for (int byte = 0; byte < 256; ++byte) {
    const std::optional<TokenId> letter = TokenToId(alphabet.CharOf(static_cast<uint8_t>(byte)));
    has_all_letters = has_all_letters && letter.has_value();
    letter_ids_[byte] = letter.value_or(-1);
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    fallback_ids_[byte] = TokenToId(name).value_or(-1);
  }
  if (spec.unk_token) {
    unk_id_ = TokenToId(*spec.unk_token);
    if (!unk_id_) return Invalid("unk_token '" + *spec.unk_token + "' is not in the vocabulary");
  }
  can_encode_bytes_ = has_all_letters || (!unk_id_ && !spec.byte_fallback);
  if (spec.ignore_merges) {
    byte_words_ = TokenTable(tokens_.num_ids(), 0);
  } else if (has_all_letters) {  // otherwise a dropped letter makes its neighbours adjacent
    byte_cuts_.emplace();
  }
  std::string bytes;
  for (TokenId id = 0; id <= max_id(); ++id) {
    bytes.clear();
    if (!can_encode_bytes_ || !alphabet.AppendUnmapped(IdToToken(id), &bytes) || bytes.empty()) {
      continue;
    }
    if (spec.ignore_merges) byte_words_.Add(bytes, id);
    if (byte_cuts_) byte_cuts_->Add(bytes);
  }
  if (byte_cuts_) byte_cuts_->Finish();
  if (!spec.ignore_merges && spec.byte_fallback) AddCuts(spec);
  return Status::Ok();
}

// Adds the cuts for EncodeParts if the symbols of a piece always spell the piece. Otherwise a token
// could cross a cut unnoticed. So all bytes must have fallback tokens, and these tokens must not
// merge.
void Bpe::AddCuts(const BpeSpec& spec) {
  for (const TokenId id : fallback_ids_) {
    if (id < 0) return;
  }
  for (const auto& [left, right] : spec.merges) {
    for (const std::string_view part : {left, right}) {
      if (part.size() == 6 && part.starts_with("<0x") && part.ends_with('>')) return;
    }
  }
  char_cuts_.emplace();
  for (TokenId id = 0; id <= max_id(); ++id) char_cuts_->Add(IdToToken(id));
  char_cuts_->Finish();
}

void Bpe::EncodeNew(std::string_view word, unsigned bytes, const ShortWords::Key& key,
                    uint64_t hash, IdWriter* out) const {
  std::vector<TokenId> ids;
  EncodeWord(word, bytes, &ids);
  for (const TokenId id : ids) out->Put(id);
  if (!ids.empty() && ids.size() <= ShortWords::kMaxIds) short_words_->Insert(key, hash, ids);
}

void Bpe::EncodeLong(std::string_view word, unsigned bytes, IdWriter* out) const {
  std::vector<TokenId> ids;
  if (word.size() > LongWords::Key::kMaxBytes) {
    EncodeParts(word, bytes, &ids);
    for (const TokenId id : ids) out->Put(id);
    return;
  }
  const LongWords::Key key(word, bytes);
  const uint64_t hash = key.Hash();
  if (long_words_->Find(key, hash, out)) return;
  EncodeParts(word, bytes, &ids);
  for (const TokenId id : ids) out->Put(id);
  if (!ids.empty() && ids.size() <= LongWords::kMaxIds) long_words_->Insert(key, hash, ids);
}

void Bpe::EncodeParts(std::string_view word, unsigned bytes, std::vector<TokenId>* ids) const {
  const std::optional<CutTable>& cuts = bytes != 0 ? byte_cuts_ : char_cuts_;
  if (!cuts) {
    EncodeWord(word, bytes, ids);
    return;
  }
  IdWriter out(ids);
  std::vector<TokenId> part_ids;
  SliceMeter slices;
  for (size_t begin = 0; begin < word.size() && slices.GoOn(begin);) {
    const size_t end = cuts->FindCut(word, begin);
    const std::string_view part = word.substr(begin, end - begin);
    if (part.size() <= ShortWords::Key::kMaxBytes) {
      EncodeCached(part, word.size() - begin, bytes, &out);
    } else {
      part_ids.clear();
      EncodeWord(part, bytes, &part_ids);
      for (const TokenId id : part_ids) out.Put(id);
    }
    begin = end;
  }
}

void Bpe::EncodeWord(std::string_view word, unsigned bytes, std::vector<TokenId>* ids) const {
  if (ignore_merges_) {
    const std::optional<TokenId> id = bytes != 0 ? byte_words_.Find(word) : TokenToId(word);
    if (id) {
      ids->push_back(*id);
      return;
    }
  }
  ids->reserve(word.size());
  if (bytes != 0) {
    for (const char c : word) {
      const TokenId id = letter_ids_[static_cast<uint8_t>(c)];
      if (id >= 0) ids->push_back(id);
    }
  } else {
    SplitCharacters(word, ids);
  }
  // The reference's queue keeps stale entries. A stale entry counts if its pair now gives the same
  // token by another merge. If no token is empty, that is impossible: a pair that has grown spells
  // a longer token. Then merging by rank gives the same result as the queue.
  if (ids->size() <= kMaxShort && !has_empty_token_) {
    MergeShort(ids);
  } else {
    MergeLong(ids);
  }
}

void Bpe::SplitCharacters(std::string_view piece, std::vector<TokenId>* ids) const {
  // An unknown character is emitted only before the next known character, after fallback bytes that
  // follow it, as in the reference.
  bool unk_waits = false;
  SliceMeter slices;
  for (size_t pos = 0; pos < piece.size() && slices.GoOn(pos);) {
    const size_t begin = pos;
    NextCodePoint(piece, &pos);
    const std::string_view character = piece.substr(begin, pos - begin);
    if (const std::optional<TokenId> id = TokenToId(character)) {
      if (unk_waits) ids->push_back(*unk_id_);
      unk_waits = false;
      ids->push_back(*id);
      continue;
    }
    const auto fallback = [this](char c) { return fallback_ids_[static_cast<uint8_t>(c)]; };
    if (byte_fallback_ &&
        std::all_of(character.begin(), character.end(), [&](char c) { return fallback(c) >= 0; })) {
      for (const char c : character) ids->push_back(fallback(c));
      continue;
    }
    if (!unk_id_) continue;  // the reference drops the character
    if (unk_waits && !fuse_unk_) ids->push_back(*unk_id_);
    unk_waits = true;
  }
  if (unk_waits) ids->push_back(*unk_id_);
}

// REQUIRES: at most kMaxShort ids.
void Bpe::MergeShort(std::vector<TokenId>* ids_out) const {
  TokenId* const ids = ids_out->data();
  size_t count = ids_out->size();
  MergeValue merges[kMaxShort];  // [count - 1]: the merge of ids[i] and ids[i + 1]
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = merges_.Find(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) best = merges[i] < merges[best] ? i : best;
    if (merges[best] == kNoMerge) break;
    ids[best] = MergedId(merges[best]);
    --count;
    for (size_t i = best + 1; i < count; ++i) ids[i] = ids[i + 1];
    for (size_t i = best; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (best > 0) merges[best - 1] = merges_.Find(ids[best - 1], ids[best]);
    if (best + 1 < count) merges[best] = merges_.Find(ids[best], ids[best + 1]);
  }
  ids_out->resize(count);
}

void Bpe::MergeLong(std::vector<TokenId>* ids) const {
  const auto count = static_cast<int32_t>(ids->size());
  std::vector<Symbol> symbols(ids->size());
  std::vector<Candidate> initial;
  SliceMeter initial_slices;
  for (int32_t i = 0; i < count; ++i) {
    if (!initial_slices.GoOn(static_cast<size_t>(i))) return ids->clear();
    symbols[i] = {(*ids)[i], i - 1, i + 1 < count ? i + 1 : -1, true};
    if (i + 1 == count) break;
    const MergeValue merge = merges_.Find((*ids)[i], (*ids)[i + 1]);
    if (merge != kNoMerge) initial.push_back({merge, i});
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(initial));
  const auto push = [&](int32_t pos) {
    const MergeValue merge = merges_.Find(symbols[pos].id, symbols[symbols[pos].next].id);
    if (merge != kNoMerge) queue.push({merge, pos});
  };
  SliceMeter slices;
  for (size_t num_done = 0; !queue.empty() && slices.GoOn(num_done); ++num_done) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.pos];
    if (!left.alive || left.next < 0) continue;
    Symbol& right = symbols[left.next];
    // A stale candidate still counts, with its old rank, if its pair gives the same token.
    const MergeValue merge = merges_.Find(left.id, right.id);
    if (merge == kNoMerge || MergedId(merge) != MergedId(top.merge)) continue;
    left.id = MergedId(merge);
    left.next = right.next;
    right.alive = false;
    if (left.next >= 0) symbols[left.next].prev = top.pos;
    if (left.prev >= 0) push(left.prev);
    if (left.next >= 0) push(top.pos);
  }
  ids->clear();
  for (const Symbol& symbol : symbols) {
    if (symbol.alive) ids->push_back(symbol.id);
  }
}

}  // namespace skein
