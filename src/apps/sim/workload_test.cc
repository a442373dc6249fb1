#include "apps/sim/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "testing/shared.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The requests in the lines that the workload generator prints for `arguments`.
std::vector<WorkloadRequest> Generate(const std::string& arguments) {
  const std::string path =
      ::testing::TempDir() + "workload_" + std::to_string(std::hash<std::string>()(arguments));
  const std::string traces = skein::testing::SharedDir() + "/traces";
  const std::string command =
      "cd " + traces + " && python3 -B make_workloads.py " + arguments + " > '" + path + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  auto requests = LoadWorkload(path, 0);
  std::filesystem::remove(path);
  EXPECT_TRUE(requests.ok()) << requests.status().message();
  return requests.ok() ? std::move(requests).value() : std::vector<WorkloadRequest>{};
}

TEST(ExpandSegmentTest, CheckValues) {
  std::vector<TokenId> ids;
  ExpandSegment("1/uniform/0", 8, {.vocab = 512, .min_id = 3}, &ids);
  EXPECT_THAT(ids, ElementsAre(60, 446, 305, 202, 143, 266, 353, 370));
}

TEST(ExpandSegmentTest, StaysInRange) {
  std::vector<TokenId> ids;
  ExpandSegment("any", 5000, {.vocab = 12, .min_id = 9}, &ids);
  EXPECT_EQ(*std::min_element(ids.begin(), ids.end()), 9);
  EXPECT_EQ(*std::max_element(ids.begin(), ids.end()), 11);
}

// The compact form must expand to exactly the tokens and texts that the generator writes in the
// other two forms.
TEST(WorkloadTest, ThreeFormsAgree) {
  SKEIN_REQUIRE_SHARED();
  const std::vector<std::string> kinds = {
      "uniform --num 20 --min-len 1 --max-len 90",
      "uniform --num 3 --vocab 151643 --min-id 0 --seed 7",
      "prefix-groups --num 10 --groups 3 --prefix-len 40 --suffix-len 5",
      "multi-slo --num 20 --rate 8 --scale 0.013 --slo-scale 0.1",
      "post-recommendation --scale 0.02 --posts 2 --users 4",
      "trace mooncake_conversation.jsonl.gz --num 20 --scale 0.002 --speed 10"};
  for (const std::string& kind : kinds) {
    SCOPED_TRACE(kind);
    const TokenRange range = kind.find("151643") != std::string::npos
                                 ? TokenRange{.vocab = 151643, .min_id = 0}
                                 : TokenRange{};
    const auto compact = Generate(kind);
    const auto ids = Generate(kind + " --format ids");
    const auto text = Generate(kind + " --format text");
    ASSERT_FALSE(compact.empty());
    ASSERT_EQ(compact.size(), ids.size());
    ASSERT_EQ(compact.size(), text.size());
    for (size_t i = 0; i < compact.size(); ++i) {
      ASSERT_TRUE(compact[i].has_segments());
      EXPECT_EQ(compact[i].TokenIds(range), ids[i].TokenIds(range));
      EXPECT_EQ(compact[i].arrival_us, ids[i].arrival_us);
      EXPECT_EQ(compact[i].max_tokens, text[i].max_tokens);
      EXPECT_EQ(compact[i].slo_ttft_us, text[i].slo_ttft_us);
      EXPECT_EQ(compact[i].request_class, text[i].request_class);
      std::string expanded;
      for (const auto& segment : compact[i].segments) {
        ExpandSegmentAsText(segment.stream, segment.length, &expanded);
      }
      EXPECT_EQ(expanded, text[i].prompt);
    }
  }
}

TEST(WorkloadTest, ReadsTheFields) {
  const auto request = ParseWorkloadLine(
      R"({"id":"a-0","arrival_s":0.00958,"class":"text","max_tokens":1,"prompt_len":11,)"
      R"("slo_ttft_s":0.25,"segments":[["1/multi-slo/0",11]]})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request.value().id, "a-0");
  EXPECT_EQ(request.value().request_class, "text");
  EXPECT_EQ(request.value().arrival_us, 9580);
  EXPECT_EQ(request.value().slo_ttft_us, 250'000);
  EXPECT_EQ(request.value().max_tokens, 1);
  EXPECT_EQ(request.value().TokenIds({}).size(), 11u);
}

TEST(WorkloadTest, APrefixGroupStandsForTheUser) {
  const auto user = [](const std::string& member) {
    const std::string line = "{\"max_tokens\": 1, " + member + "\"prompt\": \"a\"}";
    return ParseWorkloadLine(line).value().user;
  };
  EXPECT_EQ(user(""), "");
  EXPECT_EQ(user(R"("prefix_group": "g1", )"), "g1");
  EXPECT_EQ(user(R"("prefix_group": "g1", "user": "u2", )"), "u2");
}

TEST(WorkloadTest, RefusesBadLinesByField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([1])", "JSON object"},
      {R"({"max_tokens":1)", "JSON object"},
      {R"({"prompt":"x"})", "max_tokens"},
      {R"({"max_tokens":-1,"prompt":"x"})", "max_tokens"},
      {R"({"max_tokens":18446744073709551615,"prompt":"x"})", "max_tokens"},
      {R"({"max_tokens":1})", "prompt"},
      {R"({"max_tokens":1,"prompt":"x","segments":[["a",1]]})", "exactly once"},
      {R"({"max_tokens":1,"prompt":""})", "not empty"},
      {R"({"max_tokens":1,"prompt_token_ids":[]})", "prompt_token_ids"},
      {R"({"max_tokens":1,"prompt_token_ids":[1,-2]})", "-2"},
      {R"({"max_tokens":1,"segments":[["a",0]]})", "segments"},
      {R"({"max_tokens":1,"segments":[["a",99999999999]]})", "segments"},
      {R"({"max_tokens":1,"segments":[["a"]]})", "segments"},
      {R"({"max_tokens":1,"prompt":"x","arrival_s":-1})", "arrival_s"},
      {R"({"max_tokens":1,"prompt":"x","slo_ttft_s":"1"})", "slo_ttft_s"},
      {R"({"max_tokens":1,"prompt":"x","slo_ttft_ms":0})", "slo_ttft_ms"},
      {R"({"max_tokens":1,"prompt":"x","slo_ttft_ms":5,"slo_ttft_s":1})", "slo_ttft_ms"},
      {R"({"max_tokens":1,"prompt":"x","slo_tpot_ms":"5"})", "slo_tpot_ms"},
      {R"({"max_tokens":1,"prompt":"x","priority":0.5})", "priority"},
      {R"({"max_tokens":1,"prompt":"x","class":3})", "class"}};
  for (const auto& [line, part] : cases) {
    const auto request = ParseWorkloadLine(line);
    ASSERT_FALSE(request.ok()) << line;
    EXPECT_THAT(request.status().message(), HasSubstr(part)) << line;
  }
}

TEST(WorkloadTest, FileErrorsNameTheLine) {
  const std::string path = ::testing::TempDir() + "workload_bad.jsonl";
  std::ofstream(path) << R"({"max_tokens":1,"prompt":"x"})"
                      << "\n\n{}\n";
  const auto bad = LoadWorkload(path, 0);
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.status().message(), HasSubstr("workload_bad.jsonl:3: max_tokens"));
  const auto first = LoadWorkload(path, 1);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().size(), 1u);
  std::filesystem::remove(path);
  EXPECT_EQ(LoadWorkload(path, 0).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace skein
