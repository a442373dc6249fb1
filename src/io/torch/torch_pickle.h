#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace skein {

// One value of a pickle. The others are named by their index in Pickle::values.
struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,     // integer: 0 or 1
    kInteger,  // integer
    kReal,     // real
    kString,   // text
    kList,     // items; tuples are lists
    kDict,     // items: key, value, key, value
    kGlobal,   // text: "torch FloatStorage"
    kStorage,  // text: its name in the archive; storage_type
    kTensor,   // storage, offset, shape, stride
    kMark,     // an opening bracket of the stack
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text = {};
  std::vector<size_t> items = {};
  std::string storage_type = {};  // "FloatStorage"
  size_t storage = 0;
  int64_t offset = 0;  // in elements
  std::vector<int64_t> shape = {}, stride = {};
};

struct Pickle {
  std::vector<PickleValue> values;
  size_t root = 0;
};

// Reads a pickle of plain data and tensors, as torch.save writes one. No code of the pickle runs:
// the only callables are those that make an ordered dictionary or a tensor of storages in the
// archive. kUnsupported names any other callable or operation; kInvalidArgument for a pickle that
// ends early or does not fit together. `name` is the document's name in messages. At most
// kPickleValuesMax values.
inline constexpr size_t kPickleValuesMax = size_t{1} << 20;
Result<Pickle> ReadPickle(std::span<const std::byte> bytes, const std::string& name);

}  // namespace skein
