// The server's own cost for embeddings: HTTP, JSON, tokenizing and printing, over an engine that
// answers at once.
//
//     embeddings_bench TOKENIZER_DIR [SECONDS]
//
// One line for each kind of request: requests and inputs per second and the processor time of one
// request. Four clients in this process send as fast as they are answered; their own time (sockets
// only, they parse nothing) is in both.

#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "server/http/http_server.h"
#include "testing/http_client.h"
#include "testing/server_fakes.h"

namespace skein::testing {
namespace {

constexpr int32_t kDimensions = 1024;
constexpr int kClients = 4;
constexpr TimeUs kWarmUpUs = 200'000;

double ProcessSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

// About `num_words` tokens.
std::string Words(int num_words) {
  static const char* const kWords[] = {"the", "river",  "has", "risen", "since",     "morning,",
                                       "and", "nobody", "in",  "town",  "remembers", "why."};
  std::string text;
  for (int i = 0; i < num_words; ++i) text += std::string(i > 0 ? " " : "") + kWords[i * 7 % 12];
  return text;
}

std::string Body(int num_inputs, int num_words, const char* format) {
  std::string body = fmt::format(R"({{"encoding_format":"{}","input":[)", format);
  for (int i = 0; i < num_inputs; ++i) {
    body += fmt::format("{}\"{}\"", i > 0 ? "," : "", Words(num_words));
  }
  return body + "]}";
}

struct Load {
  std::atomic<bool> counting{false};
  std::atomic<bool> stop{false};
  std::atomic<int64_t> num_requests{0};
};

void Ask(uint16_t port, const std::string& body, Load* load) {
  Client client(port);
  while (!load->stop) {
    const Answer answer = client.Post("/v1/embeddings", body);
    if (answer.status != 200) {
      std::fprintf(stderr, "status %d: %s\n", answer.status, answer.body.c_str());
      std::exit(1);
    }
    if (load->counting) ++load->num_requests;
  }
}

void Measure(uint16_t port, int num_inputs, int num_words, const char* format, double seconds) {
  const std::string body = Body(num_inputs, num_words, format);
  Load load;
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] { Ask(port, body, &load); });
  }
  std::this_thread::sleep_for(std::chrono::microseconds(kWarmUpUs));
  const MonotonicClock clock;
  const double cpu_begin = ProcessSeconds();
  const TimeUs begin_us = clock.NowUs();
  load.counting = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  load.counting = false;
  const double wall = double(clock.NowUs() - begin_us) * 1e-6;
  const double cpu = ProcessSeconds() - cpu_begin;
  load.stop = true;
  for (std::thread& client : clients) client.join();
  const auto requests = double(load.num_requests);
  fmt::print(
      "{:>4} inputs of {:>4} words, {:<6}: {:>8.0f} requests/s {:>8.0f} inputs/s {:>8.0f} us"
      " of processor a request\n",
      num_inputs, num_words, format, requests / wall, requests * num_inputs / wall,
      cpu / requests * 1e6);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: embeddings_bench TOKENIZER_DIR [SECONDS]\n");
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
  const auto tokenizer = Tokenizer::Load(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().message().c_str());
    return 1;
  }
  FakeEngine engine;
  std::vector<float> vector;
  for (int32_t i = 0; i < kDimensions; ++i) vector.push_back(float(i * 37 % 101) / 7 - 6.5f);
  engine.set_reader([&](const Request&) { return ReadValues{vector, 0}; });
  ModelEntry entry;
  entry.names = {"fake"};
  entry.engine = &engine;
  entry.tokenizer = tokenizer.value().get();
  entry.max_model_len = 8192;
  entry.traits.embeds = true;
  entry.traits.embedding_size = kDimensions;
  ModelRegistry models;
  models.Add(std::move(entry));
  HttpServer server({.port = 0});
  const Result<uint16_t> port = server.Start();
  if (!port.ok()) {
    std::fprintf(stderr, "%s\n", port.status().message().c_str());
    return 1;
  }
  server.SetModels(std::move(models));
  for (const char* format : {"float", "base64"}) {
    for (const int num_inputs : {1, 32}) {
      for (const int num_words : {20, 400}) {
        Measure(port.value(), num_inputs, num_words, format, seconds);
      }
    }
  }
  server.Stop();
  return 0;
}

}  // namespace
}  // namespace skein::testing

int main(int argc, char** argv) { return skein::testing::Main(argc, argv); }
