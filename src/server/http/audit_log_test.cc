#include "server/http/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/json/json.h"
#include "testing/fake_server.h"

namespace skein::testing {
namespace {

class AuditLogTest : public ServerTest {
 protected:
  ~AuditLogTest() override { std::filesystem::remove(path_); }

  std::vector<Json> Lines() const {
    std::vector<Json> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  const std::string path_ =
      ::testing::TempDir() + "skein_audit_" + std::to_string(getpid()) + ".jsonl";
};

TEST_F(AuditLogTest, ALinePerRequestForWorkWithoutContents) {
  ServerConfig config;
  config.api_keys = {{.key = "secret-1"}, {.key = "secret-2", .name = "billing"}};
  config.audit_log = path_;
  Start(config);
  // A line is written after the end of its answer, so the test waits for the line before the next
  // request.
  size_t num_lines = 0;
  const auto post = [&](const std::string& path, const std::string& key, const std::string& id) {
    const Answer answer =
        Client(port_).Post(path, R"({"prompt": "private", "stream": true})",
                           {{"Authorization", "Bearer " + key}, {"X-Request-Id", id}});
    ++num_lines;
    EXPECT_TRUE(Eventually([&] { return Lines().size() == num_lines; }));
    return answer;
  };
  const Answer answer = post("/v1/completions", "secret-2", "a\"b");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(post("/v1/completions", "secret-1", "second").status, 200);
  EXPECT_EQ(post("/v1/completions", "wrong", "third").status, 401);
  EXPECT_EQ(Client(port_).Get("/health").status, 200);

  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["request_id"], "a\"b");
  EXPECT_EQ(lines[0]["key"], "billing");
  EXPECT_EQ(lines[0]["address"], "127.0.0.1");
  EXPECT_EQ(lines[0]["path"], "/v1/completions");
  EXPECT_EQ(lines[0]["status"], 200);
  EXPECT_EQ(lines[0]["complete"], true);
  EXPECT_EQ(lines[0]["request_bytes"], 37);
  EXPECT_GT(lines[0]["response_bytes"], 0);
  EXPECT_EQ(lines[1]["key"], "#0");
  EXPECT_EQ(lines[2]["key"], "");
  EXPECT_EQ(lines[2]["status"], 401);
  std::ifstream file(path_);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, ::testing::Not(::testing::ContainsRegex("private|secret|wrong")));
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST_F(AuditLogTest, AClientThatLeavesIsIncomplete) {
  ServerConfig config;
  config.audit_log = path_;
  Start(config);
  engine_.set_paused(true);
  {
    Client client(port_);
    client.SendRequest("POST", "/v1/completions", R"({"prompt": "Hi"})");
    ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 1; }));
  }
  ASSERT_TRUE(Eventually([&] { return Lines().size() == 1; }));
  EXPECT_EQ(Lines()[0]["complete"], false);
  EXPECT_EQ(Lines()[0]["status"], 0);
}

TEST_F(AuditLogTest, APathThatCannotBeWrittenIsRefused) {
  ServerConfig config;
  config.port = 0;
  config.audit_log = "/proc/no/such/file";
  const Status status = HttpServer(config).Start().status();
  EXPECT_EQ(status.param(), "audit-log");
}

TEST_F(AuditLogTest, AFullDiskEndsNothing) {
  ServerConfig config;
  config.audit_log = "/dev/full";
  Start(config);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Client(port_).Post("/v1/completions", R"({"prompt": "Hi"})").status, 200);
  }
}

}  // namespace
}  // namespace skein::testing
