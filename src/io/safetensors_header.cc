#include "io/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/json_file.h"

namespace skein {
namespace {

using simdjson::dom::element;

struct FormatDType {
  std::string_view name;
  uint32_t bits;
  std::optional<DType> dtype;
};

// Every element type of the format. A type without a DType may be in a file, but cannot be loaded.
constexpr FormatDType kFormatDTypes[] = {
    {"F32", 32, DType::kF32},
    {"BF16", 16, DType::kBf16},
    {"F16", 16, DType::kF16},
    {"F64", 64, {}},
    {"I64", 64, {}},
    {"U64", 64, {}},
    {"C64", 64, {}},
    {"I32", 32, {}},
    {"U32", 32, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"I8", 8, {}},
    {"U8", 8, {}},
    {"BOOL", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F4", 4, {}},
};

Status Invalid(const std::string& name, const std::string& problem) {
  return Status(StatusCode::kInvalidArgument, name + ": " + problem);
}

// Messages show only the beginning of a name, since a hostile header may have very long names.
std::string Quoted(std::string_view tensor) {
  constexpr size_t kMaxShown = 120;
  std::string text = "tensor '";
  text.append(tensor.substr(0, kMaxShown));
  return text + (tensor.size() > kMaxShown ? "...'" : "'");
}

// Reads a list of non-negative integers. Returns false if `value` is anything else.
bool ReadUnsignedList(const element& value, std::vector<uint64_t>* out) {
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return false;
  for (const element& item : array) {
    uint64_t number = 0;
    if (!item.is_uint64() || item.get(number) != simdjson::SUCCESS) return false;
    out->push_back(number);
  }
  return true;
}

// The bytes of a tensor of `shape`. nullopt if they exceed 64 bits or are not a whole number.
std::optional<uint64_t> ShapeBytes(const std::vector<uint64_t>& shape, uint32_t bits) {
  uint64_t product = bits;
  for (const uint64_t dim : shape) {
    if (__builtin_mul_overflow(product, dim, &product)) return std::nullopt;
  }
  if (product % 8 != 0) return std::nullopt;
  return product / 8;
}

struct RawEntry {
  std::optional<std::string_view> dtype;
  std::optional<std::vector<uint64_t>> shape, offsets;
};

Result<RawEntry> ReadEntry(const element& value, const std::string& what) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    return Status(StatusCode::kInvalidArgument, what + " must be described by an object");
  }
  RawEntry entry;
  for (const auto& member : object) {
    const bool is_shape = member.key == "shape", is_offsets = member.key == "data_offsets";
    if (member.key == "dtype") {
      std::string_view text;
      if (entry.dtype || member.value.get(text) != simdjson::SUCCESS) {
        return Status(StatusCode::kInvalidArgument, what + ": 'dtype' must be one string");
      }
      entry.dtype = text;
    } else if (is_shape || is_offsets) {
      std::optional<std::vector<uint64_t>>& list = is_shape ? entry.shape : entry.offsets;
      if (list || !ReadUnsignedList(member.value, &list.emplace())) {
        return Status(StatusCode::kInvalidArgument, what + ": '" + std::string(member.key) +
                                                        "' must be one list of integers >= 0");
      }
    }
  }
  if (!entry.dtype || !entry.shape || !entry.offsets) {
    return Status(StatusCode::kInvalidArgument,
                  what + " needs 'dtype', 'shape' and 'data_offsets'");
  }
  return entry;
}

// Checks one entry alone. Its offsets stay relative to the data.
Result<TensorInfo> ReadTensor(const element& value, const std::string& what, uint64_t data_bytes) {
  SKEIN_ASSIGN_OR_RETURN(const RawEntry entry, ReadEntry(value, what));
  const auto* format = std::find_if(std::begin(kFormatDTypes), std::end(kFormatDTypes),
                                    [&](const FormatDType& f) { return f.name == *entry.dtype; });
  if (format == std::end(kFormatDTypes)) {
    return Status(StatusCode::kUnsupported, what + " has the unknown dtype '" +
                                                std::string(entry.dtype->substr(0, 40)) + "'");
  }
  TensorInfo info;
  info.file_dtype = *entry.dtype;
  info.dtype = format->dtype;
  for (const uint64_t dim : *entry.shape) {
    if (dim > uint64_t{INT64_MAX}) {
      return Status(StatusCode::kInvalidArgument,
                    what + " has a dimension of " + std::to_string(dim));
    }
    info.shape.push_back(static_cast<int64_t>(dim));
  }
  if (entry.offsets->size() != 2) {
    return Status(StatusCode::kInvalidArgument, what + ": 'data_offsets' must be [begin, end]");
  }
  info.begin = (*entry.offsets)[0];
  info.end = (*entry.offsets)[1];
  const std::string range =
      "[" + std::to_string(info.begin) + ", " + std::to_string(info.end) + ")";
  if (info.begin > info.end || info.end > data_bytes) {
    return Status(StatusCode::kInvalidArgument, what + " claims bytes " + range + " of " +
                                                    std::to_string(data_bytes) + " bytes of data");
  }
  const std::optional<uint64_t> bytes = ShapeBytes(*entry.shape, format->bits);
  if (!bytes || *bytes != info.end - info.begin) {
    return Status(StatusCode::kInvalidArgument, what + " of shape " + ShapeString(info.shape) +
                                                    " and dtype " + info.file_dtype +
                                                    " does not fill its bytes " + range);
  }
  return info;
}

bool IsTextMap(const element& value) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return false;
  return std::all_of(object.begin(), object.end(),
                     [](const auto& member) { return member.value.is_string(); });
}

// Checks that the tensors, in the order of their bytes, cover the data without gap or overlap.
Status CheckCoverage(const SafetensorsHeader& header, uint64_t data_bytes,
                     const std::string& name) {
  using Entry = std::pair<const std::string, TensorInfo>;
  std::vector<const Entry*> order;
  order.reserve(header.tensors.size());
  for (const Entry& entry : header.tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t covered = 0;
  for (const Entry* entry : order) {
    if (entry->second.begin != covered) {
      return Invalid(
          name, Quoted(entry->first) + " begins at byte " + std::to_string(entry->second.begin) +
                    " of the data, " +
                    (entry->second.begin < covered ? "inside another tensor" : "leaving a hole") +
                    "; the one before ends at " + std::to_string(covered));
    }
    covered = entry->second.end;
  }
  if (covered != data_bytes) {
    return Invalid(name, "the tensors end at byte " + std::to_string(covered) +
                             " of the data, the file holds " + std::to_string(data_bytes));
  }
  return Status::Ok();
}

}  // namespace

std::string ShapeString(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> prefix,
                                                 uint64_t file_bytes, const std::string& name) {
  SKEIN_CHECK(prefix.size() <= file_bytes);
  if (file_bytes < 8) {
    return Invalid(
        name, "is " + std::to_string(file_bytes) + " bytes long, too short for a safetensors file");
  }
  SKEIN_CHECK(prefix.size() >= 8);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, prefix.data(), 8);
  if (header_bytes > kMaxHeaderBytes) {
    return Invalid(name, "claims a header of " + std::to_string(header_bytes) + " bytes; at most " +
                             std::to_string(kMaxHeaderBytes) + " are allowed");
  }
  if (header_bytes > file_bytes - 8) {
    return Invalid(name, "claims a header of " + std::to_string(header_bytes) +
                             " bytes; the file is only " + std::to_string(file_bytes) +
                             " bytes long (truncated?)");
  }
  SKEIN_CHECK(prefix.size() - 8 >= header_bytes);
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()) + 8, header_bytes);
  if (text.empty() || text[0] != '{') return Invalid(name, "the header must begin with '{'");
  SKEIN_ASSIGN_OR_RETURN(const JsonFile json, JsonFile::Parse(text, name + " (header)"));

  SafetensorsHeader header;
  header.data_begin = 8 + header_bytes;
  const uint64_t data_bytes = file_bytes - header.data_begin;
  bool has_metadata = false;
  for (const auto& member : json.root().members()) {
    if (member.key == "__metadata__") {
      if (has_metadata || !IsTextMap(member.value)) {
        return Invalid(name, "'__metadata__' must be one object of strings");
      }
      has_metadata = true;
      continue;
    }
    SKEIN_ASSIGN_OR_RETURN(TensorInfo info,
                           ReadTensor(member.value, name + ": " + Quoted(member.key), data_bytes));
    if (!header.tensors.emplace(member.key, std::move(info)).second) {
      return Invalid(name, Quoted(member.key) + " appears twice");
    }
  }
  SKEIN_RETURN_IF_ERROR(CheckCoverage(header, data_bytes, name));
  for (auto& [tensor, info] : header.tensors) {
    info.begin += header.data_begin;
    info.end += header.data_begin;
  }
  return header;
}

}  // namespace skein
