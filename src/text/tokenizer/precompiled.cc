#include "text/tokenizer/precompiled.h"

#include <algorithm>

#include "base/interrupt/work_pause.h"

namespace skein {
namespace {

// A longer grapheme cluster is replaced character by character.
constexpr size_t kMaxClusterBytes = 5;

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=') && text.size() % 4 != 1) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const int value = Base64Value(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes.push_back(static_cast<char>(bits >> num_bits & 0xFF));
    }
  }
  return bytes;
}

uint32_t ReadU32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// The following functions read the fields of a unit of the trie.
bool HasValue(uint32_t unit) { return unit >> 8 & 1; }
uint32_t ValueOf(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t LabelOf(uint32_t unit) { return unit & 0x800000FF; }
uint32_t OffsetOf(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

void AddCharacters(std::string_view text, std::vector<CharChange>* chars) {
  for (size_t pos = 0; pos < text.size();) chars->push_back({NextCodePoint(text, &pos), 0});
}

size_t CountCharacters(std::string_view text) {
  return text.size() - std::count_if(text.begin(), text.end(), IsContinuationByte);
}

// Adds a replacement. If the new text has more characters, the surplus ones are additions. If it
// has fewer, the last new character also replaces the surplus old ones, even if it stems from an
// earlier replacement. If there is no new character yet, the surplus is dropped, as in the
// reference.
void AddReplacement(std::string_view old_text, std::string_view text,
                    std::vector<CharChange>* chars) {
  AddCharacters(text, chars);
  const auto more =
      static_cast<int32_t>(CountCharacters(text)) - static_cast<int32_t>(CountCharacters(old_text));
  if (more < 0 && !chars->empty()) chars->back().change += more;
  for (int32_t i = 0; i < more; ++i) (*chars)[chars->size() - 1 - i].change = 1;
}

}  // namespace

Result<Precompiled> Precompiled::Create(std::string_view base64) {
  const auto invalid = [](const char* what) {
    return Status(StatusCode::kInvalidArgument,
                  std::string("tokenizer.json: normalizer: 'precompiled_charsmap' ") + what);
  };
  const std::optional<std::string> bytes = DecodeBase64(base64);
  if (!bytes) return invalid("is not base64");
  std::string_view rest = *bytes;
  if (rest.size() < 4) return invalid("is shorter than its header");
  const size_t num_units = ReadU32(rest) / 4;
  rest.remove_prefix(4);
  if (num_units == 0 || rest.size() / 4 < num_units) return invalid("is shorter than its trie");
  Precompiled result;
  result.trie_.reserve(num_units);
  for (size_t i = 0; i < num_units; ++i) result.trie_.push_back(ReadU32(rest.substr(4 * i)));
  result.texts_ = rest.substr(4 * num_units);
  if (!IsValidUtf8(result.texts_)) return invalid("has texts that are not UTF-8");
  return result;
}

std::optional<std::string_view> Precompiled::Find(std::string_view chunk) const {
  size_t node = OffsetOf(trie_[0]);
  for (const char c : chunk) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte == 0) break;
    node ^= byte;
    if (node >= trie_.size() || LabelOf(trie_[node]) != byte) break;
    const uint32_t unit = trie_[node];
    node ^= OffsetOf(unit);
    if (!HasValue(unit)) continue;
    const size_t begin = node < trie_.size() ? ValueOf(trie_[node]) : texts_.size();
    if (begin > texts_.size()) break;
    return std::string_view(texts_).substr(
        begin, std::min(texts_.find('\0', begin), texts_.size()) - begin);
  }
  return std::nullopt;
}

void Precompiled::Apply(AlignedText* text) const {
  const std::string_view old_text = text->text();
  std::vector<CharChange> chars;
  chars.reserve(old_text.size());
  bool modified = false;
  SliceMeter slices;
  for (size_t pos = 0; pos < old_text.size();) {
    if (!slices.GoOn(pos)) return;
    const size_t end = graphemes_.ClusterEnd(old_text, pos);
    const std::string_view cluster = old_text.substr(pos, end - pos);
    pos = end;
    if (cluster.size() <= kMaxClusterBytes) {
      if (const auto found = Find(cluster)) {
        modified = true;
        AddReplacement(cluster, *found, &chars);
        continue;
      }
    }
    for (size_t i = 0; i < cluster.size();) {
      const size_t begin = i;
      NextCodePoint(cluster, &i);
      const std::string_view character = cluster.substr(begin, i - begin);
      if (const auto found = Find(character)) {
        modified = true;
        AddReplacement(character, *found, &chars);
      } else {
        AddCharacters(character, &chars);
      }
    }
  }
  if (modified) text->Transform(chars);
}

}  // namespace skein
