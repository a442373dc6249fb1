#include "server/tools/call_scanner.h"

#include <algorithm>
#include <utility>

#include "server/json/json.h"

namespace skein {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsArguments(std::string_view key) { return key == "arguments" || key == "parameters"; }

// The arguments as the text of a JSON object. Some models write them as a string that holds this
// text.
std::string ObjectText(const std::string& text) {
  if (text == "null") return "{}";
  if (!text.starts_with('"')) return text;
  const auto value = ParseJson(text);
  return value && value->is_string() ? value->get<std::string>() : text;
}

}  // namespace

std::vector<ToolCall> WholeCalls(const std::vector<ToolCallDelta>& deltas) {
  std::vector<ToolCall> calls;
  for (const ToolCallDelta& delta : deltas) {
    if (!delta.name.empty()) calls.push_back({delta.index, delta.name, {}});
    if (!calls.empty()) calls.back().arguments += delta.arguments;
  }
  return calls;
}

CallScanner::CallScanner(int32_t index, std::string name)
    : index_(index), part_(Part::kValue), key_("arguments"), name_(std::move(name)), bare_(true) {}

void CallScanner::Emit(std::string arguments, std::vector<ToolCallDelta>* out) {
  out->push_back({index_, emitted_ ? "" : name_, std::move(arguments)});
  emitted_ = true;
}

CallScanner::State CallScanner::Push(char c, std::vector<ToolCallDelta>* out) {
  switch (part_) {
    case Part::kStart:
      part_ = Part::kKey;
      return c == '{' ? State::kReading : State::kBad;
    case Part::kKey:
      // The key is read like a string value, up to its closing quote.
      if (value_.empty()) {
        if (IsSpace(c) || c == ',') return State::kReading;
        if (c == '}') return EndObject(out);
        if (c != '"') return State::kBad;
      }
      value_ += c;
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"' && value_.size() > 1) {
        const auto key = ParseJson(value_);
        if (!key) return State::kBad;
        key_ = key->get<std::string>();
        value_.clear();
        part_ = Part::kColon;
      }
      return State::kReading;
    case Part::kColon:
      if (c == ':') part_ = Part::kValue;
      return c == ':' || IsSpace(c) ? State::kReading : State::kBad;
    case Part::kValue:
      return PushInValue(c, out);
    case Part::kNext:
      if (c == ',') part_ = Part::kKey;
      if (c == '}') return EndObject(out);
      return c == ',' || IsSpace(c) ? State::kReading : State::kBad;
  }
  return State::kBad;
}

CallScanner::State CallScanner::PushInValue(char c, std::vector<ToolCallDelta>* out) {
  if (value_.empty() && IsSpace(c)) return State::kReading;
  const bool scalar = !value_.empty() && depth_ == 0 && !in_string_;
  if (scalar && (c == ',' || c == '}' || IsSpace(c))) {
    const State state = EndValue(out);
    if (state != State::kReading || IsSpace(c)) return state;
    return Push(c, out);
  }
  value_ += c;
  bool ends = false;
  if (escaped_) {
    escaped_ = false;
  } else if (in_string_) {
    escaped_ = c == '\\';
    if (c == '"') {
      in_string_ = false;
      ends = depth_ == 0;
    }
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (c == '}' || c == ']') {
    if (--depth_ < 0) return State::kBad;
    ends = depth_ == 0;
  }
  return ends ? EndValue(out) : State::kReading;
}

void CallScanner::Flush(std::vector<ToolCallDelta>* out) {
  const bool streams = part_ == Part::kValue && IsArguments(key_) && !has_arguments_ && named() &&
                       value_.starts_with('{') && num_streamed_ < value_.size();
  if (!streams) return;
  Emit(value_.substr(num_streamed_), out);
  num_streamed_ = value_.size();
}

// Handles the end of a value.
CallScanner::State CallScanner::EndValue(std::vector<ToolCallDelta>* out) {
  if (IsArguments(key_)) {
    if (has_arguments_) return State::kBad;
    if (!named()) {
      arguments_ = ObjectText(value_);
    } else if (num_streamed_ > 0) {
      Flush(out);
    } else {
      Emit(ObjectText(value_), out);
    }
    has_arguments_ = true;
  } else if (!TakeFunction()) {
    return State::kBad;
  }
  part_ = Part::kNext;
  value_.clear();
  return bare_ ? State::kDone : State::kReading;
}

// Takes a name, or the object that OpenAI's form of a call has under "function".
bool CallScanner::TakeFunction() {
  if (key_ != "name" && key_ != "function") return true;
  const auto value = ParseJson(value_);
  if (!value) return false;
  if (value->is_string()) {
    name_ = value->get<std::string>();
  } else if (value->is_object() && value->contains("name") && (*value)["name"].is_string()) {
    name_ = (*value)["name"].get<std::string>();
    for (const char* key : {"arguments", "parameters"}) {
      if (value->contains(key)) arguments_ = ObjectText(DumpJson((*value)[key]));
    }
  }
  return names_ == nullptr || std::ranges::find(*names_, name_) != names_->end();
}

CallScanner::State CallScanner::EndObject(std::vector<ToolCallDelta>* out) {
  if (!named()) return State::kBad;
  if (!emitted_) Emit(arguments_.empty() ? "{}" : std::move(arguments_), out);
  return State::kDone;
}

}  // namespace skein
