#include "io/torch/torch_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/torch/torch_pickle.h"

namespace skein {
namespace {

using ByteSpan = std::span<const std::byte>;
using PickleKind = PickleValue::Kind;

constexpr uint64_t kPickleBytesMax = uint64_t{16} << 20;
constexpr size_t kTorchFilesMax = 1 << 20;
constexpr int kDepthMax = 32;

// The layout of an archive (PKWARE's application note, 4.3): files, each behind a header; then the
// directory, with an entry for each file; then the position of the directory.
constexpr uint32_t kLocalHeader = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Place = 0x07064b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kPlaceBytes = 20;
constexpr size_t kCommentBytesMax = 65535;
constexpr uint64_t kIn64 = 0xffffffff;  // the number is among the extra fields
constexpr uint16_t kExtra64 = 1;

struct ArchivedFile {
  uint64_t begin = 0, end = 0;  // range of bytes in the archive
};

class ArchiveReader {
 public:
  ArchiveReader(ByteSpan bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Result<std::map<std::string, ArchivedFile>> Read() {
    SKEIN_ASSIGN_OR_RETURN(const uint64_t end, FindEnd());
    SKEIN_ASSIGN_OR_RETURN(uint64_t count, Number(end + 10, 2));
    SKEIN_ASSIGN_OR_RETURN(uint64_t at, Number(end + 16, 4));
    if (end >= kPlaceBytes && Number(end - kPlaceBytes, 4).value() == kEnd64Place) {
      SKEIN_ASSIGN_OR_RETURN(const uint64_t end64, Number(end - kPlaceBytes + 8, 8));
      SKEIN_ASSIGN_OR_RETURN(const uint64_t mark, Number(end64, 4));
      if (mark != kEnd64) return Broken();
      SKEIN_ASSIGN_OR_RETURN(count, Number(end64 + 32, 8));
      SKEIN_ASSIGN_OR_RETURN(at, Number(end64 + 48, 8));
    }
    if (count > kTorchFilesMax) return Broken();
    std::map<std::string, ArchivedFile> files;
    for (uint64_t i = 0; i < count; ++i) {
      SKEIN_RETURN_IF_ERROR(ReadEntry(&at, &files));
    }
    return files;
  }

 private:
  Status Broken() const {
    return Status(StatusCode::kInvalidArgument,
                  name_ + ": is no archive that torch.save wrote, or a part of it is missing");
  }

  Result<uint64_t> Number(uint64_t at, size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) return Broken();
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= uint64_t(bytes_[at + i]) << (8 * i);
    return value;
  }

  Result<uint64_t> FindEnd() const {
    const size_t size = bytes_.size();
    if (size < kEndBytes) return Broken();
    const size_t first = size - kEndBytes - std::min(kCommentBytesMax, size - kEndBytes);
    for (size_t at = size - kEndBytes + 1; at-- > first;) {
      if (Number(at, 4).value() == kEnd) return uint64_t{at};
    }
    return Broken();
  }

  // Reads the directory's entry at `*at` and moves behind it.
  Status ReadEntry(uint64_t* at, std::map<std::string, ArchivedFile>* files) const {
    SKEIN_ASSIGN_OR_RETURN(const uint64_t mark, Number(*at, 4));
    if (mark != kEntry) return Broken();
    SKEIN_ASSIGN_OR_RETURN(const uint64_t method, Number(*at + 10, 2));
    SKEIN_ASSIGN_OR_RETURN(uint64_t packed, Number(*at + 20, 4));
    SKEIN_ASSIGN_OR_RETURN(uint64_t size, Number(*at + 24, 4));
    SKEIN_ASSIGN_OR_RETURN(const uint64_t name_bytes, Number(*at + 28, 2));
    SKEIN_ASSIGN_OR_RETURN(const uint64_t extra_bytes, Number(*at + 30, 2));
    SKEIN_ASSIGN_OR_RETURN(const uint64_t comment_bytes, Number(*at + 32, 2));
    SKEIN_ASSIGN_OR_RETURN(uint64_t header, Number(*at + 42, 4));
    const uint64_t name_at = *at + kEntryBytes;
    SKEIN_RETURN_IF_ERROR(Number(name_at + name_bytes + extra_bytes, 0).status());
    const std::string file(reinterpret_cast<const char*>(bytes_.data() + name_at), name_bytes);
    SKEIN_RETURN_IF_ERROR(ReadExtra(name_at + name_bytes, extra_bytes, {&size, &packed, &header}));
    *at = name_at + name_bytes + extra_bytes + comment_bytes;
    if (method != 0 || packed != size) {
      return Status(StatusCode::kUnsupported, name_ + ": '" + file + "' in it is compressed");
    }
    SKEIN_ASSIGN_OR_RETURN(const uint64_t local, Number(header, 4));
    if (local != kLocalHeader) return Broken();
    SKEIN_ASSIGN_OR_RETURN(const uint64_t local_name, Number(header + 26, 2));
    SKEIN_ASSIGN_OR_RETURN(const uint64_t local_extra, Number(header + 28, 2));
    const uint64_t begin = header + kLocalBytes + local_name + local_extra;
    if (begin > bytes_.size() || size > bytes_.size() - begin) return Broken();
    if (!files->emplace(file, ArchivedFile{begin, begin + size}).second) return Broken();
    return Status::Ok();
  }

  // Reads the numbers that do not fit into the entry. They are in the extra fields, in order.
  Status ReadExtra(uint64_t at, uint64_t count, std::initializer_list<uint64_t*> numbers) const {
    for (const uint64_t end = at + count; at + 4 <= end;) {
      SKEIN_ASSIGN_OR_RETURN(const uint64_t id, Number(at, 2));
      SKEIN_ASSIGN_OR_RETURN(const uint64_t field_bytes, Number(at + 2, 2));
      at += 4;
      if (id == kExtra64) {
        uint64_t from = at;
        for (uint64_t* number : numbers) {
          if (*number != kIn64) continue;
          SKEIN_ASSIGN_OR_RETURN(*number, Number(from, 8));
          from += 8;
        }
      }
      at += field_bytes;
    }
    return Status::Ok();
  }

  const ByteSpan bytes_;
  const std::string& name_;
};

struct StorageType {
  std::string_view name, file_dtype;
  std::optional<DType> dtype;
  uint64_t element_bytes;
};
constexpr StorageType kStorageTypes[] = {
    {"FloatStorage", "F32", DType::kF32, 4},  {"BFloat16Storage", "BF16", DType::kBf16, 2},
    {"HalfStorage", "F16", DType::kF16, 2},   {"DoubleStorage", "F64", std::nullopt, 8},
    {"LongStorage", "I64", std::nullopt, 8},  {"IntStorage", "I32", std::nullopt, 4},
    {"ShortStorage", "I16", std::nullopt, 2}, {"CharStorage", "I8", std::nullopt, 1},
    {"ByteStorage", "U8", std::nullopt, 1},   {"BoolStorage", "BOOL", std::nullopt, 1},
};

// Makes the JSON text of the values, and the table of tensors.
class TorchConverter {
 public:
  TorchConverter(const Pickle& pickle, const std::map<std::string, ArchivedFile>& files,
                 std::string root, const std::string& name)
      : pickle_(pickle), files_(files), root_(std::move(root)), name_(name) {}

  Result<std::string> Convert(SafetensorsHeader* tensors) {
    tensors_ = tensors;
    if (pickle_.values[pickle_.root].kind != PickleKind::kDict) {
      return Status(StatusCode::kUnsupported, name_ + ": holds no dictionary");
    }
    SKEIN_RETURN_IF_ERROR(Append(pickle_.root, "", 0));
    return std::move(json_);
  }

 private:
  Status Problem(const std::string& path, const std::string& problem) const {
    return Status(StatusCode::kInvalidArgument, name_ + ": '" + path + "' " + problem);
  }

  // Appends a value. A value may be used several times; each use counts.
  Status Append(size_t index, const std::string& path, int depth) {
    if (depth > kDepthMax || ++num_values_ > kPickleValuesMax) {
      return Problem(path, "is nested too deeply, or has too many values");
    }
    const PickleValue& value = pickle_.values[index];
    switch (value.kind) {
      case PickleKind::kBool:
        json_ += value.integer != 0 ? "true" : "false";
        return Status::Ok();
      case PickleKind::kInteger:
        json_ += std::to_string(value.integer);
        return Status::Ok();
      case PickleKind::kReal:
        if (!std::isfinite(value.real)) return Problem(path, "is not finite");
        json_ += fmt::format("{}", value.real);
        return Status::Ok();
      case PickleKind::kString:
        AppendText(value.text);
        return Status::Ok();
      case PickleKind::kList:
        return AppendList(value, path, depth);
      case PickleKind::kDict:
        return AppendDict(value, path, depth);
      case PickleKind::kTensor:
        SKEIN_RETURN_IF_ERROR(AddTensor(value, path));
        [[fallthrough]];
      case PickleKind::kNone:
        json_ += "null";
        return Status::Ok();
      default:
        return Problem(path, "is neither data nor a tensor");
    }
  }

  void AppendText(const std::string& text) {
    json_ += '"';
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < 0x20) {
        json_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        continue;
      }
      if (c == '"' || c == '\\') json_ += '\\';
      json_ += c;
    }
    json_ += '"';
  }

  Status AppendList(const PickleValue& list, const std::string& path, int depth) {
    for (size_t i = 0; i < list.items.size(); ++i) {
      json_ += i == 0 ? '[' : ',';
      SKEIN_RETURN_IF_ERROR(Append(list.items[i], Joined(path, std::to_string(i)), depth + 1));
    }
    json_ += list.items.empty() ? "[]" : "]";
    return Status::Ok();
  }

  Status AppendDict(const PickleValue& dict, const std::string& path, int depth) {
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleValue& key = pickle_.values[dict.items[i]];
      const bool is_text = key.kind == PickleKind::kString;
      if (!is_text && key.kind != PickleKind::kInteger)
        return Problem(path, "has a key that is no text");
      const std::string text = is_text ? key.text : std::to_string(key.integer);
      json_ += i == 0 ? '{' : ',';
      AppendText(text);
      json_ += ':';
      SKEIN_RETURN_IF_ERROR(Append(dict.items[i + 1], Joined(path, text), depth + 1));
    }
    json_ += dict.items.empty() ? "{}" : "}";
    return Status::Ok();
  }

  static std::string Joined(const std::string& path, const std::string& part) {
    return path.empty() ? part : path + "." + part;
  }

  Status AddTensor(const PickleValue& tensor, const std::string& path) {
    const PickleValue& storage = pickle_.values[tensor.storage];
    const auto* const type =
        std::ranges::find(kStorageTypes, storage.storage_type, &StorageType::name);
    if (type == std::end(kStorageTypes)) {
      return Problem(path, "is a tensor of " + storage.storage_type);
    }
    const auto file = files_.find(root_ + "data/" + storage.text);
    if (file == files_.end()) return Problem(path, "names a storage that is not there");
    int64_t expected = 1, count = 1;
    if (tensor.shape.size() != tensor.stride.size()) return Problem(path, "has a broken shape");
    for (size_t i = tensor.shape.size(); i-- > 0;) {
      if (tensor.shape[i] < 0 || __builtin_mul_overflow(count, tensor.shape[i], &count)) {
        return Problem(path, "has a broken shape");
      }
      if (tensor.shape[i] > 1 && tensor.stride[i] != expected) {
        return Status(StatusCode::kUnsupported, name_ + ": '" + path + "' is not row-major");
      }
      expected *= std::max<int64_t>(tensor.shape[i], 1);
    }
    const uint64_t elements = (file->second.end - file->second.begin) / type->element_bytes;
    if (tensor.offset < 0 || static_cast<uint64_t>(tensor.offset) > elements ||
        static_cast<uint64_t>(count) > elements - static_cast<uint64_t>(tensor.offset)) {
      return Problem(path, "is larger than its storage");
    }
    const uint64_t begin =
        file->second.begin + static_cast<uint64_t>(tensor.offset) * type->element_bytes;
    tensors_->tensors[path] = {std::string(type->file_dtype), type->dtype, tensor.shape, begin,
                               begin + static_cast<uint64_t>(count) * type->element_bytes};
    return Status::Ok();
  }

  const Pickle& pickle_;
  const std::map<std::string, ArchivedFile>& files_;
  const std::string root_;  // the folder in the archive that contains all files
  const std::string& name_;
  SafetensorsHeader* tensors_ = nullptr;
  std::string json_;
  size_t num_values_ = 0;
};

}  // namespace

Result<TorchFile> OpenTorchFile(const std::string& path) {
  constexpr std::string_view kPickle = "data.pkl";
  SKEIN_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  SKEIN_ASSIGN_OR_RETURN(const auto files, ArchiveReader(file.bytes(), path).Read());
  const auto found = std::ranges::find_if(
      files, [&](const auto& entry) { return entry.first.ends_with(kPickle); });
  if (found == files.end()) {
    return Status(StatusCode::kUnsupported, path + ": has no data.pkl; torch.save writes one");
  }
  const std::string root = found->first.substr(0, found->first.size() - kPickle.size());
  if (const auto order = files.find(root + "byteorder"); order != files.end()) {
    const ByteSpan text = file.bytes().subspan(order->second.begin);
    if (order->second.end - order->second.begin < 6 || std::memcmp(text.data(), "little", 6) != 0) {
      return Status(StatusCode::kUnsupported, path + ": its numbers are not little-endian");
    }
  }
  const uint64_t pickle_bytes = found->second.end - found->second.begin;
  if (pickle_bytes > kPickleBytesMax) {
    return Status(StatusCode::kInvalidArgument, path + ": its pickle has more than " +
                                                    std::to_string(kPickleBytesMax) + " bytes");
  }
  SKEIN_ASSIGN_OR_RETURN(const Pickle pickle,
                         ReadPickle(file.bytes().subspan(found->second.begin, pickle_bytes), path));
  SafetensorsHeader header;
  SKEIN_ASSIGN_OR_RETURN(const std::string text,
                         TorchConverter(pickle, files, root, path).Convert(&header));
  SKEIN_ASSIGN_OR_RETURN(JsonFile data, JsonFile::Parse(text, path));
  return TorchFile{std::move(data), SafetensorsFile(std::move(file), std::move(header))};
}

}  // namespace skein
