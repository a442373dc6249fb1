#include "text/tokenizer/models/unigram.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/interrupt/work_pause.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

// An unknown character's score is that of the worst token minus this penalty.
constexpr double kUnknownPenalty = 10.0;

Status Unknown() {
  return Status(StatusCode::kInvalidArgument,
                "the text has a character that is not in the vocabulary, which has no 'unk_id'");
}

Status SegmentationStopped() {
  return {StatusCode::kUnavailable, "the segmentation of the text was stopped"};
}

}  // namespace

Result<std::unique_ptr<const Model>> Unigram::Create(Spec spec) {
  const auto num_tokens = static_cast<TokenId>(spec.tokens.size());
  if (spec.unk_id && (*spec.unk_id < 0 || *spec.unk_id >= num_tokens)) {
    return Status(StatusCode::kInvalidArgument,
                  "tokenizer.json: model: 'unk_id' is " + std::to_string(*spec.unk_id) +
                      ", but there are " + std::to_string(num_tokens) + " tokens");
  }
  std::vector<std::pair<std::string, TokenId>> entries;
  for (TokenId id = 0; id < num_tokens; ++id) entries.emplace_back(std::move(spec.tokens[id]), id);
  SKEIN_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Create(std::move(entries)));
  auto unigram = std::unique_ptr<Unigram>(new Unigram(std::move(vocabulary)));
  unigram->scores_ = std::move(spec.scores);
  unigram->unk_id_ = spec.unk_id;
  double min_score = std::numeric_limits<double>::infinity();
  for (const double score : unigram->scores_) min_score = std::min(min_score, score);
  unigram->unk_score_ = min_score - kUnknownPenalty;
  for (TokenId id = 0; id < num_tokens; ++id) {
    unigram->AddToTrie(unigram->IdToToken(id), id);
  }
  if (spec.byte_fallback) {
    unigram->byte_ids_.emplace();
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", byte);
      (*unigram->byte_ids_)[byte] = unigram->TokenToId(name).value_or(-1);
    }
  }
  return std::unique_ptr<const Model>(std::move(unigram));
}

void Unigram::AddToTrie(std::string_view token, TokenId id) {
  if (token.empty()) return;
  uint32_t node = 0;
  for (const char c : token) {
    const uint64_t edge = uint64_t{node} << 8 | static_cast<uint8_t>(c);
    const auto [it, is_new] = trie_edges_.emplace(edge, static_cast<uint32_t>(trie_ids_.size()));
    node = it->second;
    if (is_new) trie_ids_.push_back(-1);
  }
  trie_ids_[node] = id;  // the last of equal tokens counts
}

Status Unigram::FindBest(std::string_view piece, std::vector<Best>* best) const {
  best->assign(piece.size() + 1, Best());
  const auto offer = [best](size_t begin, size_t end, double score, TokenId id) {
    Best& target = (*best)[end];
    if (target.begin < 0 || score > target.score) {
      target = {score, static_cast<int64_t>(begin), id};
    }
  };
  SliceMeter slices;
  for (size_t begin = 0; begin < piece.size();) {
    if (!slices.GoOn(begin)) return SegmentationStopped();
    const double score = (*best)[begin].score;
    size_t next = begin;
    NextCodePoint(piece, &next);
    bool has_single = false;  // whether some token is exactly this character
    uint32_t node = 0;
    for (size_t end = begin; end < piece.size();) {
      const auto it = trie_edges_.find(uint64_t{node} << 8 | static_cast<uint8_t>(piece[end]));
      if (it == trie_edges_.end()) break;
      node = it->second;
      ++end;
      if (trie_ids_[node] < 0) continue;
      offer(begin, end, score + scores_[trie_ids_[node]], trie_ids_[node]);
      has_single = has_single || end == next;
    }
    if (!has_single) {
      if (!unk_id_) return Unknown();
      offer(begin, next, score + unk_score_, *unk_id_);
    }
    begin = next;
  }
  return Status::Ok();
}

// Looks up the text of each part of the segmentation, not the token that was found.
Status Unigram::Emit(std::string_view piece, size_t begin, size_t end,
                     std::vector<PieceToken>* tokens) const {
  const std::string_view text = piece.substr(begin, end - begin);
  const auto add = [&](TokenId id) {
    tokens->push_back({id, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  };
  const auto byte_id = [this](char c) { return (*byte_ids_)[static_cast<uint8_t>(c)]; };
  if (const std::optional<TokenId> id = TokenToId(text)) {
    add(*id);
  } else if (byte_ids_ &&
             std::all_of(text.begin(), text.end(), [&](char c) { return byte_id(c) >= 0; })) {
    for (const char c : text) add(byte_id(c));
  } else if (unk_id_) {
    add(*unk_id_);
  } else {
    return Unknown();
  }
  return Status::Ok();
}

Status Unigram::Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const {
  std::vector<Best> best;
  SKEIN_RETURN_IF_ERROR(FindBest(piece, &best));
  // Walks backwards from the end; adjacent unknown parts become one.
  std::vector<std::pair<size_t, size_t>> parts;
  bool last_is_unknown = false;
  for (size_t end = piece.size(); end > 0;) {
    const auto begin = static_cast<size_t>(best[end].begin);
    const bool is_unknown = unk_id_ && best[end].id == *unk_id_;
    if (is_unknown && last_is_unknown) {
      parts.back().first = begin;
    } else {
      parts.emplace_back(begin, end);
    }
    last_is_unknown = is_unknown;
    end = begin;
  }
  SliceMeter slices;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!slices.GoOn(part->first)) return SegmentationStopped();
    SKEIN_RETURN_IF_ERROR(Emit(piece, part->first, part->second, tokens));
  }
  return Status::Ok();
}

}  // namespace skein
