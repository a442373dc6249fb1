#include "io/gguf_header.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace skein {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are read in place");

constexpr char kMagic[] = "GGUF";
constexpr char kAlignmentKey[] = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMinMetadataBytes = 8 + 4 + 1;    // an entry: empty key, kind, one byte
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;  // an entry: empty name, no dimensions

// The kinds of metadata values, numbered as in the file format.
enum class Kind : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// The least number of bytes of a value of this kind.
uint64_t MinBytes(Kind kind) {
  switch (kind) {
    case Kind::kU8:
    case Kind::kI8:
    case Kind::kBool:
      return 1;
    case Kind::kU16:
    case Kind::kI16:
      return 2;
    case Kind::kU32:
    case Kind::kI32:
    case Kind::kF32:
      return 4;
    default:
      return 8;
  }
}

// Messages show only the beginning of a name, since a hostile file may have very long names.
std::string Shown(std::string_view name) {
  constexpr size_t kMaxShown = 120;
  std::string text(name.substr(0, kMaxShown));
  return "'" + text + (name.size() > kMaxShown ? "...'" : "'");
}

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, const std::string& name)
      : file_(file), name_(name), header_{0, GgufMetadata(name), {}} {}

  Result<GgufHeader> Read() {
    SKEIN_RETURN_IF_ERROR(ReadCounts());
    for (uint64_t i = 0; i < num_metadata_; ++i) SKEIN_RETURN_IF_ERROR(ReadEntry(i));
    SKEIN_RETURN_IF_ERROR(ReadAlignment());
    for (uint64_t i = 0; i < num_tensors_; ++i) SKEIN_RETURN_IF_ERROR(ReadTensor(i));
    SKEIN_RETURN_IF_ERROR(PlaceTensors());
    return std::move(header_);
  }

 private:
  Status Invalid(const std::string& problem) const {
    return Status(StatusCode::kInvalidArgument, name_ + ": " + problem);
  }
  Status Unsupported(const std::string& problem) const {
    return Status(StatusCode::kUnsupported, name_ + ": " + problem);
  }
  Status Truncated(const std::string& field) const {
    return Invalid(field + " runs past the end of the file");
  }

  uint64_t remaining() const { return file_.size() - position_; }

  // Reads the next number. Returns false at the end of the file.
  template <typename T>
  bool Next(T* value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(value, file_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  bool NextString(std::string_view* text) {
    uint64_t length = 0;
    if (!Next(&length) || length > remaining()) return false;
    *text = {reinterpret_cast<const char*>(file_.data()) + position_, length};
    position_ += length;
    return true;
  }

  // Reads a key or the name of a tensor, and checks that it is fit for messages.
  Status NextName(const std::string& field, std::string_view* text) {
    if (!NextString(text)) return Truncated(field);
    if (text->size() > kGgufMaxNameBytes) {
      return Invalid(field + " has " + std::to_string(text->size()) + " bytes; at most " +
                     std::to_string(kGgufMaxNameBytes) + " are allowed");
    }
    if (text->empty()) return Invalid(field + " is empty");
    if (!simdjson::validate_utf8(*text)) return Invalid(field + " is not valid UTF-8");
    return Status::Ok();
  }

  Status ReadCounts() {
    if (file_.size() < 4 || std::memcmp(file_.data(), kMagic, 4) != 0) {
      return Invalid("does not begin with GGUF");
    }
    position_ = 4;
    if (!Next(&header_.version)) return Truncated("the version");
    if (header_.version != 2 && header_.version != 3) {
      const bool swapped = (header_.version & 0xffff) == 0;
      return Unsupported("the version is " + std::to_string(header_.version) +
                         (swapped ? " (a big-endian file)" : "") + "; supported are 2 and 3");
    }
    if (!Next(&num_tensors_)) return Truncated("the number of tensors");
    if (!Next(&num_metadata_)) return Truncated("the number of metadata entries");
    if (num_tensors_ > remaining() / kMinTensorBytes) {
      return Invalid("the number of tensors, " + std::to_string(num_tensors_) +
                     ", is more than the file holds");
    }
    if (num_metadata_ > remaining() / kMinMetadataBytes) {
      return Invalid("the number of metadata entries, " + std::to_string(num_metadata_) +
                     ", is more than the file holds");
    }
    return Status::Ok();
  }

  Status ReadEntry(uint64_t index) {
    std::string_view key;
    SKEIN_RETURN_IF_ERROR(NextName("the key of metadata entry " + std::to_string(index), &key));
    const std::string field = "metadata " + Shown(key);
    uint32_t kind = 0;
    if (!Next(&kind)) return Truncated(field);
    if (kind > static_cast<uint32_t>(Kind::kF64)) {
      return Invalid(field + " has kind " + std::to_string(kind) + "; kinds are 0 to 12");
    }
    SKEIN_ASSIGN_OR_RETURN(GgufValue value, static_cast<Kind>(kind) == Kind::kArray
                                                ? ReadArray(field)
                                                : ReadScalar(static_cast<Kind>(kind), field));
    if (!header_.metadata.Add(key, std::move(value))) return Invalid(field + " appears twice");
    return Status::Ok();
  }

  template <typename T>
  Result<GgufValue> ReadNumber(const std::string& field) {
    T number{};
    if (!Next(&number)) return Truncated(field);
    if constexpr (std::is_floating_point_v<T>) {
      return GgufValue(static_cast<double>(number));
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      if (number > uint64_t{std::numeric_limits<int64_t>::max()}) return GgufValue(number);
      return GgufValue(static_cast<int64_t>(number));
    } else {
      return GgufValue(int64_t{number});
    }
  }

  Result<GgufValue> ReadScalar(Kind kind, const std::string& field) {
    switch (kind) {
      case Kind::kU8:
        return ReadNumber<uint8_t>(field);
      case Kind::kI8:
        return ReadNumber<int8_t>(field);
      case Kind::kU16:
        return ReadNumber<uint16_t>(field);
      case Kind::kI16:
        return ReadNumber<int16_t>(field);
      case Kind::kU32:
        return ReadNumber<uint32_t>(field);
      case Kind::kI32:
        return ReadNumber<int32_t>(field);
      case Kind::kF32:
        return ReadNumber<float>(field);
      case Kind::kU64:
        return ReadNumber<uint64_t>(field);
      case Kind::kI64:
        return ReadNumber<int64_t>(field);
      case Kind::kF64:
        return ReadNumber<double>(field);
      case Kind::kBool: {
        uint8_t value = 0;
        if (!Next(&value)) return Truncated(field);
        if (value > 1) return Invalid(field + " is a boolean of value " + std::to_string(value));
        return GgufValue(value == 1);
      }
      case Kind::kString: {
        std::string_view text;
        if (!NextString(&text)) return Truncated(field);
        return GgufValue(text);
      }
      case Kind::kArray:
        break;
    }
    return Unsupported(field + " is an array of arrays");
  }

  Result<GgufValue> ReadArray(const std::string& field) {
    uint32_t kind_number = 0;
    uint64_t count = 0;
    if (!Next(&kind_number) || !Next(&count)) return Truncated(field);
    if (kind_number > static_cast<uint32_t>(Kind::kF64)) {
      return Invalid(field + " has elements of kind " + std::to_string(kind_number) +
                     "; kinds are 0 to 12");
    }
    const auto kind = static_cast<Kind>(kind_number);
    if (count > remaining() / MinBytes(kind)) {
      return Invalid(field + " has " + std::to_string(count) +
                     " elements, more than the file holds");
    }
    if (kind == Kind::kString) return ReadElements<std::string_view>(kind, count, field);
    if (kind == Kind::kF32 || kind == Kind::kF64) return ReadElements<double>(kind, count, field);
    return ReadElements<int64_t>(kind, count, field);
  }

  template <typename T>
  Result<GgufValue> ReadElements(Kind kind, uint64_t count, const std::string& field) {
    std::vector<T> elements;
    elements.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      SKEIN_ASSIGN_OR_RETURN(const GgufValue value, ReadScalar(kind, field));
      if (const T* element = std::get_if<T>(&value)) {
        elements.push_back(*element);
      } else if (const bool* truth = std::get_if<bool>(&value)) {
        if constexpr (std::is_same_v<T, int64_t>) elements.push_back(*truth ? 1 : 0);
      } else {
        return Invalid(field + " has an element of 2^63 or more");
      }
    }
    return GgufValue(std::move(elements));
  }

  Status ReadAlignment() {
    SKEIN_ASSIGN_OR_RETURN(const auto alignment, header_.metadata.Int(kAlignmentKey));
    if (!alignment) return Status::Ok();
    if (*alignment <= 0 || *alignment > static_cast<int64_t>(kGgufMaxAlignment) ||
        !std::has_single_bit(static_cast<uint64_t>(*alignment))) {
      return header_.metadata.Error(kAlignmentKey, "is " + std::to_string(*alignment) +
                                                       "; it must be a power of two up to " +
                                                       std::to_string(kGgufMaxAlignment));
    }
    alignment_ = static_cast<uint64_t>(*alignment);
    return Status::Ok();
  }

  Status ReadTensor(uint64_t index) {
    std::string_view name;
    SKEIN_RETURN_IF_ERROR(NextName("the name of tensor " + std::to_string(index), &name));
    const std::string field = "tensor " + Shown(name);
    GgufTensorInfo info;
    uint32_t num_dims = 0, type = 0;
    if (!Next(&num_dims)) return Truncated(field + ": the number of dimensions");
    if (num_dims == 0 || num_dims > kGgufMaxDims) {
      return Invalid(field + " has " + std::to_string(num_dims) +
                     " dimensions; 1 to 4 are allowed");
    }
    uint64_t num_elements = 1;
    for (uint32_t i = 0; i < num_dims; ++i) {
      uint64_t dim = 0;
      if (!Next(&dim)) return Truncated(field + ": a dimension");
      if (dim == 0) return Invalid(field + ": dimension " + std::to_string(i) + " is 0");
      if (__builtin_mul_overflow(num_elements, dim, &num_elements) ||
          num_elements > uint64_t{std::numeric_limits<int64_t>::max()}) {
        return Invalid(field + ": the product of the dimensions exceeds 63 bits");
      }
      info.shape.push_back(static_cast<int64_t>(dim));
    }
    uint64_t offset = 0;
    if (!Next(&type) || !Next(&offset)) return Truncated(field + ": the type or the offset");
    SKEIN_RETURN_IF_ERROR(CheckType(field, type, info.shape.front()));
    info.type = FindGgufType(type);
    const auto num_blocks = num_elements / static_cast<uint64_t>(info.type->block_elements);
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(num_blocks, static_cast<uint64_t>(info.type->block_bytes), &bytes)) {
      return Invalid(field + ": the product of the dimensions exceeds 63 bits");
    }
    if (offset % alignment_ != 0) {
      return Invalid(field + ": the offset " + std::to_string(offset) +
                     " is no multiple of the alignment " + std::to_string(alignment_));
    }
    std::reverse(info.shape.begin(), info.shape.end());
    info.begin = offset;
    info.end = bytes;  // PlaceTensors turns begin and end into positions in the file
    if (!header_.tensors.emplace(name, std::move(info)).second) {
      return Invalid(field + " appears twice");
    }
    return Status::Ok();
  }

  Status CheckType(const std::string& field, uint32_t type_id, int64_t row_elements) const {
    const GgufType* type = FindGgufType(type_id);
    if (type == nullptr) {
      std::string known;
      for (const GgufType& entry : GgufTypes()) {
        known += (known.empty() ? "" : ", ") + std::string(entry.name);
      }
      return Unsupported(field + " has " + GgufTypeName(type_id) + "; supported are " + known);
    }
    if (row_elements % type->block_elements != 0) {
      return Invalid(field + ": rows of " + std::to_string(row_elements) +
                     " elements are no whole blocks of " + type->name);
    }
    return Status::Ok();
  }

  // Computes the positions of the tensors. They are known only now, since the data begins behind
  // the directory.
  Status PlaceTensors() {
    const uint64_t data_begin = (position_ + alignment_ - 1) / alignment_ * alignment_;
    std::vector<std::pair<const std::string*, GgufTensorInfo*>> in_order;
    for (auto& [name, info] : header_.tensors) {
      const uint64_t bytes = info.end;
      const uint64_t data_bytes = file_.size() > data_begin ? file_.size() - data_begin : 0;
      if (info.begin > data_bytes || bytes > data_bytes - info.begin) {
        return Invalid("tensor " + Shown(name) + ": offset " + std::to_string(info.begin) +
                       " and " + std::to_string(bytes) + " bytes run past the end of the file");
      }
      info.begin += data_begin;
      info.end = info.begin + bytes;
      in_order.emplace_back(&name, &info);
    }
    std::ranges::sort(in_order, {}, [](const auto& entry) { return entry.second->begin; });
    for (size_t i = 1; i < in_order.size(); ++i) {
      if (in_order[i].second->begin < in_order[i - 1].second->end) {
        return Invalid("tensor " + Shown(*in_order[i].first) + ": its offset lies in tensor " +
                       Shown(*in_order[i - 1].first));
      }
    }
    return Status::Ok();
  }

  std::span<const std::byte> file_;
  const std::string& name_;
  uint64_t position_ = 0;
  uint64_t num_tensors_ = 0, num_metadata_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  GgufHeader header_;
};

}  // namespace

Result<GgufHeader> ParseGgufHeader(std::span<const std::byte> file, const std::string& name) {
  return HeaderReader(file, name).Read();
}

}  // namespace skein
