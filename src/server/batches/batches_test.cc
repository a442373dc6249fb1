#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "server/batches/multipart.h"
#include "testing/fake_server.h"

namespace skein::testing {
namespace {

namespace fs = std::filesystem;

constexpr char kFormType[] = "multipart/form-data; boundary=\"b-7\"";

std::string FormOf(const std::string& file, const std::string& purpose = "batch") {
  return "--b-7\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose +
         "\r\n--b-7\r\nContent-Disposition: form-data; name=\"file\"; filename=\"in \\\"1\\\"\"\r\n"
         "Content-Type: application/octet-stream\r\n\r\n" +
         file + "\r\n--b-7--\r\n";
}

std::string RequestLine(const std::string& id, const std::string& body,
                        const std::string& url = "/v1/completions") {
  return R"({"custom_id": ")" + id + R"(", "method": "POST", "url": ")" + url + R"(", "body": )" +
         body + "}\n";
}

std::string CompletionLines(int count, int max_tokens = 4) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += RequestLine("line-" + std::to_string(i),
                         R"({"prompt": "Hi", "max_tokens": )" + std::to_string(max_tokens) + "}");
  }
  return lines;
}

class BatchesTest : public ServerTest {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("skein-batches-" + std::to_string(getpid()));
    fs::remove_all(dir_);
  }
  void TearDown() override {
    server_.reset();
    fs::remove_all(dir_);
  }

  void StartHere(int64_t max_bytes = 1 << 20) {
    ServerConfig config;
    config.batch_dir = dir_.string();
    config.max_batch_bytes = max_bytes;
    Start(std::move(config));
  }
  Answer Upload(const std::string& file, const std::string& purpose = "batch") {
    return Post("/v1/files", FormOf(file, purpose), {{"Content-Type", kFormType}});
  }
  // Uploads the lines and makes a batch of them; returns its id.
  std::string Begin(const std::string& lines, const std::string& endpoint = "/v1/completions") {
    const Answer file = Upload(lines);
    EXPECT_EQ(file.status, 200) << file.body;
    const Answer batch =
        Post("/v1/batches", R"({"input_file_id": )" + file.json()["id"].dump() +
                                R"(, "endpoint": ")" + endpoint +
                                R"(", "completion_window": "24h", "metadata": {"of": "me"}})");
    EXPECT_EQ(batch.status, 200) << batch.body;
    return batch.json()["id"];
  }
  Json Batch(const std::string& id) { return Get("/v1/batches/" + id).json(); }
  Json Ended(const std::string& id) {
    EXPECT_TRUE(Eventually([&] {
      const std::string status = Batch(id)["status"];
      return status == "completed" || status == "failed" || status == "cancelled";
    })) << Batch(id);
    return Batch(id);
  }
  std::vector<Json> LinesOf(const Json& file_id) {
    std::vector<Json> lines;
    if (!file_id.is_string()) return lines;
    const Answer answer = Get("/v1/files/" + file_id.get<std::string>() + "/content");
    EXPECT_EQ(answer.status, 200);
    for (size_t begin = 0, end; (end = answer.body.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      lines.push_back(*ParseJson(answer.body.substr(begin, end - begin)));
    }
    return lines;
  }
  std::set<std::string> IdsOf(const std::vector<Json>& lines) {
    std::set<std::string> ids;
    for (const Json& line : lines) {
      EXPECT_TRUE(ids.insert(line["custom_id"].get<std::string>()).second) << line;
    }
    return ids;
  }

  fs::path dir_;
};

TEST_F(BatchesTest, AFormIsTakenApart) {
  const std::string form = FormOf("a\r\nb");  // the parts lie in it
  auto parts = ParseForm(kFormType, form);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ((*parts)[0].name, "purpose");
  EXPECT_EQ((*parts)[0].content, "batch");
  EXPECT_EQ((*parts)[1].filename, "in \"1\"");
  EXPECT_EQ((*parts)[1].content, "a\r\nb");
  const std::string empty_form = "preamble\r\n" + FormOf("");
  auto empty = ParseForm("Multipart/Form-Data;boundary=b-7", empty_form);
  ASSERT_TRUE(empty.ok()) << empty.status().message();
  EXPECT_EQ((*empty)[1].content, "");
  for (const std::string& body : {std::string(), std::string("--b-7"), std::string("--b-7\r\n"),
                                  std::string("--b-7\r\n--b-7--"), FormOf("x").substr(0, 60),
                                  std::string("--b-7\r\nContent-Type: a\r\n\r\nx\r\n--b-7--")}) {
    EXPECT_FALSE(ParseForm(kFormType, body).ok()) << body;
  }
  EXPECT_FALSE(ParseForm("multipart/form-data", FormOf("x")).ok());
  EXPECT_FALSE(ParseForm("application/json", FormOf("x")).ok());
}

TEST_F(BatchesTest, WithoutADirectoryTheRoutesSayWhatToDo) {
  Start();
  for (const char* path : {"/v1/files", "/v1/batches", "/v1/files/x", "/v1/batches/x"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.status, 404);
    EXPECT_NE(answer.body.find("--batch-dir"), std::string::npos) << answer.body;
  }
}

TEST_F(BatchesTest, FilesAreKeptWithinTheBound) {
  StartHere(/*max_bytes=*/10);
  const Answer file = Upload("12345678");
  ASSERT_EQ(file.status, 200) << file.body;
  const std::string id = file.json()["id"];
  EXPECT_EQ(file.json()["bytes"], 8);
  EXPECT_EQ(file.json()["filename"], "in \"1\"");
  EXPECT_EQ(Upload("123").status, 413);
  EXPECT_EQ(Upload("", "fine-tune").status, 400);
  EXPECT_EQ(Get("/v1/files/" + id + "/content").body, "12345678");
  EXPECT_EQ(Get("/v1/files").json()["data"].size(), 1U);
  EXPECT_EQ(Get("/v1/files/file-none").status, 404);
  Client client(port_);
  client.SendRequest("DELETE", "/v1/files/" + id, "");
  EXPECT_EQ(client.Read().json()["deleted"], true);
  EXPECT_EQ(Get("/v1/files/" + id).status, 404);
  EXPECT_EQ(Upload("1234567890").status, 200);
}

TEST_F(BatchesTest, LinesAreAnsweredAsTheRouteAnswersThem) {
  StartHere();
  const std::string lines =
      RequestLine("good",
                  R"({"prompt": "Hi", "max_tokens": 5, "priority": -9, "slo_ttft_ms": 1})") +
      "\n" + RequestLine("bad", R"({"prompt": "Hi", "max_tokens": -5})") +
      RequestLine("stream", R"({"prompt": "Hi", "stream": true})") +
      RequestLine("encoding_format", R"({"prompt": "Hi", "encoding_format": "bytes_only"})");
  const Json batch = Ended(Begin(lines));
  EXPECT_EQ(batch["status"], "completed");
  EXPECT_EQ(batch["request_counts"].dump(), R"({"total":4,"completed":1,"failed":3})");
  EXPECT_EQ(batch["metadata"]["of"], "me");
  const auto output = LinesOf(batch["output_file_id"]);
  ASSERT_EQ(output.size(), 1U);
  EXPECT_EQ(output[0]["custom_id"], "good");
  EXPECT_EQ(output[0]["response"]["status_code"], 200);
  EXPECT_EQ(output[0]["response"]["body"]["choices"][0]["text"],
            Complete(R"("max_tokens": 5)").json()["choices"][0]["text"]);
  for (const Json& line : LinesOf(batch["error_file_id"])) {
    EXPECT_EQ(line["response"]["status_code"], 400);
    EXPECT_EQ(line["response"]["body"]["error"]["param"],
              line["custom_id"] == "bad" ? Json("max_tokens") : line["custom_id"]);
  }
}

TEST_F(BatchesTest, ABatchIsBehindAllOthers) {
  StartHere();
  (void)Ended(Begin(
      RequestLine("a", R"({"prompt": "Hi", "max_tokens": 1, "priority": -9, "slo_ttft_ms": 1})")));
  EXPECT_EQ(engine_.last_request().priority, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(engine_.last_request().slo_ttft_us, std::nullopt);
}

TEST_F(BatchesTest, ItTakesHalfOfTheSequencesAndOneWhileAClientWaits) {
  StartHere();
  // Whether the number of running requests becomes `count` and stays there.
  const auto settles_at = [this](int count) {
    if (!Eventually([&] { return engine_.num_running() == count; })) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return engine_.num_running() == count;
  };
  engine_.set_paused(true);
  std::thread waiting([this] { EXPECT_EQ(Complete("").status, 200); });
  ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 1; }));
  const std::string beside = Begin(CompletionLines(40));
  EXPECT_TRUE(settles_at(2));
  engine_.set_paused(false);
  waiting.join();
  EXPECT_EQ(Ended(beside)["request_counts"]["completed"], 40);
  engine_.set_paused(true);
  const std::string alone = Begin(CompletionLines(40));
  EXPECT_TRUE(settles_at(4));  // half of the 8 sequences that the engine decodes at once
  engine_.set_paused(false);
  EXPECT_EQ(Ended(alone)["request_counts"]["completed"], 40);
}

TEST_F(BatchesTest, ARefusalIsNoAnswer) {
  StartHere();
  engine_.set_queue_limit(0);
  const std::string id = Begin(CompletionLines(3));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(Batch(id)["request_counts"]["failed"], 0);
  engine_.set_queue_limit(1000);
  EXPECT_EQ(Ended(id)["request_counts"]["completed"], 3);
}

TEST_F(BatchesTest, ARestartGoesOnBehindTheLastWholeLine) {
  StartHere();
  engine_.set_delay(std::chrono::milliseconds(2));
  const std::string id = Begin(CompletionLines(400));
  ASSERT_TRUE(Eventually([&] { return Batch(id)["request_counts"]["completed"].get<int>() > 0; }));
  // Another server must not open the directory.
  ServerConfig config;
  config.batch_dir = dir_.string();
  config.port = 0;
  EXPECT_EQ(HttpServer(config).Start().status().param(), "batch-dir");
  server_->Abort();
  server_.reset();
  const fs::path results = dir_ / "batches" / (id + ".output");
  ASSERT_TRUE(fs::exists(results));
  std::ofstream(results, std::ios::app) << R"({"custom_id": "line-399", "resp)";
  engine_.set_delay({});
  StartHere();
  const Json batch = Ended(id);
  EXPECT_EQ(batch["request_counts"].dump(), R"({"total":400,"completed":400,"failed":0})");
  EXPECT_EQ(IdsOf(LinesOf(batch["output_file_id"])).size(), 400U);
}

TEST_F(BatchesTest, ACancelledBatchKeepsItsAnswers) {
  StartHere();
  engine_.set_paused(true);
  const std::string id = Begin(CompletionLines(30));
  const std::string waiting = Begin(CompletionLines(2));
  ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 4; }));
  EXPECT_EQ(Post("/v1/batches/" + waiting + "/cancel", "{}").json()["status"], "cancelled");
  EXPECT_EQ(Post("/v1/batches/" + id + "/cancel", "{}").json()["status"], "cancelling");
  engine_.set_paused(false);
  const Json batch = Ended(id);
  EXPECT_EQ(batch["status"], "cancelled");
  EXPECT_EQ(batch["request_counts"]["completed"], 4);
  EXPECT_EQ(LinesOf(batch["output_file_id"]).size(), 4U);
  EXPECT_EQ(Post("/v1/batches/" + id + "/cancel", "{}").status, 400);
  EXPECT_EQ(Get("/v1/batches").json()["data"].size(), 2U);
}

TEST_F(BatchesTest, ListsComeInPages) {
  StartHere();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.insert(ids.begin(), Begin(CompletionLines(1)));
  const auto ids_of = [&](const std::string& query) {
    const Json list = Get("/v1/batches" + query).json();
    std::vector<std::string> listed;
    for (const Json& entry : list["data"]) listed.push_back(entry["id"]);
    EXPECT_EQ(list["first_id"], listed.empty() ? Json(nullptr) : Json(listed.front()));
    EXPECT_EQ(list["last_id"], listed.empty() ? Json(nullptr) : Json(listed.back()));
    EXPECT_EQ(list["has_more"], query.find("limit=2") != query.npos);
    return listed;
  };
  const auto from = [&](size_t begin, size_t end) {
    return std::vector<std::string>(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                    ids.begin() + static_cast<std::ptrdiff_t>(end));
  };
  EXPECT_EQ(ids_of(""), ids);
  EXPECT_EQ(ids_of("?limit=2"), from(0, 2));
  EXPECT_EQ(ids_of("?limit=2&after=" + ids[1]), from(2, 4));
  EXPECT_EQ(ids_of("?after=" + ids[3] + "&limit=10"), from(4, 5));
  EXPECT_EQ(ids_of("?after=" + ids[4]), from(5, 5));
  for (const char* wrong : {"limit=0", "limit=101", "limit=2x", "after=batch_none", "order=up"}) {
    const Answer answer = Get(std::string("/v1/batches?") + wrong);
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_TRUE(std::string(wrong).starts_with(answer.json()["error"]["param"].get<std::string>()));
  }
  const Json files = Get("/v1/files?purpose=batch&order=asc&limit=3").json();
  ASSERT_EQ(files["data"].size(), 3U);
  EXPECT_EQ(files["has_more"], true);
  EXPECT_EQ(Get("/v1/files?purpose=fine-tune").json()["data"].size(), 0U);
}

TEST_F(BatchesTest, AWrongInputFailsWithTheLine) {
  StartHere();
  const std::string lines = RequestLine("a", "{}") + RequestLine("a", "{}") + "no JSON\n" +
                            RequestLine("b", "{}", "/v1/embeddings");
  const Json batch = Ended(Begin(lines));
  EXPECT_EQ(batch["status"], "failed");
  const Json& errors = batch["errors"]["data"];
  ASSERT_EQ(errors.size(), 3U) << errors;
  EXPECT_EQ(errors[0]["line"], 2);
  EXPECT_EQ(errors[0]["param"], "custom_id");
  EXPECT_EQ(errors[1]["line"], 3);
  EXPECT_EQ(errors[2]["line"], 4);
  EXPECT_EQ(errors[2]["param"], "url");
  EXPECT_EQ(Ended(Begin("\n"))["status"], "failed");
}

TEST_F(BatchesTest, ARequestForABatchIsChecked) {
  StartHere();
  const auto param = [&](const std::string& body) -> Json {
    const Answer answer = Post("/v1/batches", body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.json()["error"]["param"];
  };
  EXPECT_EQ(param(R"({"endpoint": "/v1/images", "input_file_id": "x"})"), "endpoint");
  EXPECT_EQ(param(R"({"endpoint": "/v1/completions", "input_file_id": "x"})"), "input_file_id");
  EXPECT_EQ(param(R"({"endpoint": "/v1/completions", "completion_window": "1h"})"),
            "completion_window");
  EXPECT_EQ(Get("/v1/batches/batch_none").status, 404);
}

}  // namespace
}  // namespace skein::testing
