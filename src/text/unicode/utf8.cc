#include "text/unicode/utf8.h"

#include <simdjson.h>

namespace skein {
namespace {

// One step through bytes that may be invalid.
struct Step {
  size_t length;  // of the character, or of the longest valid beginning of one
  enum { kWhole, kIllFormed, kCutOff } kind;
};

// Inspects the character at the start of `bytes` by the table of well-formed sequences (Unicode,
// table 3-7).
Step Inspect(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Step::kWhole};
  if (lead < 0xC2 || lead > 0xF4) return {1, Step::kIllFormed};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned low = 0x80, high = 0xBF;  // the range of the second byte
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {i, Step::kCutOff};
    if (byte(i) < low || byte(i) > high) return {i, Step::kIllFormed};
    low = 0x80;
    high = 0xBF;
  }
  return {length, Step::kWhole};
}

}  // namespace

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto add = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xC0 | code_point >> 6);
    add(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    add(0xE0 | code_point >> 12);
    add(0x80 | (code_point >> 6 & 0x3F));
    add(0x80 | (code_point & 0x3F));
  } else {
    add(0xF0 | code_point >> 18);
    add(0x80 | (code_point >> 12 & 0x3F));
    add(0x80 | (code_point >> 6 & 0x3F));
    add(0x80 | (code_point & 0x3F));
  }
}

bool IsValidUtf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

size_t IncompleteSuffixBytes(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    if (IsContinuationByte(tail[0])) continue;
    const Step step = Inspect(tail);
    return step.kind == Step::kCutOff && step.length == back ? back : 0;
  }
  return 0;
}

void AppendUtf8Lossy(std::string_view bytes, std::string* out) {
  while (!bytes.empty()) {
    const Step step = Inspect(bytes);
    if (step.kind == Step::kWhole) {
      out->append(bytes.substr(0, step.length));
    } else {
      out->append("\xEF\xBF\xBD");
    }
    bytes.remove_prefix(step.length);
  }
}

}  // namespace skein
