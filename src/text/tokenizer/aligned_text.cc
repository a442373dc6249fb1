#include "text/tokenizer/aligned_text.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

AlignedText::AlignedText(std::string_view original)
    : text_(original), length_(static_cast<uint32_t>(original.size())) {
  SKEIN_CHECK(original.size() <= UINT32_MAX);
  spans_.reserve(original.size());
  for (size_t pos = 0; pos < original.size();) {
    const size_t begin = pos;
    NextCodePoint(original, &pos);
    const OriginalSpan span = {static_cast<uint32_t>(begin), static_cast<uint32_t>(pos)};
    spans_.insert(spans_.end(), pos - begin, span);
  }
}

OriginalSpan AlignedText::ToOriginal(size_t begin, size_t end) const {
  const OriginalSpan same = {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  if (begin == end) return {begin_ + same.begin, begin_ + same.end};
  if (begin > end || end > spans_.size()) return same;
  return {spans_[begin].begin, spans_[end - 1].end};
}

AlignedText AlignedText::Slice(size_t begin, size_t end) const {
  SKEIN_CHECK(begin < end && end <= text_.size());
  AlignedText slice;
  slice.text_ = text_.substr(begin, end - begin);
  slice.spans_.assign(spans_.begin() + begin, spans_.begin() + end);
  const OriginalSpan original = ToOriginal(begin, end);
  slice.begin_ = original.begin;
  const uint32_t first = original.begin - begin_, last = original.end - begin_;
  slice.length_ = first <= last && last <= length_ ? last - first : 0;
  return slice;
}

bool AlignedText::WholeRange(size_t* begin, size_t* end) const {
  *begin = *end = 0;
  if (length_ == 0) return true;
  bool has_begin = false, has_end = false;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const OriginalSpan span = {spans_[i].begin - begin_, spans_[i].end - begin_};
    if (span.end > length_) break;
    if (!has_begin && span.begin != span.end) {
      has_begin = true;
      *begin = i;
    }
    has_end = true;
    *end = i + 1;
  }
  if (!has_begin) *begin = *end;
  return has_end;
}

void AlignedText::Transform(std::span<const CharChange> chars, size_t num_removed) {
  size_t range_begin = 0, range_end = 0;
  if (!WholeRange(&range_begin, &range_end)) return;
  size_t pos = range_begin;  // of the next character of the old text
  const auto skip = [&](size_t count) {
    for (; count > 0 && pos < range_end; --count) NextCodePoint(text_, &pos);
  };
  skip(num_removed);
  std::string text = text_.substr(0, range_begin);
  std::vector<OriginalSpan> spans(spans_.begin(), spans_.begin() + range_begin);
  spans.reserve(spans_.size());
  for (const CharChange& c : chars) {
    OriginalSpan span = {begin_, begin_};
    if (c.change > 0) {
      if (pos > 0) span = spans_[pos - 1];
    } else if (pos < spans_.size()) {
      span = spans_[pos];
      skip(1 + static_cast<size_t>(-c.change));
    }
    const size_t size = text.size();
    AppendUtf8(c.code_point, &text);
    spans.insert(spans.end(), text.size() - size, span);
  }
  text.append(text_, range_end);
  spans.insert(spans.end(), spans_.begin() + range_end, spans_.end());
  text_ = std::move(text);
  spans_ = std::move(spans);
}

void AlignedText::Replace(const std::vector<std::pair<size_t, size_t>>& ranges,
                          std::string_view content) {
  if (ranges.empty()) return;
  std::string text;
  std::vector<OriginalSpan> spans;
  size_t done = 0;
  const auto keep_until = [&](size_t end) {
    text.append(text_, done, end - done);
    spans.insert(spans.end(), spans_.begin() + done, spans_.begin() + end);
  };
  for (const auto& [begin, end] : ranges) {
    keep_until(begin);
    text.append(content);
    // The new characters count as additions after the removed ones: they stand for the last removed
    // character.
    spans.insert(spans.end(), content.size(), spans_[end - 1]);
    done = end;
  }
  keep_until(text_.size());
  text_ = std::move(text);
  spans_ = std::move(spans);
}

void AlignedText::Prepend(std::string_view prefix) {
  if (text_.empty()) return;
  text_.insert(0, prefix);
  spans_.insert(spans_.begin(), prefix.size(), spans_.front());
}

}  // namespace skein
