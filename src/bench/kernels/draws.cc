#include "bench/kernels/draws.h"

#include <chrono>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/random.h"
#include "bench/serving/load_report.h"
#include "runtime/sampler.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr int32_t kVocab = 151936;
constexpr int kDraws = 100;  // draws in one sample

struct DrawToMeasure {
  const char* parameters;
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  bool logprobs = false;  // whether to return those of the chosen token and of the 5 most likely
};
constexpr DrawToMeasure kDrawsToMeasure[] = {
    {"greedy"},
    {"greedy, 5 logprobs", 0, 0, 1, true},
    {"temperature 1", 1},
    {"temperature 0.6", 0.6f},
    {"temperature 1, top_k 50", 1, 50},
    {"temperature 1, top_p 0.95", 1, 0, 0.95f},
    // The setting that Qwen3 recommends.
    {"temperature 0.6, top_k 20, top_p 0.95", 0.6f, 20, 0.95f},
    {"temperature 0.6, top_k 20, top_p 0.95, 5 logprobs", 0.6f, 20, 0.95f, true},
};

std::vector<float> MakeLogits(bool peaked) {
  Random random(1);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) {
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * random.Uniform());
    logit = static_cast<float>(2.5 * normal);
  }
  for (int i = 0; peaked && i < 40; ++i) {
    logits[random.Between(0, kVocab - 1)] = 20 - 0.25f * static_cast<float>(i);
  }
  return logits;
}

double MicrosecondsOf(const DrawToMeasure& draw, const std::vector<float>& logits, int num_samples,
                      Sampler* sampler) {
  GenerateSpec generate;
  generate.sampling.temperature = draw.temperature;
  generate.sampling.top_k = draw.top_k;
  generate.sampling.top_p = draw.top_p;
  if (draw.logprobs) generate.num_logprobs = 5;
  const std::vector<TokenId> history = {0};
  const DrawSpec spec = {&generate, 0, history, 1};
  DrawResult result;
  std::vector<double> samples;
  for (int sample = 0; sample <= num_samples; ++sample) {  // the first sample is a warm-up
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kDraws; ++i) {
      ++generate.sampling.seed;
      sampler->Draw(spec, logits.data(), /*thread=*/0, &result);
    }
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (sample > 0) samples.push_back(time.count() / kDraws);
  }
  return Median(samples);
}

}  // namespace

Json MeasureDraws(const Kernels& kernels, int num_samples) {
  Sampler sampler(&kernels, kVocab, /*num_threads=*/1);
  Json rows = Json::array();
  for (const bool peaked : {true, false}) {
    const std::vector<float> logits = MakeLogits(peaked);
    for (const DrawToMeasure& draw : kDrawsToMeasure) {
      rows.push_back({{"logits", peaked ? "peaked" : "flat"},
                      {"parameters", draw.parameters},
                      {"us", MicrosecondsOf(draw, logits, num_samples, &sampler)}});
    }
  }
  return rows;
}

}  // namespace skein
