#include "io/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "io/gguf_names.h"
#include "io/gguf_writer.h"
#include "testing/gguf_builder.h"

namespace skein {
namespace {

using ::skein::testing::GgufBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kF32 = 0, kQ4_1 = 3, kQ8_0 = 8;

Result<GgufHeader> Parse(const std::string& file) {
  return ParseGgufHeader(std::as_bytes(std::span(file)), "f");
}

GgufBuilder Good() {
  GgufBuilder builder;
  builder.Text("general.architecture", "llama")
      .Int("llama.block_count", 3)
      .Float("eps", 0.5f)
      .Bool("flag", true)
      .Texts("tokens", {"a", "", "\xff"})
      .Ints("types", {1, 2, 0xffffffff})
      .Entry("big", GgufBuilder::kU64, GgufBuilder::Bytes(~uint64_t{0}))
      .Tensor("x", {32, 2}, kQ8_0, std::string(68, 'x'))
      .Tensor("y", {3}, kF32, std::string(12, 'y'));
  return builder;
}

TEST(GgufHeader, ReadsWhatIsThere) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBuilder builder = Good();
    builder.version = version;
    const std::string file = builder.Build();
    const Result<GgufHeader> header = Parse(file);
    ASSERT_TRUE(header.ok()) << header.status().message();
    EXPECT_EQ(header.value().version, version);
    const GgufMetadata& metadata = header.value().metadata;
    EXPECT_EQ(metadata.size(), 7u);
    EXPECT_EQ(metadata.String("general.architecture").value(), "llama");
    EXPECT_EQ(metadata.Int("llama.block_count").value(), 3);
    EXPECT_EQ(metadata.Double("llama.block_count").value(), 3.0);
    EXPECT_EQ(metadata.Double("eps").value(), 0.5);
    EXPECT_EQ(metadata.Bool("flag").value(), true);
    EXPECT_THAT(*metadata.Strings("tokens").value(), ElementsAre("a", "", "\xff"));
    EXPECT_THAT(*metadata.Ints("types").value(), ElementsAre(1, 2, 0xffffffff));
    EXPECT_EQ(metadata.Int("absent").value(), std::nullopt);
    const GgufTensorInfo& x = header.value().tensors.at("x");
    EXPECT_STREQ(x.type->name, "Q8_0");
    EXPECT_THAT(x.shape, ElementsAre(2, 32));
    EXPECT_EQ(x.begin % 32, 0u);
    EXPECT_EQ(x.end - x.begin, 68u);
    EXPECT_EQ(file.substr(x.begin, 68), std::string(68, 'x'));
    const GgufTensorInfo& y = header.value().tensors.at("y");
    EXPECT_EQ(file.substr(y.begin, y.end - y.begin), std::string(12, 'y'));
  }
}

TEST(GgufMetadata, ErrorsNameTheKey) {
  const std::string file = Good().Build();
  const Result<GgufHeader> header = Parse(file);
  const GgufMetadata& metadata = header.value().metadata;
  for (const Status& status : {metadata.Int("eps").status(), metadata.Double("flag").status(),
                               metadata.Bool("eps").status(), metadata.String("tokens").status(),
                               metadata.Strings("types").status(), metadata.Ints("tokens").status(),
                               metadata.Int("big").status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("f: metadata '"));
    EXPECT_THAT(status.message(), HasSubstr("' must be "));
  }
}

// A faulty file, and a part of the message that must name the error.
struct Case {
  std::string file, word;
};

std::string Truncated(std::string file, size_t bytes) {
  file.resize(bytes);
  return file;
}

std::string WithTensor(const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
  return GgufBuilder().Directory("t", dims, type, offset).Build() + std::string(64, '\0');
}

std::string WithEntry(uint32_t kind, const std::string& value) {
  return GgufBuilder().Entry("k", kind, value).Build();
}

std::string WithCounts(uint32_t version, uint64_t num_tensors, uint64_t num_metadata) {
  GgufBuilder builder = Good();
  builder.version = version;
  if (num_tensors > 0) builder.num_tensors = num_tensors;
  if (num_metadata > 0) builder.num_metadata = num_metadata;
  return builder.Build();
}

TEST(GgufHeader, RefusesLies) {
  const auto u32 = [](uint32_t x) { return GgufBuilder::Bytes(x); };
  const auto u64 = [](uint64_t x) { return GgufBuilder::Bytes(x); };
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  const Case cases[] = {
      {"", "does not begin with GGUF"},
      {"GGML....", "does not begin with GGUF"},
      {"GGUF", "the version"},
      {WithCounts(1, 0, 0), "version is 1"},
      {WithCounts(4, 0, 0), "version is 4"},
      {WithCounts(0x03000000, 0, 0), "big-endian"},
      {WithCounts(3, kHuge, 0), "number of tensors, 18446744073709551615"},
      {WithCounts(3, 0, kHuge), "number of metadata entries, 18446744073709551615"},
      {WithCounts(3, 3, 0), "the name of tensor 2"},
      {WithEntry(13, ""), "'k' has kind 13"},
      {WithEntry(GgufBuilder::kString, u64(kHuge)), "'k' runs past the end"},
      {WithEntry(GgufBuilder::kBool, "\x02"), "boolean of value 2"},
      {WithEntry(GgufBuilder::kArray, u32(4) + u64(kHuge)), "'k' has 18446744073709551615"},
      {WithEntry(GgufBuilder::kArray, u32(4) + u64(kHuge / 4 + 2)), "'k' has 4611686018427387905"},
      {WithEntry(GgufBuilder::kArray, u32(8) + u64(1) + u64(1000)), "'k' runs past the end"},
      {WithEntry(GgufBuilder::kArray, u32(99) + u64(0)), "elements of kind 99"},
      {WithEntry(GgufBuilder::kArray, u32(9) + u64(1) + u32(4) + u64(0)), "array of arrays"},
      {WithEntry(GgufBuilder::kArray, u32(10) + u64(1) + u64(kHuge)), "2^63"},
      {GgufBuilder().Int("k", 1).Int("k", 1).Build(), "'k' appears twice"},
      {GgufBuilder().Int("", 1).Build(), "metadata entry 0 is empty"},
      {GgufBuilder().Int("\xff", 1).Build(), "not valid UTF-8"},
      {GgufBuilder().Int(std::string(70000, 'k'), 1).Build(), "70000 bytes"},
      {GgufBuilder().Int("general.alignment", 0).Build(), "general.alignment' is 0"},
      {GgufBuilder().Int("general.alignment", 24).Build(), "general.alignment' is 24"},
      {GgufBuilder().Text("general.alignment", "32").Build(), "general.alignment' must be"},
      {GgufBuilder().Int("general.alignment", 1u << 30).Build(), "general.alignment' is"},
      {WithTensor({}, kF32, 0), "'t' has 0 dimensions"},
      {WithTensor({1, 1, 1, 1, 1}, kF32, 0), "'t' has 5 dimensions"},
      {WithTensor({4, 0}, kF32, 0), "dimension 1 is 0"},
      {WithTensor({uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0), "product of the dimensions"},
      {WithTensor({uint64_t{1} << 62, 2}, kF32, 0), "product of the dimensions"},
      {WithTensor({uint64_t{1} << 62}, kF32, 0), "product of the dimensions"},
      {WithTensor({uint64_t{1} << 61}, kF32, 0), "run past the end"},
      {WithTensor({17}, kF32, 0), "run past the end"},
      {WithTensor({1}, kF32, 64), "run past the end"},
      {WithTensor({1}, kF32, kHuge - 31), "run past the end"},
      {WithTensor({1}, kF32, 4), "no multiple of the alignment"},
      {WithTensor({31}, kQ4_1, 0), "no whole blocks of Q4_1"},
      {WithTensor({32}, 10, 0), "type 10 (Q2_K); supported are F32, F16"},
      {WithTensor({32}, 999, 0), "type 999 (unknown)"},
      {GgufBuilder().Directory("t", {1}, 0, 0).Directory("t", {1}, 0, 32).Build() +
           std::string(64, '\0'),
       "'t' appears twice"},
      {GgufBuilder().Directory("a", {9}, 0, 0).Directory("b", {1}, 0, 32).Build() +
           std::string(64, '\0'),
       "'b': its offset lies in tensor 'a'"},
  };
  for (const Case& c : cases) {
    const Result<GgufHeader> header = Parse(c.file);
    ASSERT_FALSE(header.ok()) << c.word;
    EXPECT_THAT(header.status().message(), HasSubstr(c.word));
  }
}

// No prefix of a file is accepted, and none crashes the parser. A file with one changed byte does
// not crash it either.
TEST(GgufHeader, SurvivesDamage) {
  const std::string good = Good().Build();
  for (size_t bytes = 0; bytes < good.size() - 20; ++bytes) {
    EXPECT_FALSE(Parse(Truncated(good, bytes)).ok()) << bytes;
  }
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 1 + round % 3; ++i) {
      bad[random() % bad.size()] = static_cast<char>(random() % 3 == 0 ? 255 : random());
    }
    const Result<GgufHeader> header = Parse(bad);
    if (!header.ok()) continue;
    for (const auto& [name, info] : header.value().tensors) {
      EXPECT_LE(info.begin, info.end);
      EXPECT_LE(info.end, bad.size());
    }
  }
}

// tests/test_gguf.py compares the values with the format's reference, type by type.
TEST(GgufTypes, EachHasANameAndBlocksInARow) {
  EXPECT_EQ(GgufTypes().size(), 14u);
  std::mt19937 random(1);
  for (const GgufType& type : GgufTypes()) {
    SCOPED_TRACE(type.name);
    EXPECT_EQ(FindGgufType(type.id), &type);
    EXPECT_EQ(GgufTypeName(type.id), "type " + std::to_string(type.id) + " (" + type.name + ")");
    const auto bytes = static_cast<size_t>(type.block_bytes);
    const auto elements = static_cast<size_t>(type.block_elements);
    // Three adjacent blocks at an odd address have the same values as each block alone.
    std::string data(1 + 3 * bytes, '\0');
    for (char& byte : data) byte = static_cast<char>(random());
    const auto* blocks = reinterpret_cast<const std::byte*>(data.data()) + 1;
    std::vector<float> all(3 * elements), one(elements);
    type.dequantize(blocks, 3, all.data());
    for (size_t i = 0; i < 3; ++i) {
      type.dequantize(blocks + i * bytes, 1, one.data());
      EXPECT_EQ(std::memcmp(one.data(), &all[i * elements], elements * sizeof(float)), 0);
    }
  }
}

TEST(GgufFile, RowsOfATensor) {
  const auto path =
      std::filesystem::temp_directory_path() / ("skein_gguf_" + std::to_string(getpid()) + ".gguf");
  std::string data;
  for (int i = 0; i < 12; ++i) data += GgufBuilder::Bytes(static_cast<float>(i));
  std::ofstream(path, std::ios::binary) << GgufBuilder().Tensor("t", {2, 3, 2}, kF32, data).Build();
  Result<GgufFile> opened = GgufFile::Open(path.string());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const GgufFile file = std::move(opened).value();  // the mapping keeps its address
  const Result<GgufTensor> tensor = file.Find("t");
  ASSERT_TRUE(tensor.ok());
  EXPECT_THAT(tensor.value().shape, ElementsAre(2, 3, 2));
  EXPECT_EQ(tensor.value().num_rows(), 6);
  float rows[4];
  tensor.value().ReadRows(2, 2, rows);
  EXPECT_THAT(rows, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(file.Names(), ElementsAre("t"));
  EXPECT_EQ(file.Find("u").status().code(), StatusCode::kNotFound);
  std::filesystem::remove(path);
  EXPECT_EQ(GgufFile::Open(path.string()).status().code(), StatusCode::kNotFound);
}

TEST(GgufWriter, WritesWhatTheReaderReads) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("skein_writer_" + std::to_string(getpid())))
          .string();
  GgufEntries entries;
  entries.Text("general.architecture", "llama");
  entries.U32("u32", 0xffffffff);
  entries.F32("f32", -0.5f);
  entries.Bool("flag", true);
  entries.Texts("texts", std::vector<std::string>{"a", "", "\xff"});
  entries.I32s("i32s", std::vector<int32_t>{-1, 2});
  entries.F32s("f32s", std::vector<float>{0.25f});
  const GgufType* q8 = FindGgufType(kQ8_0);
  {
    Result<GgufWriter> writer =
        GgufWriter::Create(path, entries, {{"x", q8, {2, 32}}, {"y", FindGgufType(kF32), {3}}});
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    const std::string x(68, 'x'), y(12, 'y');
    EXPECT_TRUE(writer->Write(1, 0, std::as_bytes(std::span(y))).ok());
    EXPECT_TRUE(writer->Write(0, 34, std::as_bytes(std::span(x).subspan(34))).ok());
    EXPECT_TRUE(writer->Write(0, 0, std::as_bytes(std::span(x).first(34))).ok());
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(writer->Close().ok());
    EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(path)), writer->file_bytes());
  }
  const Result<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const GgufMetadata& metadata = file.value().metadata();
  EXPECT_EQ(metadata.size(), 7u);
  EXPECT_EQ(metadata.Int("u32").value(), 0xffffffff);
  EXPECT_EQ(metadata.Double("f32").value(), -0.5);
  EXPECT_EQ(metadata.Bool("flag").value(), true);
  EXPECT_THAT(*metadata.Strings("texts").value(), ElementsAre("a", "", "\xff"));
  EXPECT_THAT(*metadata.Ints("i32s").value(), ElementsAre(-1, 2));
  EXPECT_THAT(*metadata.Doubles("f32s").value(), ElementsAre(0.25));
  const GgufTensor x = file.value().Find("x").value();
  EXPECT_EQ(x.type, q8);
  EXPECT_THAT(x.shape, ElementsAre(2, 32));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(x.data), 68), std::string(68, 'x'));
  const GgufTensor y = file.value().Find("y").value();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(y.data), 12), std::string(12, 'y'));
  std::filesystem::remove(path);
}

TEST(GgufWriter, AnUnfinishedFileGoes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("skein_unfinished_" + std::to_string(getpid())))
          .string();
  std::string unfinished;
  {
    const Result<GgufWriter> writer = GgufWriter::Create(path, {}, {});
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    unfinished = writer.value().unfinished_path();
    EXPECT_TRUE(std::filesystem::exists(unfinished));
  }
  EXPECT_FALSE(std::filesystem::exists(unfinished));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THAT(GgufWriter::Create("/nowhere/x", {}, {}).status().message(),
              HasSubstr("/nowhere/x.part"));
}

TEST(GgufNames, LayaHasItsHeadBehindTheEncodersLayers) {
  constexpr int64_t kLayers = 22;
  const std::pair<const char*, const char*> kNames[] = {
      {"encoder.embeddings.tok_embeddings.weight", "token_embd.weight"},
      {"encoder.embeddings.norm.weight", "token_embd_norm.weight"},
      {"encoder.layers.0.attn.Wqkv.weight", "blk.0.attn_qkv.weight"},
      {"encoder.layers.21.mlp.Wi.weight", "blk.21.ffn_up.weight"},
      {"encoder.final_norm.weight", "output_norm.weight"},
      {"type_emb.weight", "token_types.weight"},
      {"head.layers.0.self_attn.in_proj_weight", "blk.22.attn_qkv.weight"},
      {"head.layers.0.self_attn.in_proj_bias", "blk.22.attn_qkv.bias"},
      {"head.layers.0.self_attn.out_proj.bias", "blk.22.attn_output.bias"},
      {"head.layers.1.norm1.weight", "blk.23.attn_norm.weight"},
      {"head.layers.1.norm2.bias", "blk.23.ffn_norm.bias"},
      {"head.layers.1.linear1.weight", "blk.23.ffn_up.weight"},
      {"head.layers.1.linear2.bias", "blk.23.ffn_down.bias"},
      {"scorer.0.bias", "cls.norm.bias"},
      {"scorer.1.weight", "cls.weight"},
      {"scorer.3.bias", "cls.output.bias"},
  };
  for (const auto& [weight, tensor] : kNames) {
    EXPECT_EQ(LayaTensorName(weight, kLayers), tensor);
    EXPECT_EQ(WeightOfLayaTensor(tensor, kLayers), weight);
  }
}

TEST(GgufNames, LayaHasNoOtherTensors) {
  for (const char* const tensor : {"blk.22.ffn_gate.weight", "blk.22.attn_qkv.scale", "blk.22",
                                   "output.weight", "blk.22.attn_q.weight", ""}) {
    EXPECT_EQ(WeightOfLayaTensor(tensor, 22), "") << tensor;
  }
  EXPECT_EQ(LayaTensorName("act_head.0.weight", 22), "");
  EXPECT_EQ(LayaTensorName("head.layers.0.other.weight", 22), "");
}

}  // namespace
}  // namespace skein
