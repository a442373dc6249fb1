#include <algorithm>
#include <cmath>

#include "text/jinja/library.h"
#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

std::string JsonString(std::string_view text, bool ensure_ascii, RenderState* state) {
  std::string out = "\"";
  state->Charge(text.size());
  const auto escape = [&out](char32_t unit) {
    constexpr char kHex[] = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out.push_back(kHex[(unit >> shift) & 15]);
  };
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    const char32_t c = NextCodePoint(text, &pos);
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const size_t index = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
    if (index != std::string_view::npos) {
      out.push_back('\\');
      out.push_back(kLetters[index]);
    } else if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000 && c != 0x7F)) {
      escape(c);
    } else if (ensure_ascii && c >= 0x10000) {  // a surrogate pair
      escape(0xD800 + ((c - 0x10000) >> 10));
      escape(0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
      out.append(text.substr(start, pos - start));
    }
  }
  return out + "\"";
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, RenderState* state) : style_(style), state_(state) {}

  void Write(const Value& value) {
    if (!state_->Charge(8)) return;
    switch (value.kind()) {
      case Kind::kString:
        out_ += JsonString(value.string(), style_.ensure_ascii, state_);
        break;
      case Kind::kDict:
        return WriteDict(value.dict());
      case Kind::kSequence:
        if (value.sequence().kind == SequenceKind::kList ||
            value.sequence().kind == SequenceKind::kTuple) {
          return WriteList(value.sequence());
        }
        [[fallthrough]];
      default:
        out_ += Scalar(value);
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  std::string Scalar(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return value.boolean() ? "true" : "false";
      case Kind::kInt:
        return IntegerText(value.integer());
      case Kind::kFloat:
        if (std::isnan(value.number())) return "NaN";
        if (std::isinf(value.number())) return value.number() > 0 ? "Infinity" : "-Infinity";
        return FloatText(value.number());
      default:
        state_->Fail("Object of type " + std::string(value.TypeName()) +
                     " is not JSON serializable");
        return {};
    }
  }

  void NewLine() {
    if (!style_.indent) return;
    out_ += "\n";
    for (int i = 0; i < depth_; ++i) out_ += *style_.indent;
    state_->Charge(static_cast<size_t>(depth_) * style_.indent->size());
  }

  void Separate(bool first) {
    if (!first) out_ += style_.item_separator;
    NewLine();
  }

  void WriteList(const Sequence& list) {
    out_ += "[";
    ++depth_;
    for (size_t i = 0; i < list.items.size() && state_->ok(); ++i) {
      Separate(i == 0);
      Write(list.items[i]);
    }
    --depth_;
    if (!list.items.empty()) NewLine();
    out_ += "]";
  }

  void WriteDict(const Dict& dict) {
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items) items.push_back(&item);
    if (style_.sort_keys) {
      state_->Charge(items.size() * 16);
      std::stable_sort(items.begin(), items.end(), [this](const auto* a, const auto* b) {
        return state_->ok() && Less(a->first, b->first, state_);
      });
    }
    out_ += "{";
    ++depth_;
    for (size_t i = 0; i < items.size() && state_->ok(); ++i) {
      Separate(i == 0);
      const Value& key = items[i]->first;
      const bool is_text = key.Is(Kind::kString);
      out_ += JsonString(is_text ? key.string() : Scalar(key), style_.ensure_ascii, state_);
      out_ += style_.key_separator;
      Write(items[i]->second);
    }
    --depth_;
    if (!items.empty()) NewLine();
    out_ += "}";
  }

  const JsonStyle& style_;
  RenderState* const state_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string ToJson(const Value& value, const JsonStyle& style, RenderState* state) {
  JsonWriter writer(style, state);
  writer.Write(value);
  return writer.Take();
}

}  // namespace skein::jinja
