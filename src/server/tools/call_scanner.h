#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

// A piece of one tool call. The first piece of a call has the function's name.
struct ToolCallDelta {
  int32_t index = 0;      // the call's number in the answer
  std::string name;       // of the function; empty: the arguments go on
  std::string arguments;  // JSON text
};

// A complete tool call.
struct ToolCall {
  int32_t index = 0;
  std::string name;
  std::string arguments;  // JSON text
};

// Joins the pieces of tool calls, which come in order.
std::vector<ToolCall> WholeCalls(const std::vector<ToolCallDelta>& deltas);

// Reads one tool call, a JSON object with a name and with arguments, as its characters arrive:
//
//   {"name": "add", "arguments": {"a": 1}}      "parameters" may replace "arguments"
//
// If the name comes before the arguments, the arguments are passed on while they arrive. One
// thread.
class CallScanner {
 public:
  enum class State { kReading, kDone, kBad };

  // `names`, if not null, lists the only functions that may be called, and must outlive the
  // scanner.
  CallScanner(int32_t index, const std::vector<std::string>* names)
      : index_(index), names_(names) {}
  // Begins before the arguments of the function `name`, without an object around them.
  CallScanner(int32_t index, std::string name);

  // Reads the next character; the first must be the object's '{'. kBad: the text is not a call.
  State Push(char c, std::vector<ToolCallDelta>* out);
  // Appends the part of the arguments that is known and has not been passed on yet.
  void Flush(std::vector<ToolCallDelta>* out);
  bool emitted() const { return emitted_; }

 private:
  enum class Part { kStart, kKey, kColon, kValue, kNext };

  State PushInValue(char c, std::vector<ToolCallDelta>* out);
  State EndValue(std::vector<ToolCallDelta>* out);
  State EndObject(std::vector<ToolCallDelta>* out);
  bool TakeFunction();  // false: there is no such function
  bool named() const { return !name_.empty(); }
  void Emit(std::string arguments, std::vector<ToolCallDelta>* out);

  const int32_t index_;
  const std::vector<std::string>* const names_ = nullptr;
  Part part_ = Part::kStart;
  std::string key_;
  std::string value_;  // the text of the value that is being read, so far
  std::string name_;
  std::string arguments_;  // arguments that came before the name
  int32_t depth_ = 0;      // number of open brackets inside the value
  bool in_string_ = false;
  bool escaped_ = false;
  bool bare_ = false;  // reads only the arguments, without an object around them
  bool has_arguments_ = false;
  bool emitted_ = false;     // a piece with the name has been passed on
  size_t num_streamed_ = 0;  // bytes of value_ that have been passed on
};

}  // namespace skein
