#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace skein {

// One value of a pickle. It refers to other values by their index in Pickle::values.
struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,     // in `integer`: 0 or 1
    kInteger,  // in `integer`
    kReal,     // in `real`
    kString,   // in `text`
    kList,     // in `items`; tuples are lists
    kDict,     // in `items`: key, value, key, value
    kGlobal,   // in `text`: "torch FloatStorage"
    kStorage,  // in `text`: its name in the archive; in storage_type: its type
    kTensor,   // in storage, offset, shape and stride
    kMark,     // an opening bracket on the stack
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

// Reads a pickle of plain data and tensors, as torch.save writes it. No code of the pickle runs:
// the only supported callables make an ordered dictionary, or a tensor of storages in the archive.
// Fails with kUnsupported, naming it, for any other callable or operation. Fails with
// kInvalidArgument if the pickle ends early or is inconsistent. Messages call the document `name`.
// At most kPickleValuesMax values are read.
inline constexpr size_t kPickleValuesMax = size_t{1} << 20;
Result<Pickle> ReadPickle(std::span<const std::byte> bytes, const std::string& name);

}  // namespace skein
