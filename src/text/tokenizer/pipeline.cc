#include "text/tokenizer/pipeline.h"

#include <algorithm>

#include "base/interrupt/work_pause.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

constexpr uint32_t kSpaceLetter = 0x120;  // the letter that spells a space in the byte alphabet

using Sequence = PostProcessor::Sequence;

// Turns byte offsets in `text` into code point offsets, as the reference does. An alignment may
// lead beyond the end of the text; offsets of a token that begins there stay as they are.
template <typename Tokens>
void ToCodePoints(std::string_view text, Tokens* tokens) {
  std::vector<uint32_t> index(text.size());  // [byte]: the number of its character
  uint32_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsContinuationByte(text[i])) ++count;
    index[i] = count - 1;
  }
  for (auto& token : *tokens) {
    const auto [begin, end] = token.offsets;
    if (begin >= index.size()) continue;
    if (end < index.size()) {
      token.offsets = {index[begin], index[end]};
    } else {
      const size_t last = size_t{end} - 1;
      token.offsets = {index[begin], (last < index.size() ? index[last] : index[begin] + 1) + 1};
    }
  }
}

// Computes the number of tokens of each text that are kept.
Status Fit(const Truncation& truncation, bool is_pair, size_t num_special, size_t* num_first,
           size_t* num_second) {
  using Strategy = Truncation::Strategy;
  if (truncation.max_length < num_special) {
    return Status(StatusCode::kInvalidArgument,
                  "truncation: max_length is " + std::to_string(truncation.max_length) +
                      ", but there are " + std::to_string(num_special) + " special tokens");
  }
  const size_t room = truncation.max_length - num_special;
  if (room == 0) {
    *num_first = *num_second = 0;
    return Status::Ok();
  }
  if (*num_first + *num_second <= room) return Status::Ok();
  const size_t num_removed = *num_first + *num_second - room;
  if (truncation.strategy == Strategy::kLongestFirst) {
    if (!is_pair) {
      *num_first = room;
      return Status::Ok();
    }
    size_t& shorter = *num_first <= *num_second ? *num_first : *num_second;
    size_t& longer = *num_first <= *num_second ? *num_second : *num_first;
    if (shorter > room / 2) {  // both texts are cut; the longer one may keep one token more
      shorter = room / 2;
      longer = shorter + room % 2;
    } else {
      longer = room - shorter;
    }
    return Status::Ok();
  }
  const bool is_second = truncation.strategy == Strategy::kOnlySecond;
  if (is_second && !is_pair) {
    return Status(StatusCode::kInvalidArgument, "truncation: only_second without a second text");
  }
  size_t& target = is_second ? *num_second : *num_first;
  if (target <= num_removed) {
    return Status(StatusCode::kInvalidArgument,
                  "truncation: the text to cut has " + std::to_string(target) + " tokens, but " +
                      std::to_string(num_removed) + " must go and one must stay");
  }
  target -= num_removed;
  return Status::Ok();
}

template <typename Token>
void Cut(size_t size, Truncation::Direction direction, std::vector<Token>* tokens) {
  if (tokens->size() <= size) return;
  if (direction == Truncation::Direction::kLeft) {
    tokens->erase(tokens->begin(), tokens->end() - size);
  } else {
    tokens->resize(size);
  }
}

}  // namespace

Pipeline::Pipeline(const TokenizerParts* parts)
    : parts_(*parts),
      bpe_pieces_(parts->other_model
                      ? nullptr
                      : std::make_unique<BpePieces>(&parts->bpe, parts->bpe_unknowns)),
      model_(parts->other_model ? *parts->other_model : *bpe_pieces_) {}

void Pipeline::CountSpaces(std::string_view spelling, Token* token) const {
  if (parts_.post_processor.trims().empty()) return;
  uint32_t num_chars = 0, trailing = 0, leading = 0;
  for (size_t pos = 0; pos < spelling.size(); ++num_chars) {
    const uint32_t c = NextCodePoint(spelling, &pos);
    const bool is_space = c == kSpaceLetter || parts_.classes->IsSpace(c);
    if (is_space && leading == num_chars) ++leading;
    trailing = is_space ? trailing + 1 : 0;
  }
  token->num_leading_spaces = leading;
  token->num_trailing_spaces = trailing;
}

void Pipeline::AddFound(const AlignedText& text, TokenId id, std::vector<Token>* tokens) const {
  const OriginalSpan span = text.ToOriginal(0, text.text().size());
  Token token = {id, {span.begin, span.end}, 0, 0};
  CountSpaces(text.text(), &token);
  tokens->push_back(token);
}

Status Pipeline::RunSegment(AlignedText segment, const SpecialAsText& as_text,
                            std::vector<Token>* tokens) const {
  SKEIN_RETURN_IF_ERROR(parts_.normalizer.Normalize(&segment));
  std::vector<AddedTokens::Segment> parts;
  parts_.added_tokens.Split(*parts_.classes, segment.text(), true, as_text, &parts);
  std::vector<AlignedText> pieces;
  std::vector<PieceToken> found;
  SliceMeter part_slices;
  for (const AddedTokens::Segment& part : parts) {
    if (part.begin == part.end) continue;
    if (!part_slices.GoOn(part.begin)) break;
    if (part.id) {
      AddFound(segment.Slice(part.begin, part.end), *part.id, tokens);
      continue;
    }
    pieces.clear();
    pieces.push_back(segment.Slice(part.begin, part.end));
    SKEIN_RETURN_IF_ERROR(parts_.pre_tokenizer.Run(&pieces));
    size_t done = 0;
    SliceMeter slices;
    for (const AlignedText& piece : pieces) {
      if (piece.text().empty()) continue;
      if (!slices.GoOn(done)) break;
      done += piece.text().size();
      found.clear();
      SKEIN_RETURN_IF_ERROR(model_.Tokenize(piece.text(), &found));
      for (const PieceToken& token : found) {
        const OriginalSpan span = piece.ToOriginal(token.begin, token.end);
        tokens->push_back({token.id, {span.begin, span.end}, 0, 0});
        const std::string_view text = piece.text();
        CountSpaces(model_.is_unknown_text(token.id)
                        ? text.substr(token.begin, token.end - token.begin)
                        : model_.IdToToken(token.id),
                    &tokens->back());
      }
    }
  }
  return Status::Ok();
}

Status Pipeline::Run(std::string_view text, const SpecialAsText& as_text,
                     std::vector<Token>* tokens) const {
  const AlignedText input(text);
  std::vector<AddedTokens::Segment> segments;
  parts_.added_tokens.Split(*parts_.classes, text, false, as_text, &segments);
  SliceMeter slices;
  for (const AddedTokens::Segment& segment : segments) {
    if (segment.begin == segment.end) continue;
    if (!slices.GoOn(segment.begin)) break;
    AlignedText slice = input.Slice(segment.begin, segment.end);
    if (segment.id) {
      AddFound(slice, *segment.id, tokens);
    } else {
      SKEIN_RETURN_IF_ERROR(RunSegment(std::move(slice), InsideOf(segment, as_text), tokens));
    }
  }
  return Status::Ok();
}

Status Pipeline::AppendIds(std::string_view text, const SpecialAsText& as_text,
                           std::vector<TokenId>* ids) const {
  std::vector<Token> tokens;
  SKEIN_RETURN_IF_ERROR(Run(text, as_text, &tokens));
  for (const Token& token : tokens) ids->push_back(token.id);
  return Status::Ok();
}

Status Pipeline::EncodeOne(const Tokenizer& tokenizer, std::string_view text,
                           const EncodeOptions& options, std::vector<Token>* tokens) const {
  const SpecialAsText as_text{.all = options.special_as_text, .at = {}};
  if (!options.with_offsets) {
    std::vector<TokenId> ids;
    SKEIN_RETURN_IF_ERROR(tokenizer.EncodeWith(text, as_text, /*add_special_tokens=*/false, &ids));
    tokens->reserve(ids.size());
    for (const TokenId id : ids) tokens->push_back({id, {0, 0}, 0, 0});
    return Status::Ok();
  }
  if (!IsValidUtf8(text)) {
    return Status(StatusCode::kInvalidArgument, "the text is not valid UTF-8");
  }
  SKEIN_RETURN_IF_ERROR(Run(text, as_text, tokens));
  ToCodePoints(text, tokens);
  return Status::Ok();
}

void Pipeline::TrimOffsets(bool is_second, bool special, std::vector<Token>* tokens) const {
  for (const PostProcessor::Trim& trim : parts_.post_processor.trims()) {
    const bool is_behind_special = special && trim.is_behind_special[is_second];
    for (size_t i = 0; i < tokens->size(); ++i) {
      Token& token = (*tokens)[i];
      auto& [begin, end] = token.offsets;
      uint32_t leading = token.num_leading_spaces;
      const bool is_first = (i == 0 && !is_behind_special) || begin == 0;
      if (is_first && trim.add_prefix_space && leading == 1) leading = 0;
      if (leading > 0) begin = std::min(begin + leading, end);
      if (token.num_trailing_spaces > 0 && end >= token.num_trailing_spaces) {
        end = std::max(end - token.num_trailing_spaces, begin);
      }
    }
  }
}

Status Pipeline::EncodeFull(const Tokenizer& tokenizer, const EncodeInput& input,
                            const EncodeOptions& options, Encoding* encoding) const {
  const bool special = options.add_special_tokens;
  std::vector<Token> texts[2];
  SKEIN_RETURN_IF_ERROR(EncodeOne(tokenizer, input.text, options, &texts[0]));
  if (input.pair) {
    SKEIN_RETURN_IF_ERROR(EncodeOne(tokenizer, *input.pair, options, &texts[1]));
  }
  const std::vector<PostProcessor::Part> layout =
      parts_.post_processor.Layout(input.pair.has_value());
  if (options.truncation) {
    size_t num_special = 0;
    for (const PostProcessor::Part& part : layout) num_special += special ? part.ids.size() : 0;
    size_t num_kept[2] = {texts[0].size(), texts[1].size()};
    SKEIN_RETURN_IF_ERROR(
        Fit(*options.truncation, input.pair.has_value(), num_special, &num_kept[0], &num_kept[1]));
    for (int i : {0, 1}) Cut(num_kept[i], options.truncation->direction, &texts[i]);
  }
  *encoding = Encoding();
  const auto add = [&](const Token& token, int32_t type_id, bool is_special) {
    encoding->ids.push_back(token.id);
    encoding->type_ids.push_back(type_id);
    encoding->is_special.push_back(is_special);
    if (options.with_offsets) encoding->offsets.push_back(token.offsets);
  };
  for (int i : {0, 1}) TrimOffsets(i == 1, special, &texts[i]);
  for (const PostProcessor::Part& part : layout) {
    if (part.sequence != Sequence::kSpecial) {
      for (const Token& token : texts[part.sequence == Sequence::kB])
        add(token, part.type_id, false);
    } else if (special) {
      for (const TokenId id : part.ids) add({id, {0, 0}, 0, 0}, part.type_id, true);
    }
  }
  return Status::Ok();
}

}  // namespace skein
