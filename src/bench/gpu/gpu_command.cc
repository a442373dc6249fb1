#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_command.h"
#include "bench/gpu/gpu_cases.h"
#include "bench/kernels/forward.h"
#include "cuda/device/cuda_device.h"
#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_runtime.h"
#include "server/json/json.h"

namespace skein {
namespace {

// The allowed difference, relative to the largest output. Products of bf16 differ in the order of
// sums inside an instruction, and the result is rounded to 8 bits.
constexpr double kBf16Tolerance = 0x1p-6;

struct GpuBenchOptions {
  std::string model;  // for passes of a whole model; empty: none
  bool emulated = false;
  std::string json;
  std::vector<int32_t> prompt_tokens = {128, 512, 2048};
  std::vector<int32_t> batches = {1, 4, 16, 64};
  int32_t repetitions = 20;
};

Result<std::unique_ptr<cuda::Device>> OpenDevice(const GpuBenchOptions& options) {
  if (!options.emulated) return cuda::OpenCudaDevice(0);
  return std::unique_ptr<cuda::Device>(std::make_unique<cuda::FakeDevice>());
}

// Runs each kernel on the device and on the emulator. Counts the kernels whose outputs differ too
// much.
Result<Json> CompareKernels(cuda::Device& device, int* num_wrong) {
  Json cases = Json::array();
  fmt::print("{:<22}{:>14}{:>10}\n", "kernel", "difference", "");
  for (const GpuCase& one : GpuCases()) {
    constexpr uint64_t kSeed = 1;
    cuda::FakeDevice emulated;
    SKEIN_ASSIGN_OR_RETURN(const std::vector<float> expected, one.run(emulated, kSeed));
    SKEIN_ASSIGN_OR_RETURN(const std::vector<float> found, one.run(device, kSeed));
    SKEIN_ASSIGN_OR_RETURN(const std::vector<float> again, one.run(device, kSeed));
    const double difference = LargestDifference(found, expected);
    const bool same_again = LargestDifference(found, again) == 0;
    const bool right = same_again && difference <= (one.exact ? 0 : kBf16Tolerance);
    *num_wrong += !right;
    fmt::print("{:<22}{:>14.3g}{:>10}\n", one.name, difference, right ? "ok" : "WRONG");
    cases.push_back({{"kernel", one.name},
                     {"difference", difference},
                     {"exact", one.exact},
                     {"same_again", same_again},
                     {"right", right}});
  }
  return cases;
}

// Times the products of a decode step and of a prompt, for models of 0.6B and 8B parameters.
Result<Json> TimeProducts(cuda::Device& device, const GpuBenchOptions& options) {
  std::vector<GemmShape> shapes;
  for (const int32_t m : {1, 16, 64, 2048}) {
    shapes.push_back({m, 4096, 1024});
    shapes.push_back({m, 6144, 4096});
    shapes.push_back({m, 4096, 12288});
  }
  if (options.emulated) shapes = {{1, 64, 64}, {70, 64, 64}};
  Json times = Json::array();
  fmt::print("{:>8}{:>8}{:>8}{:>12}{:>10}{:>10}\n", "m", "n", "k", "us", "GB/s", "TFLOP/s");
  for (const GemmShape& shape : shapes) {
    const double n = shape.n, k = shape.k;
    SKEIN_ASSIGN_OR_RETURN(const double seconds, TimeGemm(device, shape, options.repetitions));
    const double gbps = 2 * n * k / seconds / 1e9, tflops = 2 * n * k * shape.m / seconds / 1e12;
    fmt::print("{:>8}{:>8}{:>8}{:>12.1f}{:>10.1f}{:>10.1f}\n", shape.m, shape.n, shape.k,
               seconds * 1e6, gbps, tflops);
    times.push_back({{"m", shape.m},
                     {"n", shape.n},
                     {"k", shape.k},
                     {"us", seconds * 1e6},
                     {"gbps", gbps},
                     {"tflops", tflops}});
  }
  return times;
}

// Times passes of a whole model: the time to the first token, and the time of a decode step.
Result<Json> TimePasses(std::unique_ptr<cuda::Device> device, const GpuBenchOptions& options) {
  constexpr int32_t kContext = 128, kSteps = 16;
  const int32_t batch = std::ranges::max(options.batches);
  const int32_t longest = std::max(std::ranges::max(options.prompt_tokens), kContext + kSteps + 1);
  SKEIN_ASSIGN_OR_RETURN(
      const std::unique_ptr<Runtime> runtime,
      cuda::LoadCudaRuntime(
          {.model_dir = options.model,
           .max_model_len = longest,
           .max_num_batched_tokens = std::max(longest, batch),
           .max_num_seqs = batch,
           .num_kv_blocks = std::max(BlocksFor(longest), batch * BlocksFor(kContext + kSteps + 1))},
          std::move(device)));
  ForwardBench bench(runtime.get(), /*seed=*/1);
  Json prefill = Json::array(), decode = Json::array();
  fmt::print("{:>14}{:>12}\n", "prompt tokens", "TTFT ms");
  for (const int32_t n : options.prompt_tokens) {
    bench.Prefill(n);  // warm-up
    const double seconds = bench.Prefill(n);
    fmt::print("{:>14}{:>12.2f}\n", n, seconds * 1e3);
    prefill.push_back({{"prompt_tokens", n}, {"ttft_ms", seconds * 1e3}});
  }
  fmt::print("{:>14}{:>12}\n", "batch", "TPOT ms");
  for (const int32_t b : options.batches) {
    const double seconds = bench.Decode(b, kContext, kSteps).seconds;
    fmt::print("{:>14}{:>12.2f}\n", b, seconds * 1e3);
    decode.push_back({{"batch", b}, {"context", kContext}, {"tpot_ms", seconds * 1e3}});
  }
  return Json{{"prefill", std::move(prefill)}, {"decode", std::move(decode)}};
}

Result<int> RunGpuBench(const GpuBenchOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<cuda::Device> device, OpenDevice(options));
  const std::string name = device->name();
  fmt::print("device: {}\n", name);
  int num_wrong = 0;
  SKEIN_ASSIGN_OR_RETURN(Json kernels, CompareKernels(*device, &num_wrong));
  SKEIN_ASSIGN_OR_RETURN(Json products, TimeProducts(*device, options));
  Json passes;
  if (!options.model.empty()) {
    SKEIN_ASSIGN_OR_RETURN(passes, TimePasses(std::move(device), options));
  }
  SKEIN_RETURN_IF_ERROR(WriteBenchJson(options.json, {{"date", BenchDate()},
                                                      {"device", name},
                                                      {"emulated", options.emulated},
                                                      {"kernels", std::move(kernels)},
                                                      {"products", std::move(products)},
                                                      {"passes", std::move(passes)}}));
  fmt::print("{}\n", num_wrong == 0 ? "every kernel agrees with the emulator"
                                    : fmt::format("{} kernels are WRONG", num_wrong));
  return num_wrong == 0 ? 0 : 1;
}

}  // namespace

void AddBenchGpuCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<GpuBenchOptions>();
  CLI::App* app = bench->add_subcommand(
      "gpu", "Compare the kernels of a GPU with the emulator, and time them (docs/gpu.md)");
  app->add_option("--model", options->model, "A model directory, for whole passes");
  app->add_flag("--emulated", options->emulated,
                "Take the emulated device in place of a GPU: tests the command itself");
  app->add_option("--prompt-tokens", options->prompt_tokens, "Lengths of whole prompts")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--batch", options->batches, "Sequences that decode together")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--repetitions", options->repetitions, "Products of one measurement")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunGpuBench);
}

}  // namespace skein
