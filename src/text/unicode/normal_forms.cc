#include "text/unicode/normal_forms.h"

#include <algorithm>
#include <optional>

#include "text/unicode/normalizer_tables.h"

namespace skein {

NormalForms::NormalForms(bool with_compatible) {
  if (!with_compatible) return;
  for (size_t i = 0; i < kCompatibilityDecompositions.size();
       i += 2 + kCompatibilityDecompositions[i + 1]) {
    compatible_[kCompatibilityDecompositions[i]] = static_cast<uint32_t>(i + 1);
  }
  for (const CodePointPair& pair : kCompatibilitySingles) compatible_singles_[pair.from] = pair.to;
}

void NormalForms::Decompose(uint32_t c, bool compatible, std::vector<CharChange>* out) const {
  if (compatible) {
    if (const auto it = compatible_singles_.find(c); it != compatible_singles_.end()) {
      out->push_back({it->second, 0});
      return;
    }
    if (const auto it = compatible_.find(c); it != compatible_.end()) {
      const uint32_t length = kCompatibilityDecompositions[it->second];
      for (uint32_t i = 1; i <= length; ++i) {
        out->push_back({kCompatibilityDecompositions[it->second + i], i == 1 ? 0 : 1});
      }
      return;
    }
  }
  std::vector<uint32_t> parts;
  nfc_.Decompose(c, &parts);
  for (size_t i = 0; i < parts.size(); ++i) out->push_back({parts[i], i == 0 ? 0 : 1});
}

// Canonical composition (Unicode, section 3.11). A composed character replaces all old characters
// that its parts replaced.
std::vector<CharChange> NormalForms::Compose(const std::vector<CharChange>& chars) const {
  std::vector<CharChange> out, waiting;  // marks after the starter that did not compose with it
  std::optional<CharChange> starter;
  uint8_t last_class = 0;  // of the last waiting mark
  const auto flush = [&] {
    if (starter) out.push_back(*starter);
    out.insert(out.end(), waiting.begin(), waiting.end());
    waiting.clear();
  };
  for (const CharChange& c : chars) {
    const uint8_t combining_class = nfc_.CombiningClass(c.code_point);
    if (!starter) {
      if (combining_class == 0) {
        starter = c;
      } else {
        out.push_back(c);
      }
      continue;
    }
    if (waiting.empty() || last_class < combining_class) {
      const uint32_t composed = nfc_.Compose(starter->code_point, c.code_point);
      if (composed != 0) {
        starter = CharChange{composed, starter->change + c.change - 1};
        continue;
      }
    }
    if (combining_class == 0) {
      flush();
      starter = c;
    } else {
      waiting.push_back(c);
      last_class = combining_class;
    }
  }
  flush();
  return out;
}

void NormalForms::Run(std::string_view text, NormalForm form, std::vector<CharChange>* out) const {
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  std::vector<CharChange> chars;
  chars.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    Decompose(NextCodePoint(text, &pos), compatible, &chars);
  }
  const auto class_of = [this](const CharChange& c) { return nfc_.CombiningClass(c.code_point); };
  for (auto it = chars.begin(); it != chars.end();) {
    const auto end = std::find_if(it, chars.end(), [&](auto& c) { return class_of(c) == 0; });
    std::stable_sort(it, end, [&](auto& a, auto& b) { return class_of(a) < class_of(b); });
    it = end == chars.end() ? end : end + 1;
  }
  if (composed) chars = Compose(chars);
  out->insert(out->end(), chars.begin(), chars.end());
}

}  // namespace skein
