#include "bench/bench_tokenizer.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/threads/thread_team.h"
#include "bench/serving/load_report.h"
#include "bench/tokenizer_texts.h"
#include "server/json/json.h"
#include "text/encode_batch.h"
#include "text/stream_decoder.h"

namespace skein {
namespace {

constexpr int kBatchSizes[] = {1, 4, 16, 64};
constexpr size_t kBatchChars = 674;
constexpr int kConcurrentThreads = 8;
constexpr int kConcurrentCalls = 100;  // calls of each thread
constexpr size_t kFirstSightChars = 200'000;
constexpr size_t kOneLetterChars = 1'000'000;
constexpr int kNumLoads = 5;

double ThreadCpuUs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double WallUs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// The median over the samples of the time of one call. A warm-up comes first.
template <typename Clock, typename Call>
double MedianUs(const TokenizerBenchOptions& options, Clock clock, Call call) {
  call();
  const double begin = clock();
  call();
  const double once = std::max(clock() - begin, 0.01);
  const int repeats = std::max(1, static_cast<int>(options.sample_us / once));
  std::vector<double> samples;
  for (int i = 0; i < options.num_samples; ++i) {
    const double start = clock();
    for (int k = 0; k < repeats; ++k) call();
    samples.push_back((clock() - start) / repeats);
  }
  return Median(std::move(samples));
}

Status GateError(const std::string& what, std::string_view text) {
  return Status(StatusCode::kInternal,
                "gate failed: " + what + ": " +
                    Json(text.substr(0, 200)).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string StreamAll(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder stream(&tokenizer, false);
  std::string text;
  for (const TokenId id : ids) text += stream.Push(id);
  return text + stream.Finish();
}

Status CheckCase(const Tokenizer& tokenizer, const Json& line) {
  const auto& text = line.at("text").get_ref<const std::string&>();
  const auto expected = line.at("ids").get<std::vector<TokenId>>();
  std::vector<TokenId> ids;
  SKEIN_RETURN_IF_ERROR(tokenizer.Encode(text, false, &ids));
  if (ids != expected) return GateError("ids of a known case differ", text);
  if (line.contains("ids_special")) {
    ids.clear();
    SKEIN_RETURN_IF_ERROR(tokenizer.Encode(text, true, &ids));
    if (ids != line["ids_special"].get<std::vector<TokenId>>()) {
      return GateError("ids with special tokens of a known case differ", text);
    }
  }
  if (line.contains("decoded") &&
      tokenizer.Decode(expected, false) != line["decoded"].get_ref<const std::string&>()) {
    return GateError("a known case is decoded differently", text);
  }
  return Status::Ok();
}

Status CheckCases(const Tokenizer& tokenizer, const std::string& dir) {
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (!entry.path().filename().string().ends_with("cases.jsonl")) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const Json json = Json::parse(line, nullptr, false);
      if (!json.is_object() || !json.contains("text") || !json.contains("ids")) {
        return GateError("not a case in " + entry.path().string(), line);
      }
      SKEIN_RETURN_IF_ERROR(CheckCase(tokenizer, json));
    }
  }
  return Status::Ok();
}

std::vector<std::string> BatchTexts() {
  std::vector<std::string> texts;
  for (uint64_t seed = 0; seed < kBatchSizes[std::size(kBatchSizes) - 1]; ++seed) {
    texts.push_back(DistinctProse(1000 + seed, kBatchChars));
  }
  return texts;
}

// Writes a line {name, ids, text} for each text, for another tokenizer that encodes the same texts.
Status DumpTexts(const Tokenizer& tokenizer, const std::string& path) {
  std::ofstream file(path);
  const auto dump = [&](const std::string& name, const std::string& text) -> Status {
    std::vector<TokenId> ids;
    SKEIN_RETURN_IF_ERROR(tokenizer.Encode(text, false, &ids));
    file << Json{{"name", name}, {"text", text}, {"ids", ids}}.dump() << '\n';
    return Status::Ok();
  };
  for (const TokenizerText& text : TokenizerTexts()) {
    SKEIN_RETURN_IF_ERROR(dump(text.name, text.text));
  }
  for (const std::string& text : BatchTexts()) SKEIN_RETURN_IF_ERROR(dump("batch", text));
  SKEIN_RETURN_IF_ERROR(dump("first-sight", DistinctProse(7, kFirstSightChars)));
  SKEIN_RETURN_IF_ERROR(dump("one-letter", std::string(kOneLetterChars, 'a')));
  file.flush();
  if (file) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, "dump-texts: " + path + " cannot be written",
                "dump-texts");
}

// Encodes a text. The checks have encoded every text before, so no call fails.
std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  SKEIN_CHECK(tokenizer.Encode(text, false, &ids).ok());
  return ids;
}

void MeasureTexts(const Tokenizer& tokenizer, const TokenizerBenchOptions& options, Json* out) {
  Json encode = Json::array(), decode = Json::array();
  for (const TokenizerText& text : TokenizerTexts()) {
    const std::vector<TokenId> ids = Encode(tokenizer, text.text);
    Json row{{"name", text.name},
             {"chars", text.num_chars},
             {"bytes", text.text.size()},
             {"tokens", ids.size()}};
    row["us"] = MedianUs(options, ThreadCpuUs, [&] { Encode(tokenizer, text.text); });
    encode.push_back(row);
    row["us"] = MedianUs(options, ThreadCpuUs, [&] { tokenizer.Decode(ids, false); });
    decode.push_back(row);
  }
  (*out)["encode"] = std::move(encode);
  (*out)["decode"] = std::move(decode);
}

Json MeasureBatches(const Tokenizer& tokenizer, const TokenizerBenchOptions& options) {
  const std::vector<std::string> texts = BatchTexts();
  ThreadTeam team(options.num_batch_threads);
  Json rows = Json::array();
  for (const int size : kBatchSizes) {
    const std::vector<std::string_view> batch(texts.begin(), texts.begin() + size);
    rows.push_back({{"size", size}, {"us", MedianUs(options, WallUs, [&] {
                                       std::vector<std::vector<TokenId>> ids;
                                       SKEIN_CHECK(
                                           EncodeBatch(tokenizer, batch, false, &team, &ids).ok());
                                     })}});
  }
  return rows;
}

Json MeasureConcurrent(const Tokenizer& tokenizer, const TokenizerBenchOptions& options) {
  const std::vector<std::string> texts = BatchTexts();
  std::vector<double> samples;
  for (int sample = 0; sample < options.num_samples; ++sample) {
    const double begin = WallUs();
    std::vector<std::thread> threads;
    for (int t = 0; t < kConcurrentThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kConcurrentCalls; ++i) {
          Encode(tokenizer, texts[static_cast<size_t>(t * 7 + i) % texts.size()]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    samples.push_back((WallUs() - begin) / (kConcurrentThreads * kConcurrentCalls));
  }
  return {{"threads", kConcurrentThreads}, {"us_per_encode", Median(std::move(samples))}};
}

double StreamDecodeUs(const Tokenizer& tokenizer, const TokenizerBenchOptions& options) {
  const std::vector<TokenId> ids = Encode(tokenizer, DistinctProse(2025, 2025));
  const double all = MedianUs(options, ThreadCpuUs, [&] {
    StreamDecoder stream(&tokenizer, false);
    for (const TokenId id : ids) stream.Push(id);
    stream.Finish();
  });
  return all / static_cast<double>(ids.size());
}

}  // namespace

Status CheckTokenizer(const Tokenizer& tokenizer, const std::string& dir) {
  SKEIN_RETURN_IF_ERROR(CheckCases(tokenizer, dir));
  const std::vector<TokenizerText> texts = TokenizerTexts();
  std::vector<std::string_view> views;
  std::vector<std::vector<TokenId>> single;
  for (const TokenizerText& text : texts) {
    std::vector<TokenId> ids;
    SKEIN_RETURN_IF_ERROR(tokenizer.Encode(text.text, false, &ids));
    const std::string decoded = tokenizer.Decode(ids, false);
    if (decoded != text.text) {
      std::vector<TokenId> again;
      SKEIN_RETURN_IF_ERROR(tokenizer.Encode(decoded, false, &again));
      if (again != ids) return GateError("decoding does not give the text back", text.name);
    }
    if (StreamAll(tokenizer, ids) != decoded) {
      return GateError("streamed decoding differs", text.name);
    }
    views.push_back(text.text);
    single.push_back(std::move(ids));
  }
  ThreadTeam team(2);
  std::vector<std::vector<TokenId>> batch;
  SKEIN_RETURN_IF_ERROR(EncodeBatch(tokenizer, views, false, &team, &batch));
  if (batch != single) return GateError("a batch differs from single calls", "all texts");
  return Status::Ok();
}

Result<Json> RunTokenizerBench(const TokenizerBenchOptions& options) {
  std::vector<double> loads_us, first_us;
  std::unique_ptr<Tokenizer> tokenizer;
  const std::string unseen = DistinctProse(7, kFirstSightChars);
  for (int i = 0; i < kNumLoads; ++i) {
    tokenizer.reset();
    double begin = ThreadCpuUs();
    SKEIN_ASSIGN_OR_RETURN(tokenizer, Tokenizer::Load(options.dir));
    loads_us.push_back(ThreadCpuUs() - begin);
    std::vector<TokenId> ids;
    begin = ThreadCpuUs();
    SKEIN_RETURN_IF_ERROR(tokenizer->Encode(unseen, false, &ids));
    first_us.push_back(ThreadCpuUs() - begin);
  }
  SKEIN_RETURN_IF_ERROR(CheckTokenizer(*tokenizer, options.dir));
  if (!options.dump_texts.empty()) {
    SKEIN_RETURN_IF_ERROR(DumpTexts(*tokenizer, options.dump_texts));
  }
  Json out{{"gate", "passed"}, {"load_ms", Median(std::move(loads_us)) / 1e3}};
  MeasureTexts(*tokenizer, options, &out);
  out["batch"] = MeasureBatches(*tokenizer, options);
  out["concurrent"] = MeasureConcurrent(*tokenizer, options);
  out["stream_decode_us"] = StreamDecodeUs(*tokenizer, options);
  out["first_sight"] = {{"chars", kFirstSightChars}, {"us", Median(std::move(first_us))}};
  const std::string one_letter(kOneLetterChars, 'a');
  TokenizerBenchOptions few = options;
  few.num_samples = std::min(options.num_samples, 3);
  out["one_letter"] = {{"chars", kOneLetterChars},
                       {"us", MedianUs(few, ThreadCpuUs, [&] { Encode(*tokenizer, one_letter); })}};
  return out;
}

}  // namespace skein
