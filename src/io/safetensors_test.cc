#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "io/model_files.h"
#include "testing/shared.h"
#include "testing/tensor_bytes.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FileBytes(const std::string& header, size_t data_bytes) {
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<char>(i));
  return file;
}

Result<SafetensorsHeader> ParseFile(const std::string& file) {
  return ParseSafetensorsHeader(std::as_bytes(std::span(file)), file.size(), "f");
}

std::string Entry(const std::string& dtype, const std::string& shape, const std::string& range) {
  return R"({"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + range +
         "]}";
}

const char kGood[] = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,1],)"
                     R"("data_offsets":[12,20]},"a":{"dtype":"BF16","shape":[2,3],)"
                     R"("data_offsets":[0,12]},"e":{"dtype":"F16","shape":[0,7],)"
                     R"("data_offsets":[20,20]},"i":{"dtype":"I64","shape":[],)"
                     R"("data_offsets":[20,28]}}   )";

TEST(SafetensorsHeader, ReadsWhatIsThere) {
  const std::string file = FileBytes(kGood, 28);
  const Result<SafetensorsHeader> header = ParseFile(file);
  ASSERT_TRUE(header.ok()) << header.status().message();
  ASSERT_EQ(header.value().tensors.size(), 4u);
  const uint64_t data = header.value().data_begin;
  EXPECT_EQ(data, 8 + sizeof(kGood) - 1);
  const TensorInfo& a = header.value().tensors.at("a");
  EXPECT_EQ(a.dtype, DType::kBf16);
  EXPECT_THAT(a.shape, ElementsAre(2, 3));
  EXPECT_EQ(a.begin, data);
  EXPECT_EQ(a.end, data + 12);
  EXPECT_EQ(header.value().tensors.at("i").dtype, std::nullopt);
  EXPECT_EQ(header.value().tensors.at("i").file_dtype, "I64");
  EXPECT_TRUE(header.value().tensors.at("i").shape.empty());
}

TEST(SafetensorsHeader, EmptyFileOfTensors) { EXPECT_TRUE(ParseFile(FileBytes("{}", 0)).ok()); }

// A faulty file, and a word of the message that must name the error.
struct RefusedHeader {
  std::string file, word;
};

void ExpectRefused(const RefusedHeader& c) {
  const Result<SafetensorsHeader> header = ParseFile(c.file);
  ASSERT_FALSE(header.ok()) << c.word << ": " << c.file.substr(8, 200);
  EXPECT_THAT(header.status().message(), HasSubstr(c.word));
}

TEST(SafetensorsHeader, RefusesLies) {
  const std::string good = FileBytes(kGood, 28);
  std::string huge = good, long_header = good;
  const uint64_t lengths[] = {kMaxHeaderBytes + 1, good.size()};
  std::memcpy(huge.data(), &lengths[0], 8);
  std::memcpy(long_header.data(), &lengths[1], 8);
  std::string max = good;
  std::fill(max.begin(), max.begin() + 8, '\xff');
  const auto one = [](const std::string& entry, size_t bytes) {
    return FileBytes(R"({"t":)" + entry + "}", bytes);
  };
  const RefusedHeader cases[] = {
      {"", "too short"},
      {"1234567", "too short"},
      {FileBytes("", 0), "begin with '{'"},
      {FileBytes(" {}", 0), "begin with '{'"},
      {FileBytes("[]", 0), "begin with '{'"},
      {FileBytes("{\"t\":", 0), "not valid JSON"},
      {FileBytes("{\"\xff\":1}", 0), "not valid JSON"},
      {huge, "at most 100000000"},
      {max, "at most 100000000"},
      {long_header, "truncated"},
      {good.substr(0, 30), "truncated"},
      {good.substr(0, good.size() - 1), "claims bytes [20, 28)"},
      {good + "x", "the file holds 29"},
      {FileBytes("{}", 1), "the file holds 1"},
      {one("3", 0), "described by an object"},
      {one("{}", 0), "needs 'dtype'"},
      {one(R"({"dtype":"F32","shape":[1]})", 4), "needs 'dtype'"},
      {one(Entry("F31", "1", "0,4"), 4), "unknown dtype 'F31'"},
      {one(R"({"dtype":32,"shape":[1],"data_offsets":[0,4]})", 4), "'dtype'"},
      {one(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4), "'dtype'"},
      {one(Entry("F32", "-1", "0,4"), 4), "'shape'"},
      {one(Entry("F32", "1.0", "0,4"), 4), "'shape'"},
      {one(Entry("F32", "\"1\"", "0,4"), 4), "'shape'"},
      {one(Entry("F32", "[1]", "0,4"), 4), "'shape'"},
      {one(Entry("F32", "1", "0,4,8"), 4), "[begin, end]"},
      {one(Entry("F32", "1", "0"), 4), "[begin, end]"},
      {one(Entry("F32", "1", "-4,0"), 4), "'data_offsets'"},
      {one(Entry("F32", "1", "4,0"), 4), "claims bytes [4, 0)"},
      {one(Entry("F32", "1", "0,8"), 4), "claims bytes [0, 8)"},
      {one(Entry("F32", "1", "18446744073709551612,18446744073709551615"), 4), "claims bytes"},
      {one(Entry("F32", "2", "0,4"), 4), "does not fill"},
      {one(Entry("BF16", "1", "0,4"), 4), "does not fill"},
      {one(Entry("F4", "3", "0,2"), 2), "does not fill"},
      // The products 2^62 * 4 * 8 bits and 2^32 * 2^32 would wrap around to 0.
      {one(Entry("F32", "4611686018427387904", "0,0"), 0), "does not fill"},
      {one(Entry("U8", "4294967296,4294967296", "0,0"), 0), "does not fill"},
      {one(Entry("U8", "9223372036854775808,0", "0,0"), 0), "dimension"},
  };
  for (const RefusedHeader& c : cases) ExpectRefused(c);
}

TEST(SafetensorsHeader, RefusesEntriesThatDoNotFitTogether) {
  const RefusedHeader cases[] = {
      {FileBytes(R"({"a":)" + Entry("U8", "4", "0,4") + R"(,"b":)" + Entry("U8", "4", "2,6") + "}",
                 6),
       "inside another"},
      {FileBytes(R"({"a":)" + Entry("U8", "4", "0,4") + R"(,"b":)" + Entry("U8", "4", "0,4") + "}",
                 4),
       "inside another"},
      {FileBytes(R"({"a":)" + Entry("U8", "4", "0,4") + R"(,"b":)" + Entry("U8", "1", "5,6") + "}",
                 6),
       "hole"},
      {FileBytes(R"({"a":)" + Entry("U8", "4", "0,4") + R"(,"a":)" + Entry("U8", "2", "4,6") + "}",
                 6),
       "appears twice"},
      {FileBytes(R"({"__metadata__":{"a":1}})", 0), "__metadata__"},
      {FileBytes(R"({"__metadata__":[]})", 0), "__metadata__"},
      {FileBytes("{\"a\":" + std::string(100000, '[') + "}", 0), "not valid JSON"},
  };
  for (const RefusedHeader& c : cases) ExpectRefused(c);
}

// Checks that accepted tensors lie within the file and cover it exactly once.
void CheckAccepted(const SafetensorsHeader& header, uint64_t file_bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, info] : header.tensors) {
    ASSERT_LE(info.begin, info.end);
    ranges.emplace_back(info.begin, info.end);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = header.data_begin;
  for (const auto& [begin, end] : ranges) {
    ASSERT_EQ(begin, at);
    at = end;
  }
  ASSERT_EQ(at, file_bytes);
}

// Damages `text` in 1 to 4 places. A byte becomes any byte or one of JSON syntax, or a bit of it is
// flipped; or some bytes are cut out, or one is inserted.
std::string Damaged(std::string text, std::mt19937& random) {
  const auto below = [&](size_t n) { return random() % n; };
  const std::string alphabet = "{}[]\",:0123456789-eE.tF \\u";
  for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
    const size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text[at] = alphabet[below(alphabet.size())];
        break;
      case 2:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 3:
        text.erase(at, 1 + below(4));
        break;
      default:
        text.insert(at, 1, alphabet[below(alphabet.size())]);
        break;
    }
  }
  return text;
}

TEST(SafetensorsHeader, SurvivesRandomDamage) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int accepted = 0;
  for (int n = 0; n < 30000; ++n) {
    // If only the text is damaged, and its length fits, the parser gets further than with a damaged
    // file.
    std::string file = FileBytes(kGood, 28);
    if (n % 3 != 0) {
      file = FileBytes(Damaged(kGood, random), 26 + (n % 30 == 1 ? random() % 5 : 2));
    } else if (n % 2 != 0) {
      file = Damaged(file, random);
    } else {
      file = Damaged(file.substr(0, 8), random) + file.substr(8, random() % file.size());
    }
    // The copy on the heap has the exact size, so that a sanitizer notices any read past the end.
    const std::vector<char> copy(file.begin(), file.end());
    const Result<SafetensorsHeader> header =
        ParseSafetensorsHeader(std::as_bytes(std::span(copy)), copy.size(), "f");
    if (header.ok()) {
      ++accepted;
      CheckAccepted(header.value(), file.size());
    } else {
      EXPECT_FALSE(header.status().message().empty());
    }
  }
  // If names, data or metadata are damaged, a file stays valid. So some files must pass, but most
  // must not.
  EXPECT_GT(accepted, 300);
  EXPECT_LT(accepted, 20000);
}

class ModelFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::temp_directory_path() /
           ("skein_files_" + std::string(info->name()) + std::to_string(getpid()));
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
  }
  Result<ModelFiles> Open() { return ModelFiles::Open(dir_.string()); }
  void WriteShards(const std::string& weight_map) {
    Write("s1.safetensors", FileBytes(R"({"a":)" + Entry("U8", "4", "0,4") + "}", 4));
    Write("s2.safetensors", FileBytes(R"({"b":)" + Entry("F16", "1", "0,2") + R"(,"c":)" +
                                          Entry("F32", "1", "2,6") + "}",
                                      6));
    Write("model.safetensors.index.json", R"({"metadata":{},"weight_map":)" + weight_map + "}");
  }

  std::filesystem::path dir_;
};

TEST_F(ModelFilesTest, SingleFile) {
  Write("model.safetensors", FileBytes(kGood, 28));
  Result<ModelFiles> files = Open();
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_THAT(files->Names(), ElementsAre("a", "b", "e", "i"));
  EXPECT_EQ(skein::testing::TensorBytes(*files), 28);
  const Result<TensorView> b = files->Find("b");
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b.value().bytes, 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(static_cast<int>(b.value().data[i]), 12 + i);
  ModelFiles::ReleasePages(b.value());
  EXPECT_EQ(static_cast<int>(b.value().data[3]), 15);  // the byte is read from the file again
  EXPECT_TRUE(files->Find("b", {2, 1}).ok());
  EXPECT_THAT(files->Find("b", {1, 2}).status().message(), HasSubstr("[2, 1]"));
  EXPECT_EQ(files->Find("zz").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(files->Find("i").status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(files->Find("i").status().message(), HasSubstr("I64"));
}

// The KiB of a mapped file that this process has in memory. REQUIRES: `path` contains no links.
int64_t ResidentKib(const std::string& path) {
  std::ifstream smaps("/proc/self/smaps");
  int64_t total = 0;
  bool is_file = false;
  for (std::string line; std::getline(smaps, line);) {
    // A mapping's first line begins with its address. The lines with its numbers begin with a
    // capital letter.
    if (line.empty() || line[0] < 'A' || line[0] > 'Z') {
      is_file = line.ends_with(" " + path);
    } else if (is_file && line.starts_with("Rss:")) {
      total += std::stoll(line.substr(4));
    }
  }
  return total;
}

TEST_F(ModelFilesTest, ReleasedPagesAreGone) {
  constexpr size_t kBytes = size_t{1} << 20;
  const std::string bytes = std::to_string(kBytes), floats = std::to_string(kBytes / sizeof(float));
  Write("model.safetensors",
        FileBytes(R"({"big":)" + Entry("F32", floats, "0," + bytes) + "}", kBytes));
  Result<ModelFiles> files = Open();
  ASSERT_TRUE(files.ok()) << files.status().message();
  const TensorView big = files->Find("big").value();
  const std::string path = (std::filesystem::canonical(dir_) / "model.safetensors").string();
  const int64_t page_kib = sysconf(_SC_PAGESIZE) / 1024;
  for (int round = 0; round < 2; ++round) {  // released pages are read from the file again
    for (size_t i = 0; i < kBytes; i += 509) {
      ASSERT_EQ(static_cast<size_t>(big.data[i]), i % 256) << "byte " << i;
    }
    ASSERT_GE(ResidentKib(path), static_cast<int64_t>(kBytes / 1024));
    ModelFiles::ReleasePages(big);
    // The first and the last page may also have bytes of other tensors.
    ASSERT_LE(ResidentKib(path), 2 * page_kib);
  }
}

TEST_F(ModelFilesTest, Shards) {
  WriteShards(R"({"a":"s1.safetensors","b":"s2.safetensors","c":"s2.safetensors"})");
  Result<ModelFiles> files = Open();
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_THAT(files->Names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(skein::testing::TensorBytes(*files), 10);
  EXPECT_EQ(static_cast<int>(files->Find("c").value().data[0]), 2);
  EXPECT_EQ(files->Info("a").file_dtype, "U8");
}

// A tensor of all experts is found as the matrices of each.
TEST_F(ModelFilesTest, SplitsTheTensorsOfAllExperts) {
  const std::string at = "model.layers.0.mlp.experts.";
  // Two experts with gate and up [1, 2] each, and down [2, 1].
  Write("model.safetensors",
        FileBytes("{\"" + at + "gate_up_proj\":" + Entry("F16", "2,2,2", "0,16") + ",\"" + at +
                      "down_proj\":" + Entry("F16", "2,2,1", "16,24") + "}",
                  24));
  Result<ModelFiles> files = Open();
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_THAT(files->Names(), ElementsAre(at + "0.down_proj.weight", at + "0.gate_proj.weight",
                                          at + "0.up_proj.weight", at + "1.down_proj.weight",
                                          at + "1.gate_proj.weight", at + "1.up_proj.weight"));
  const std::pair<const char*, int> first_bytes[] = {{"0.gate_proj", 0},  {"0.up_proj", 4},
                                                     {"1.gate_proj", 8},  {"1.up_proj", 12},
                                                     {"0.down_proj", 16}, {"1.down_proj", 20}};
  for (const auto& [matrix, byte] : first_bytes) {
    const bool is_down = byte >= 16;
    const std::string name = at + matrix + ".weight";
    Result<TensorView> view =
        files->Find(name, is_down ? std::vector<int64_t>{2, 1} : std::vector<int64_t>{1, 2});
    ASSERT_TRUE(view.ok()) << view.status().message();
    EXPECT_EQ(view->bytes, 4u);
    EXPECT_EQ(static_cast<int>(view->data[0]), byte) << matrix;
  }
}

TEST_F(ModelFilesTest, GivesMixtralsTensorsTheNamesOfOtherMixtures) {
  const std::string at = "model.layers.0.";
  const std::pair<std::string, std::string> names[] = {
      {"block_sparse_moe.experts.1.w1.weight", "mlp.experts.1.gate_proj.weight"},
      {"block_sparse_moe.experts.1.w2.weight", "mlp.experts.1.down_proj.weight"},
      {"block_sparse_moe.experts.1.w3.weight", "mlp.experts.1.up_proj.weight"},
      {"block_sparse_moe.gate.weight", "mlp.gate.weight"},
      {"self_attn.q_proj.weight", "self_attn.q_proj.weight"}};
  std::string header;
  for (size_t i = 0; i < std::size(names); ++i) {
    header += (i == 0 ? "{\"" : ",\"") + at + names[i].first +
              "\":" + Entry("F16", "1", std::to_string(2 * i) + "," + std::to_string(2 * i + 2));
  }
  Write("model.safetensors", FileBytes(header + "}", 2 * std::size(names)));
  Result<ModelFiles> files = Open();
  ASSERT_TRUE(files.ok()) << files.status().message();
  for (size_t i = 0; i < std::size(names); ++i) {
    const auto& [of_mixtral, plain] = names[i];
    EXPECT_EQ(MixtralName(at + plain), at + of_mixtral);
    Result<TensorView> view = files->Find(at + plain);
    ASSERT_TRUE(view.ok()) << view.status().message();
    EXPECT_EQ(static_cast<size_t>(view->data[0]), 2 * i) << plain;
  }
}

TEST_F(ModelFilesTest, RefusesTensorsOfExpertsThatAreNoEqualMatrices) {
  const std::string name = "model.layers.0.mlp.experts.gate_up_proj";
  const auto write = [&](const std::string& shape) {
    Write("model.safetensors",
          FileBytes("{\"" + name + "\":" + Entry("F16", shape, "0,12") + "}", 12));
  };
  write("2,3,1");
  EXPECT_EQ(Open().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Open().status().message(), HasSubstr(name));
  EXPECT_THAT(Open().status().message(), HasSubstr("[2, 3, 1]"));
  write("6,1");  // no tensor of all experts
  EXPECT_THAT(Open()->Names(), ElementsAre(name));
}

TEST_F(ModelFilesTest, RefusesBadIndexes) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"a":"../s1.safetensors"})", "plain file name"},
      {R"({"a":"/etc/passwd"})", "plain file name"},
      {R"({"a":".."})", "plain file name"},
      {R"({"a":""})", "plain file name"},
      {R"({"a":"s1.safetensors\u0000x"})", "plain file name"},
      {R"({"a":3})", "must name a file"},
      {R"({"a":"s3.safetensors"})", "s3.safetensors"},
      {R"({"a":"s2.safetensors"})", "not in s2.safetensors"},
      {R"({"a":"s1.safetensors","a":"s1.safetensors"})", "appears twice"},
      {R"("x")", "must be an object"},
      {"null", "is missing"},
      {"{", "not valid JSON"},
  };
  for (const auto& [weight_map, word] : cases) {
    WriteShards(weight_map);
    const Result<ModelFiles> files = Open();
    ASSERT_FALSE(files.ok()) << weight_map;
    EXPECT_THAT(files.status().message(), HasSubstr(word));
  }
}

TEST_F(ModelFilesTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(Open().status().code(), StatusCode::kNotFound);
  std::filesystem::create_directory(dir_ / "model.safetensors");
  EXPECT_THAT(Open().status().message(), HasSubstr("regular file"));
  std::filesystem::remove(dir_ / "model.safetensors");
  Write("model.safetensors", "");
  EXPECT_THAT(Open().status().message(), HasSubstr("empty"));
}

TEST_F(ModelFilesTest, RealModel) {
  SKEIN_REQUIRE_SHARED();
  const std::string dir = ::skein::testing::SharedDir() + "/models/stories260K";
  const Result<ModelFiles> files = ModelFiles::Open(dir);
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(skein::testing::TensorBytes(files.value()), 260032 * 4);
  EXPECT_TRUE(files.value().Find("model.embed_tokens.weight", {512, 64}).ok());
}

}  // namespace
}  // namespace skein
