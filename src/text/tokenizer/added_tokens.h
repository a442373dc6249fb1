#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "skein/request.h"
#include "text/tokenizer.h"
#include "text/tokenizer/normalizer.h"
#include "text/unicode/char_classes.h"

namespace skein {

struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  // not found inside a word
  bool lstrip = false;       // the token includes white space before it
  bool rstrip = false;       // the token includes white space behind it
  bool normalized = false;   // the token is searched for in the normalized text
  bool special = false;      // control token
  std::string spelling;      // the decoded text: content, normalized if `normalized`; set by Create
};

// The tokens that are found as whole strings in a text before the model encodes the rest.
// Immutable.
class AddedTokens {
 public:
  // with the id of the added token there, if any.
  struct Segment {
    size_t begin, end;
    std::optional<TokenId> id;
  };

  // Fails with kInvalidArgument if the ids differ from those that the reference assigns.
  static Result<AddedTokens> Create(
      std::vector<AddedToken> tokens, size_t num_model_tokens,
      const std::function<std::optional<TokenId>(std::string_view)>& model_token_to_id,
      const Normalizer& normalizer);

  // Cuts a text at the tokens whose `normalized` equals the argument: the leftmost token first, and
  // the longest token at a position. Calls `visit(segment)`, which returns a Status, for each
  // segment until one call fails. Segments may be empty. Two segments overlap if their tokens
  // include the same white space. `as_text`: the special tokens that are not searched for.
  template <typename Visit>
  Status ForEachSegment(const CharClasses& classes, std::string_view text, bool normalized,
                        const SpecialAsText& as_text, Visit visit) const {
    size_t done = 0;  // the text before this position has been visited
    Segment found;
    for (size_t pos = 0; FindNext(classes, text, normalized, as_text, done, &pos, &found);) {
      if (done < found.begin) {
        SKEIN_RETURN_IF_ERROR(visit(Segment{done, found.begin, std::nullopt}));
      }
      SKEIN_RETURN_IF_ERROR(visit(found));
      done = found.end;
    }
    if (done == text.size()) return Status::Ok();
    return visit(Segment{done, text.size(), std::nullopt});
  }
  // Returns the same segments as a list.
  void Split(const CharClasses& classes, std::string_view text, bool normalized,
             const SpecialAsText& as_text, std::vector<Segment>* segments) const;
  // The positions at which the longest token is special.
  std::vector<size_t> FindSpecial(std::string_view text) const;
  // Whether a token includes the white space around it, which may have any length.
  bool TakesSpace() const;

  std::optional<TokenId> TokenToId(std::string_view token) const;
  const AddedToken* Find(TokenId id) const;  // nullptr if `id` is no added token
  // Whether skip_special_tokens drops this spelling. As in the reference, a special token is kept
  // if the normalizer has changed its spelling.
  bool IsSpecial(std::string_view spelling) const;
  TokenId max_id() const { return max_id_; }

 private:
  // A trie over bytes.
  class Matcher {
   public:
    void Add(std::string_view text, const AddedToken* token);
    // The first position at or after `pos` at which a pattern may start, or text.size().
    size_t FindStart(std::string_view text, size_t pos) const;
    // The token of the longest pattern that starts at `pos`, and its end in *end; nullptr if no
    // pattern starts there.
    const AddedToken* Match(std::string_view text, size_t pos, size_t* end) const;

   private:
    struct Node {
      char byte = 0;                      // the byte on the edge from the parent
      uint32_t child = 0, sibling = 0;    // the first child; the parent's next child; 0: none
      const AddedToken* token = nullptr;  // the token that ends at this node
    };
    uint32_t FindChild(uint32_t node, char byte) const;

    std::vector<Node> nodes_{1};
    std::array<bool, 256> starts_{};   // first bytes of patterns
    std::array<bool, 256> seconds_{};  // second bytes; all bytes if a pattern has only one
    int num_starts_ = 0;
    char start_ = 0;  // one first byte of a pattern
  };

  AddedTokens() = default;
  // Finds the next token at or after *pos. Its segment includes the white space that the token
  // takes, except for white space before `done`. *pos moves to the end of the token itself. Returns
  // false if there is no token.
  bool FindNext(const CharClasses& classes, std::string_view text, bool normalized,
                const SpecialAsText& as_text, size_t done, size_t* pos, Segment* found) const;

  std::vector<AddedToken> tokens_;  // the matchers point into it
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<int32_t> by_id_;  // [max_id_ + 1]: index in tokens_; -1: none
  std::unordered_set<std::string> special_;
  Matcher plain_, normalized_;
  TokenId max_id_ = -1;
};

// The value of `as_text` for a normalized segment. Positions in the segment are not positions in
// the text. Therefore all its special tokens are read as text if `as_text` names any.
SpecialAsText InsideOf(const AddedTokens::Segment& segment, const SpecialAsText& as_text);

}  // namespace skein
