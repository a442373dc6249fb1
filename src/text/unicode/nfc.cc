#include "text/unicode/nfc.h"

#include <algorithm>

#include "text/unicode/ascii_scan.h"
#include "text/unicode/unicode_tables.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

// Hangul syllables (Unicode, section 3.12).
constexpr uint32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr uint32_t kLCount = 19, kVCount = 21, kTCount = 28;
constexpr uint32_t kSCount = kLCount * kVCount * kTCount;

// Characters below this one do not decompose, do not combine and are never second in a composition.
constexpr uint32_t kFirstInteresting = 0xC0;

// Every character below U+0300 is stable. The first byte of such a character is lower than this.
constexpr unsigned char kFirstUnstableByte = 0xCC;

}  // namespace

Nfc::Nfc() {
  for (const CombiningClassRange& range : kCombiningClassRanges) {
    for (uint32_t c = range.first; c <= range.last; ++c) {
      combining_classes_[c] = range.combining_class;
    }
  }
  for (size_t i = 0; i < kDecompositions.size(); i += 2 + kDecompositions[i + 1]) {
    decompositions_[kDecompositions[i]] = static_cast<uint32_t>(i + 1);
  }
  for (const Composition& pair : kCompositions) {
    compositions_[uint64_t{pair.first} << 32 | pair.second] = pair.composed;
  }
  FindUnstableCodePoints();
}

// A character is stable if it is its own normal form and its decomposition begins with a starter
// that never composes with a character before it. Then no change crosses the border before the
// character, and only an unstable character after it can change it.
void Nfc::FindUnstableCodePoints() {
  unstable_.assign(0x110000 / 64, 0);
  const auto set = [this](uint32_t c) { unstable_[c >> 6] |= uint64_t{1} << (c & 63); };
  for (const auto& [c, combining_class] : combining_classes_) set(c);
  for (const Composition& pair : kCompositions) set(pair.second);
  for (uint32_t c = kVBase; c < kVBase + kVCount; ++c) set(c);
  for (uint32_t c = kTBase; c < kTBase + kTCount; ++c) set(c);
  for (const auto& [c, index] : decompositions_) {
    std::string text, normalized;
    AppendUtf8(c, &text);
    NormalizeSpan(text, &normalized);
    if (normalized != text || !IsStable(kDecompositions[index + 1])) set(c);
  }
}

size_t Nfc::FindUnstable(std::string_view text, size_t pos) const {
  while ((pos = FindAtLeast(text, pos, kFirstUnstableByte)) < text.size()) {
    const size_t begin = pos;
    if (!IsStable(NextCodePoint(text, &pos))) return begin;
  }
  return pos;
}

uint8_t Nfc::CombiningClass(uint32_t c) const {
  if (c < kFirstInteresting) return 0;
  const auto it = combining_classes_.find(c);
  return it == combining_classes_.end() ? 0 : it->second;
}

void Nfc::Decompose(uint32_t c, std::vector<uint32_t>* out) const {
  if (c < kFirstInteresting) {
    out->push_back(c);
    return;
  }
  if (c >= kSBase && c < kSBase + kSCount) {
    const uint32_t s = c - kSBase;
    out->push_back(kLBase + s / (kVCount * kTCount));
    out->push_back(kVBase + s % (kVCount * kTCount) / kTCount);
    if (s % kTCount != 0) out->push_back(kTBase + s % kTCount);
    return;
  }
  const auto it = decompositions_.find(c);
  if (it == decompositions_.end()) {
    out->push_back(c);
    return;
  }
  const uint32_t length = kDecompositions[it->second];
  for (uint32_t i = 1; i <= length; ++i) out->push_back(kDecompositions[it->second + i]);
}

uint32_t Nfc::Compose(uint32_t first, uint32_t second) const {
  if (first >= kLBase && first < kLBase + kLCount && second >= kVBase &&
      second < kVBase + kVCount) {
    return kSBase + ((first - kLBase) * kVCount + (second - kVBase)) * kTCount;
  }
  if (first >= kSBase && first < kSBase + kSCount && (first - kSBase) % kTCount == 0 &&
      second > kTBase && second < kTBase + kTCount) {
    return first + (second - kTBase);
  }
  const auto it = compositions_.find(uint64_t{first} << 32 | second);
  return it == compositions_.end() ? 0 : it->second;
}

std::string Nfc::Normalize(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  size_t done = 0;
  for (size_t pos = 0; (pos = FindUnstable(text, pos)) < text.size();) {
    // The span reaches from the last stable character before `pos` to the next stable one after it.
    size_t begin = pos;
    if (begin > done) {
      do {
        --begin;
      } while (IsContinuationByte(text[begin]));
    }
    result.append(text.substr(done, begin - done));
    size_t end = pos;
    while (end < text.size()) {
      size_t next = end;
      if (IsStable(NextCodePoint(text, &next))) break;
      end = next;
    }
    NormalizeSpan(text.substr(begin, end - begin), &result);
    done = pos = end;
  }
  result.append(text.substr(done));
  return result;
}

void Nfc::NormalizeSpan(std::string_view text, std::string* out) const {
  std::vector<uint32_t> code_points;
  code_points.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) Decompose(NextCodePoint(text, &pos), &code_points);

  // Canonical order sorts runs of marks by class, stably.
  std::vector<uint8_t> classes(code_points.size());
  for (size_t i = 0; i < code_points.size(); ++i) classes[i] = CombiningClass(code_points[i]);
  for (size_t i = 0; i < code_points.size();) {
    size_t end = i;
    while (end < code_points.size() && classes[end] != 0) ++end;
    if (end - i > 1) {
      std::stable_sort(
          code_points.begin() + i, code_points.begin() + end,
          [this](uint32_t a, uint32_t b) { return CombiningClass(a) < CombiningClass(b); });
      for (size_t k = i; k < end; ++k) classes[k] = CombiningClass(code_points[k]);
    }
    i = std::max(end, i + 1);
  }

  // Composition works in place: code_points[0, kept) is the result so far, and `starter` is the
  // position of its last starter.
  size_t kept = 0;
  size_t starter = code_points.size();  // no starter yet
  uint8_t last_class = 0;               // of the last mark kept after the starter
  for (size_t i = 0; i < code_points.size(); ++i) {
    const uint32_t c = code_points[i];
    const bool adjacent = starter < kept && starter + 1 == kept;
    if (starter < kept && (adjacent || last_class < classes[i])) {
      if (const uint32_t composed = Compose(code_points[starter], c); composed != 0) {
        code_points[starter] = composed;
        continue;
      }
    }
    if (classes[i] == 0) starter = kept;
    last_class = classes[i];
    code_points[kept++] = c;
  }
  for (size_t i = 0; i < kept; ++i) AppendUtf8(code_points[i], out);
}

}  // namespace skein
