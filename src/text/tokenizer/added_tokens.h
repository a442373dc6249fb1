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
  bool normalized = false;   // is searched in the normalized text
  bool special = false;      // control token
  std::string spelling;      // the decoded text: content, normalized if `normalized`; set by Create
};

// The tokens that are found as whole strings in a text, before the model sees it. Immutable.
class AddedTokens {
 public:
  // with the id of the added token there, if any.
  struct Segment {
    size_t begin, end;
    std::optional<TokenId> id;
  };

  // Fails with kInvalidArgument unless the ids are those that the reference assigns.
  static Result<AddedTokens> Create(
      std::vector<AddedToken> tokens, size_t num_model_tokens,
      const std::function<std::optional<TokenId>(std::string_view)>& model_token_to_id,
      const Normalizer& normalizer);

  // Cuts a text at the tokens whose `normalized` equals the argument: leftmost first, and the
  // longest at a position. Calls `visit(segment)`, which returns a Status, for each part until one
  // fails. Segments may be empty. They may overlap where two tokens include the same white space.
  // `as_text`: the special tokens that are not found.
  template <typename Visit>
  Status ForEachSegment(const CharClasses& classes, std::string_view text, bool normalized,
                        const SpecialAsText& as_text, Visit visit) const {
    size_t done = 0;  // everything before it was visited
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
  // The same segments as a list.
  void Split(const CharClasses& classes, std::string_view text, bool normalized,
             const SpecialAsText& as_text, std::vector<Segment>* segments) const;
  // Each position at which the longest token that begins there is special.
  std::vector<size_t> FindSpecial(std::string_view text) const;
  // Whether a token takes white space around it, which may have any length.
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
    // The first position >= `pos` at which a pattern may start, or text.size().
    size_t FindStart(std::string_view text, size_t pos) const;
    // The token of the longest pattern that starts at `pos`, with its *end; nullptr if none does.
    const AddedToken* Match(std::string_view text, size_t pos, size_t* end) const;

   private:
    struct Node {
      char byte = 0;                      // the byte on the edge from the parent
      uint32_t child = 0, sibling = 0;    // the first child; the next child of the parent; 0: none
      const AddedToken* token = nullptr;  // the token that ends at this node
    };
    uint32_t FindChild(uint32_t node, char byte) const;

    std::vector<Node> nodes_{1};
    std::array<bool, 256> starts_{};   // first bytes of patterns
    std::array<bool, 256> seconds_{};  // second bytes; all if a pattern has one byte only
    int num_starts_ = 0;
    char start_ = 0;  // the last first byte of a pattern
  };

  AddedTokens() = default;
  // Finds the next token at or behind *pos. Its segment includes the white space that it takes, but
  // none before `done`. *pos moves behind the token itself. False if there is none.
  bool FindNext(const CharClasses& classes, std::string_view text, bool normalized,
                const SpecialAsText& as_text, size_t done, size_t* pos, Segment* found) const;

  std::vector<AddedToken> tokens_;  // the matchers point into it
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<int32_t> by_id_;  // [max_id_ + 1]: index in tokens_; -1: none
  std::unordered_set<std::string> special_;
  Matcher plain_, normalized_;
  TokenId max_id_ = -1;
};

// The same for a normalized segment of a text: its positions are not those of the text, so all
// its special tokens are text if any is.
SpecialAsText InsideOf(const AddedTokens::Segment& segment, const SpecialAsText& as_text);

}  // namespace skein
