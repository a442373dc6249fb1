#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/aligned_text.h"
#include "text/unicode/nfc.h"

namespace skein {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// The four Unicode normalization forms with the data of the reference. Each character of the result
// comes with the characters that it replaces. Immutable.
class NormalForms {
 public:
  // `with_compatible` adds the forms NFKC and NFKD.
  explicit NormalForms(bool with_compatible);

  // Appends the characters of `text` (valid UTF-8) in `form`.
  void Run(std::string_view text, NormalForm form, std::vector<CharChange>* out) const;

 private:
  void Decompose(uint32_t c, bool compatible, std::vector<CharChange>* out) const;
  std::vector<CharChange> Compose(const std::vector<CharChange>& chars) const;

  Nfc nfc_;
  std::unordered_map<uint32_t, uint32_t> compatible_;  // code point -> index of its length
  std::unordered_map<uint32_t, uint32_t> compatible_singles_;
};

}  // namespace skein
