#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

// A piece of one call. The first piece of a call has its name.
struct ToolCallDelta {
  int32_t index = 0;      // the call's number in the answer
  std::string name;       // of the function; empty: more of the arguments
  std::string arguments;  // JSON text
};

// A whole call.
struct ToolCall {
  int32_t index = 0;
  std::string name;
  std::string arguments;  // JSON text
};

// Joins the pieces of calls, which come in order.
std::vector<ToolCall> WholeCalls(const std::vector<ToolCallDelta>& deltas);

// Reads one call, a JSON object with a name and with arguments, as its characters arrive:
//
//   {"name": "add", "arguments": {"a": 1}}      "parameters" is another name of arguments
//
// The arguments are passed on while they arrive if the name has come before them. One thread.
class CallScanner {
 public:
  enum class State { kReading, kDone, kBad };

  // `names`, if not null, are those of the only functions, and must outlive the scanner.
  CallScanner(int32_t index, const std::vector<std::string>* names)
      : index_(index), names_(names) {}
  // Begins in front of the arguments of the function `name`: no object is around them.
  CallScanner(int32_t index, std::string name);

  // Reads the next character, the first of which is the object's '{'. kBad: it is no call.
  State Push(char c, std::vector<ToolCallDelta>* out);
  // Appends what is known of the arguments and has not been passed on.
  void Flush(std::vector<ToolCallDelta>* out);
  bool emitted() const { return emitted_; }

 private:
  enum class Part { kStart, kKey, kColon, kValue, kNext };

  State PushInValue(char c, std::vector<ToolCallDelta>* out);
  State EndValue(std::vector<ToolCallDelta>* out);
  State EndObject(std::vector<ToolCallDelta>* out);
  bool TakeFunction();  // false: no such function
  bool named() const { return !name_.empty(); }
  void Emit(std::string arguments, std::vector<ToolCallDelta>* out);

  const int32_t index_;
  const std::vector<std::string>* const names_ = nullptr;
  Part part_ = Part::kStart;
  std::string key_;
  std::string value_;  // the text of the value that is being read
  std::string name_;
  std::string arguments_;  // that came before the name
  int32_t depth_ = 0;      // of brackets inside the value
  bool in_string_ = false;
  bool escaped_ = false;
  bool bare_ = false;  // the arguments alone: no object around them
  bool has_arguments_ = false;
  bool emitted_ = false;     // a piece with the name
  size_t num_streamed_ = 0;  // bytes of value_
};

}  // namespace skein
