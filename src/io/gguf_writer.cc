#include "io/gguf_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

// The kinds of metadata values, numbered as in the file format.
constexpr uint32_t kU32Kind = 4, kI32Kind = 5, kF32Kind = 6, kBoolKind = 7, kStringKind = 8,
                   kArrayKind = 9;
constexpr int64_t kTensorAlignment = 32;  // the format's default, if general.alignment is absent

template <typename T>
void Append(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendString(std::string_view text, std::string* out) {
  Append(uint64_t{text.size()}, out);
  out->append(text);
}

int64_t Aligned(int64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

}  // namespace

void GgufEntries::Begin(std::string_view key, uint32_t kind) {
  AppendString(key, &bytes_);
  Append(kind, &bytes_);
  ++size_;
}

void GgufEntries::BeginArray(std::string_view key, uint32_t kind, size_t count) {
  Begin(key, kArrayKind);
  Append(kind, &bytes_);
  Append(uint64_t{count}, &bytes_);
}

void GgufEntries::U32(std::string_view key, uint32_t value) {
  Begin(key, kU32Kind);
  Append(value, &bytes_);
}

void GgufEntries::F32(std::string_view key, float value) {
  Begin(key, kF32Kind);
  Append(value, &bytes_);
}

void GgufEntries::Bool(std::string_view key, bool value) {
  Begin(key, kBoolKind);
  Append(static_cast<uint8_t>(value ? 1 : 0), &bytes_);
}

void GgufEntries::Text(std::string_view key, std::string_view value) {
  Begin(key, kStringKind);
  AppendString(value, &bytes_);
}

void GgufEntries::Texts(std::string_view key, std::span<const std::string> values) {
  BeginArray(key, kStringKind, values.size());
  for (const std::string& value : values) AppendString(value, &bytes_);
}

void GgufEntries::I32s(std::string_view key, std::span<const int32_t> values) {
  BeginArray(key, kI32Kind, values.size());
  for (const int32_t value : values) Append(value, &bytes_);
}

void GgufEntries::F32s(std::string_view key, std::span<const float> values) {
  BeginArray(key, kF32Kind, values.size());
  for (const float value : values) Append(value, &bytes_);
}

int64_t GgufTensorSpec::bytes() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows * row_bytes();
}

Result<GgufWriter> GgufWriter::Create(const std::string& path, const GgufEntries& entries,
                                      std::vector<GgufTensorSpec> tensors) {
  std::string header = "GGUF";
  Append(uint32_t{3}, &header);
  Append(uint64_t{tensors.size()}, &header);
  Append(entries.size(), &header);
  header += entries.bytes();
  std::vector<int64_t> begins;  // offsets from the beginning of the data
  int64_t end = 0;
  for (const GgufTensorSpec& spec : tensors) {
    SKEIN_CHECK(!spec.shape.empty() && spec.shape.back() % spec.type->block_elements == 0);
    begins.push_back(Aligned(end));
    end = begins.back() + spec.bytes();
    AppendString(spec.name, &header);
    Append(static_cast<uint32_t>(spec.shape.size()), &header);
    for (size_t i = spec.shape.size(); i > 0; --i) {
      Append(static_cast<uint64_t>(spec.shape[i - 1]), &header);
    }
    Append(spec.type->id, &header);
    Append(static_cast<uint64_t>(begins.back()), &header);
  }
  const int64_t data_begin = Aligned(std::ssize(header));
  // llama.cpp also reads padding behind the last tensor.
  const int64_t file_bytes = data_begin + Aligned(end);
  SKEIN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path + ".part", file_bytes));
  GgufWriter writer(path, std::move(file));
  writer.tensors_ = std::move(tensors);
  for (const int64_t begin : begins) writer.begins_.push_back(data_begin + begin);
  writer.file_bytes_ = file_bytes;
  SKEIN_RETURN_IF_ERROR(writer.file_.Write(0, std::as_bytes(std::span(header))));
  return writer;
}

GgufWriter::GgufWriter(GgufWriter&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      file_(std::move(other.file_)),
      tensors_(std::move(other.tensors_)),
      begins_(std::move(other.begins_)),
      file_bytes_(other.file_bytes_) {}

GgufWriter::~GgufWriter() {
  if (!path_.empty()) (void)unlink(file_.path().c_str());
}

Status GgufWriter::Write(size_t index, int64_t offset, std::span<const std::byte> bytes) const {
  SKEIN_CHECK(index < tensors_.size());
  SKEIN_CHECK(offset >= 0 && offset + std::ssize(bytes) <= tensors_[index].bytes());
  return file_.Write(begins_[index] + offset, bytes);
}

Status GgufWriter::Close() {
  SKEIN_CHECK(!path_.empty());
  SKEIN_RETURN_IF_ERROR(file_.Close());
  if (std::rename(file_.path().c_str(), path_.c_str()) != 0) {
    return Status(StatusCode::kUnavailable,
                  "cannot rename " + file_.path() + " to " + path_ + ": " + std::strerror(errno));
  }
  path_.clear();
  return Status::Ok();
}

}  // namespace skein
