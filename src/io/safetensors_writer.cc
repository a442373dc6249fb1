#include "io/safetensors_writer.h"

#include <cstdio>
#include <utility>

#include "io/safetensors_header.h"

namespace skein {
namespace {

// The alignment of the data in a shard, so that a mapped tensor starts on a cache line.
constexpr size_t kDataAlignment = 64;

const char* FormatName(DType dtype) {
  return dtype == DType::kF32 ? "F32" : dtype == DType::kBf16 ? "BF16" : "F16";
}

int64_t Bytes(const TensorSpec& spec) {
  return spec.num_elements() * static_cast<int64_t>(SizeOf(spec.dtype));
}

std::string ShardName(size_t shard, size_t num_shards) {
  if (num_shards == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", shard + 1, num_shards);
  return name;
}

}  // namespace

int64_t TensorSpec::num_elements() const {
  int64_t product = 1;
  for (const int64_t dim : shape) product *= dim;
  return product;
}

Result<SafetensorsWriter> SafetensorsWriter::Create(const std::string& dir,
                                                    std::vector<TensorSpec> tensors,
                                                    int64_t max_shard_bytes) {
  SKEIN_CHECK(max_shard_bytes > 0);
  SafetensorsWriter writer;
  writer.tensors_ = std::move(tensors);
  const int64_t total_bytes = writer.Plan(max_shard_bytes);
  const size_t num_shards = writer.places_.empty() ? 1 : writer.places_.back().shard + 1;
  for (size_t shard = 0; shard < num_shards; ++shard) {
    SKEIN_RETURN_IF_ERROR(writer.CreateShard(shard, dir + "/" + ShardName(shard, num_shards)));
  }
  if (num_shards > 1) SKEIN_RETURN_IF_ERROR(writer.WriteIndex(dir, total_bytes));
  return writer;
}

// Distributes the tensors over shards, in order. Returns the bytes of all tensors.
int64_t SafetensorsWriter::Plan(int64_t max_shard_bytes) {
  size_t shard = 0;
  int64_t in_shard = 0, total = 0;
  for (const TensorSpec& spec : tensors_) {
    const int64_t bytes = Bytes(spec);
    if (in_shard > 0 && in_shard + bytes > max_shard_bytes) {
      ++shard;
      in_shard = 0;
    }
    places_.push_back({shard, in_shard});
    in_shard += bytes;
    total += bytes;
  }
  return total;
}

Status SafetensorsWriter::CreateShard(size_t shard, const std::string& path) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  int64_t data_bytes = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (places_[i].shard != shard) continue;
    data_bytes = places_[i].begin + Bytes(tensors_[i]);
    header += ",\"" + tensors_[i].name + "\":{\"dtype\":\"" + FormatName(tensors_[i].dtype) +
              "\",\"shape\":" + ShapeString(tensors_[i].shape) + ",\"data_offsets\":[" +
              std::to_string(places_[i].begin) + "," + std::to_string(data_bytes) + "]}";
  }
  header += "}";
  while ((8 + header.size()) % kDataAlignment != 0) header.push_back(' ');
  const auto data_begin = static_cast<int64_t>(8 + header.size());
  for (Place& place : places_) {
    if (place.shard == shard) place.begin += data_begin;
  }

  SKEIN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, data_begin + data_bytes));
  const uint64_t length = header.size();
  SKEIN_RETURN_IF_ERROR(file.Write(0, std::as_bytes(std::span(&length, 1))));
  SKEIN_RETURN_IF_ERROR(file.Write(8, std::as_bytes(std::span(header))));
  shards_.push_back(std::move(file));
  return Status::Ok();
}

Status SafetensorsWriter::WriteIndex(const std::string& dir, int64_t total_bytes) const {
  std::string index = "{\n  \"metadata\": {\"total_size\": " + std::to_string(total_bytes) +
                      "},\n  \"weight_map\": {";
  for (size_t i = 0; i < tensors_.size(); ++i) {
    index += (i > 0 ? ",\n    \"" : "\n    \"") + tensors_[i].name + "\": \"" +
             ShardName(places_[i].shard, shards_.size()) + "\"";
  }
  return WriteFile(dir + "/model.safetensors.index.json", index + "\n  }\n}\n");
}

Status SafetensorsWriter::Write(size_t index, int64_t offset,
                                std::span<const std::byte> bytes) const {
  SKEIN_CHECK(index < tensors_.size());
  SKEIN_CHECK(offset >= 0 && offset + static_cast<int64_t>(bytes.size()) <= Bytes(tensors_[index]));
  return shards_[places_[index].shard].Write(places_[index].begin + offset, bytes);
}

Status SafetensorsWriter::Close() {
  Status status;
  for (OutputFile& shard : shards_) {
    Status closed = shard.Close();
    if (status.ok()) status = std::move(closed);
  }
  return status;
}

Status WriteFile(const std::string& path, std::string_view text) {
  SKEIN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, 0));
  SKEIN_RETURN_IF_ERROR(file.Write(0, std::as_bytes(std::span(text))));
  return file.Close();
}

}  // namespace skein
