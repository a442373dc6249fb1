#include "io/torch/torch_pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

namespace skein {
namespace {

using PickleKind = PickleValue::Kind;

// The operations. Each has the value of its byte (Python's pickletools).
enum Operation : uint8_t {
  kMarkOp = '(',
  kStop = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kNoneOp = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kGlobalOp = 'c',
  kStackGlobal = 0x93,
  kBinPersId = 'Q',
  kReduce = 'R',
  kBuild = 'b',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kFrame = 0x95,
};

constexpr std::string_view kOrderedDict = "collections OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils _rebuild_parameter";

class PickleReader {
 public:
  PickleReader(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {}

  Result<Pickle> Read() {
    for (;;) {
      SKEIN_ASSIGN_OR_RETURN(const uint64_t operation, Unsigned(1));
      if (operation == kStop) break;
      SKEIN_RETURN_IF_ERROR(Run(static_cast<uint8_t>(operation)));
      if (pickle_.values.size() > kPickleValuesMax || stack_.size() > kPickleValuesMax) {
        return Malformed("has more than " + std::to_string(kPickleValuesMax) + " values");
      }
    }
    SKEIN_ASSIGN_OR_RETURN(pickle_.root, Pop());
    return std::move(pickle_);
  }

 private:
  Status Malformed(const std::string& problem) const {
    return Status(StatusCode::kInvalidArgument, name_ + ": the pickle " + problem);
  }
  Status Foreign(const std::string& what) const {
    return Status(StatusCode::kUnsupported,
                  name_ + ": the pickle has " + what +
                      "; supported are plain data and tensors, as torch.save writes them");
  }

  // A little-endian number of `count` bytes, at most 8.
  Result<uint64_t> Unsigned(size_t count) {
    if (bytes_.size() - at_ < count) return Malformed("ends early");
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= uint64_t(bytes_[at_ + i]) << (8 * i);
    at_ += count;
    return value;
  }
  Result<std::string> Text(size_t count) {
    if (bytes_.size() - at_ < count) return Malformed("ends early");
    std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), count);
    at_ += count;
    return text;
  }
  Result<std::string> Line() {
    const size_t begin = at_;
    while (at_ < bytes_.size() && bytes_[at_] != std::byte{'\n'}) ++at_;
    if (at_ == bytes_.size()) return Malformed("ends early");
    ++at_;
    return std::string(reinterpret_cast<const char*>(bytes_.data() + begin), at_ - 1 - begin);
  }

  Result<size_t> Pop() {
    if (stack_.empty()) return Malformed("takes a value that is not there");
    const size_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  PickleValue& At(size_t index) { return pickle_.values[index]; }
  PickleValue& Push(PickleKind kind) {
    stack_.push_back(pickle_.values.size());
    pickle_.values.push_back({.kind = kind});
    return pickle_.values.back();
  }
  Status PushInteger(PickleKind kind, int64_t value) {
    Push(kind).integer = value;
    return Status::Ok();
  }

  // Removes and returns the values above the last mark. Removes the mark, too.
  Result<std::vector<size_t>> PopToMark() {
    const auto mark = std::find_if(stack_.rbegin(), stack_.rend(), [&](size_t value) {
      return At(value).kind == PickleKind::kMark;
    });
    if (mark == stack_.rend()) return Malformed("closes what it has not opened");
    std::vector<size_t> values(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return values;
  }
  // The value on top of the stack, which must have this kind.
  Result<size_t> Top(PickleKind kind) {
    if (stack_.empty() || At(stack_.back()).kind != kind) {
      return Malformed("adds to a value of another kind");
    }
    return stack_.back();
  }

  Status PushTuple(size_t count) {
    if (stack_.size() < count) return Malformed("takes a value that is not there");
    std::vector<size_t> items(stack_.end() - static_cast<int64_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    Push(PickleKind::kList).items = std::move(items);
    return Status::Ok();
  }

  // Adds `items` to the list or dictionary on top of the stack.
  Status Add(PickleKind kind, const std::vector<size_t>& items) {
    SKEIN_ASSIGN_OR_RETURN(const size_t into, Top(kind));
    if (kind == PickleKind::kDict && items.size() % 2 != 0)
      return Malformed("has a key without a value");
    At(into).items.insert(At(into).items.end(), items.begin(), items.end());
    return Status::Ok();
  }
  Status AddMarked(PickleKind kind) {
    SKEIN_ASSIGN_OR_RETURN(const std::vector<size_t> items, PopToMark());
    return Add(kind, items);
  }
  Status AddLast(PickleKind kind, size_t count) {
    std::vector<size_t> items(count);
    for (size_t i = count; i-- > 0;) {
      SKEIN_ASSIGN_OR_RETURN(items[i], Pop());
    }
    return Add(kind, items);
  }

  Status Run(uint8_t operation) {
    switch (operation) {
      case kProto:
        return Unsigned(1).status();
      case kFrame:
        return Unsigned(8).status();
      case kMarkOp:
        Push(PickleKind::kMark);
        return Status::Ok();
      case kEmptyList:
      case kEmptyTuple:
        Push(PickleKind::kList);
        return Status::Ok();
      case kEmptyDict:
        Push(PickleKind::kDict);
        return Status::Ok();
      case kNoneOp:
        Push(PickleKind::kNone);
        return Status::Ok();
      case kAppend:
        return AddLast(PickleKind::kList, 1);
      case kAppends:
        return AddMarked(PickleKind::kList);
      case kSetItem:
        return AddLast(PickleKind::kDict, 2);
      case kSetItems:
        return AddMarked(PickleKind::kDict);
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return PushTuple(size_t{operation} - kTuple1 + 1);
      case kTuple: {
        SKEIN_ASSIGN_OR_RETURN(std::vector<size_t> items, PopToMark());
        Push(PickleKind::kList).items = std::move(items);
        return Status::Ok();
      }
      case kBinPersId:
        return MakeStorage();
      case kReduce:
        return Reduce();
      case kBuild:
        // Ignores the attributes of an ordered dictionary, such as the versions of modules.
        SKEIN_RETURN_IF_ERROR(Pop().status());
        return Top(PickleKind::kDict).status();
      default:
        return RunScalar(operation);
    }
  }

  Status RunScalar(uint8_t operation) {
    switch (operation) {
      case kNewTrue:
      case kNewFalse:
        return PushInteger(PickleKind::kBool, operation == kNewTrue);
      case kBinInt1:
      case kBinInt2: {
        SKEIN_ASSIGN_OR_RETURN(const uint64_t value, Unsigned(operation == kBinInt1 ? 1 : 2));
        return PushInteger(PickleKind::kInteger, static_cast<int64_t>(value));
      }
      case kBinInt: {
        SKEIN_ASSIGN_OR_RETURN(const uint64_t value, Unsigned(4));
        return PushInteger(PickleKind::kInteger, static_cast<int32_t>(value));
      }
      case kLong1:
        return PushLong();
      case kBinFloat: {
        SKEIN_ASSIGN_OR_RETURN(const uint64_t bits, Unsigned(8));
        uint64_t big_endian = 0;
        for (int i = 0; i < 8; ++i) big_endian |= (bits >> (8 * i) & 0xff) << (56 - 8 * i);
        Push(PickleKind::kReal).real = std::bit_cast<double>(big_endian);
        return Status::Ok();
      }
      case kBinUnicode:
      case kShortBinUnicode: {
        SKEIN_ASSIGN_OR_RETURN(const uint64_t count, Unsigned(operation == kBinUnicode ? 4 : 1));
        SKEIN_ASSIGN_OR_RETURN(std::string text, Text(count));
        Push(PickleKind::kString).text = std::move(text);
        return Status::Ok();
      }
      default:
        return RunName(operation);
    }
  }

  // Runs an operation on globals, or on the table of reused values.
  Status RunName(uint8_t operation) {
    switch (operation) {
      case kGlobalOp: {
        SKEIN_ASSIGN_OR_RETURN(const std::string module, Line());
        SKEIN_ASSIGN_OR_RETURN(const std::string attribute, Line());
        Push(PickleKind::kGlobal).text = module + " " + attribute;
        return Status::Ok();
      }
      case kStackGlobal: {
        SKEIN_ASSIGN_OR_RETURN(const size_t attribute, Pop());
        SKEIN_ASSIGN_OR_RETURN(const size_t module, Pop());
        const std::string text = At(module).text + " " + At(attribute).text;
        Push(PickleKind::kGlobal).text = text;
        return Status::Ok();
      }
      case kBinPut:
      case kLongBinPut: {
        SKEIN_ASSIGN_OR_RETURN(const uint64_t key, Unsigned(operation == kBinPut ? 1 : 4));
        return Memoize(key);
      }
      case kMemoize:
        return Memoize(memo_.size());
      case kBinGet:
      case kLongBinGet: {
        SKEIN_ASSIGN_OR_RETURN(const uint64_t key, Unsigned(operation == kBinGet ? 1 : 4));
        const auto found = memo_.find(key);
        if (found == memo_.end()) return Malformed("uses a value that is not there");
        stack_.push_back(found->second);
        return Status::Ok();
      }
      default:
        return Foreign("the operation " + std::to_string(operation));
    }
  }

  Status PushLong() {
    SKEIN_ASSIGN_OR_RETURN(const uint64_t count, Unsigned(1));
    if (count > 8) return Malformed("has an integer beyond 64 bits");
    SKEIN_ASSIGN_OR_RETURN(uint64_t value, Unsigned(count));
    const bool negative = count > 0 && count < 8 && (value >> (8 * count - 1) & 1) != 0;
    if (negative) value |= ~uint64_t{0} << (8 * count);
    return PushInteger(PickleKind::kInteger, static_cast<int64_t>(value));
  }

  Status Memoize(uint64_t key) {
    if (stack_.empty()) return Malformed("takes a value that is not there");
    memo_[key] = stack_.back();
    return Status::Ok();
  }

  // Makes a storage of the tuple ("storage", type of the storage, name, device, number of
  // elements).
  Status MakeStorage() {
    SKEIN_ASSIGN_OR_RETURN(const size_t index, Pop());
    const std::vector<size_t> parts = At(index).items;
    constexpr std::string_view kTorch = "torch ";
    if (At(index).kind != PickleKind::kList || parts.size() != 5 ||
        At(parts[0]).text != "storage" || At(parts[1]).kind != PickleKind::kGlobal ||
        !At(parts[1]).text.starts_with(kTorch) || At(parts[2]).kind != PickleKind::kString) {
      return Foreign("a reference that is no storage of a tensor");
    }
    std::string type = At(parts[1]).text.substr(kTorch.size());
    std::string text = At(parts[2]).text;
    PickleValue& storage = Push(PickleKind::kStorage);
    storage.storage_type = std::move(type);
    storage.text = std::move(text);
    return Status::Ok();
  }

  Status Reduce() {
    SKEIN_ASSIGN_OR_RETURN(const size_t arguments, Pop());
    SKEIN_ASSIGN_OR_RETURN(const size_t callable, Pop());
    if (At(callable).kind != PickleKind::kGlobal || At(arguments).kind != PickleKind::kList) {
      return Malformed("calls a value that is no function");
    }
    const std::string function = At(callable).text;
    const std::vector<size_t> args = At(arguments).items;
    if (function == kOrderedDict && args.empty()) {
      Push(PickleKind::kDict);
      return Status::Ok();
    }
    if (function == kRebuildTensor) return MakeTensor(args);
    if (function == kRebuildParameter && !args.empty() && At(args[0]).kind == PickleKind::kTensor) {
      stack_.push_back(args[0]);
      return Status::Ok();
    }
    return Foreign("a call of '" + function + "'");
  }

  Result<std::vector<int64_t>> Integers(size_t list) {
    std::vector<int64_t> values;
    for (const size_t item : At(list).items) {
      if (At(item).kind != PickleKind::kInteger) return Malformed("has a tensor of a broken shape");
      values.push_back(At(item).integer);
    }
    return values;
  }

  // Makes a tensor of the arguments (storage, offset, shape, stride, ...).
  Status MakeTensor(const std::vector<size_t>& args) {
    if (args.size() < 4 || At(args[0]).kind != PickleKind::kStorage ||
        At(args[1]).kind != PickleKind::kInteger) {
      return Malformed("has a tensor without a storage");
    }
    SKEIN_ASSIGN_OR_RETURN(std::vector<int64_t> shape, Integers(args[2]));
    SKEIN_ASSIGN_OR_RETURN(std::vector<int64_t> stride, Integers(args[3]));
    const int64_t offset = At(args[1]).integer;
    PickleValue& tensor = Push(PickleKind::kTensor);
    tensor.storage = args[0];
    tensor.offset = offset;
    tensor.shape = std::move(shape);
    tensor.stride = std::move(stride);
    return Status::Ok();
  }

  const std::span<const std::byte> bytes_;
  const std::string& name_;
  size_t at_ = 0;
  Pickle pickle_;
  std::vector<size_t> stack_;
  std::map<uint64_t, size_t> memo_;
};

}  // namespace

Result<Pickle> ReadPickle(std::span<const std::byte> bytes, const std::string& name) {
  return PickleReader(bytes, name).Read();
}

}  // namespace skein
