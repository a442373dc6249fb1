#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/host/choice.h"
#include "apps/host/help.h"
#include "apps/host/model_choices.h"
#include "bench/bench_command.h"
#include "bench/gpu/gpu_cases.h"
#include "bench/gpu/gpu_identity.h"
#include "bench/gpu/gpu_profile.h"
#include "bench/kernels/forward.h"
#include "bench/serving/load_report.h"
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
  std::vector<std::string> parts;  // empty: all that the options allow
  std::string model;               // for identity and passes; empty: none
  ComputeChoice dtype = ComputeChoice::kAuto;
  Quantization quantization = Quantization::kAuto;
  bool emulated = false;
  std::string json;
  std::vector<int32_t> prompt_tokens = {128, 512, 2048};
  int32_t prompts = 1;  // that a pass computes together
  std::vector<int32_t> batches = {1, 4, 16, 64};
  IdentityOptions identity;
  int32_t repetitions = 20;
  int32_t tp = 1;  // devices that compute identity and passes together

  bool Has(const std::string& part) const {
    if (parts.empty()) {
      return part == "kernels" || part == "products" || (!model.empty() && part != "tiles");
    }
    return std::ranges::find(parts, part) != parts.end();
  }
};

using Devices = std::vector<std::unique_ptr<cuda::Device>>;

// Several on a machine with fewer GPUs share these: their streams then have the same order of
// commands, and only times differ.
Result<std::unique_ptr<cuda::Device>> OpenDevice(const GpuBenchOptions& options, int32_t index) {
  if (!options.emulated) return cuda::OpenCudaDevice(index % std::max(1, cuda::NumCudaDevices()));
  return std::unique_ptr<cuda::Device>(std::make_unique<cuda::FakeDevice>());
}

// As many as compute together, or one.
Result<Devices> OpenDevices(const GpuBenchOptions& options, int32_t count) {
  Devices devices;
  for (int32_t index = 0; index < count; ++index) {
    SKEIN_ASSIGN_OR_RETURN(devices.emplace_back(), OpenDevice(options, index));
  }
  return devices;
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

// A runtime of the model on devices.
Result<std::unique_ptr<Runtime>> LoadOn(Devices devices, const GpuBenchOptions& options,
                                        cuda::CudaRuntimeOptions limits) {
  limits.model_dir = options.model;
  limits.dtype = options.dtype;
  limits.quantization = options.quantization;
  return cuda::LoadCudaRuntime(limits, std::move(devices));
}

// Compares the ways to compute random prompts; several devices also with one, and in f32 one with
// the emulator. Counts those that differ in a bit.
Result<Json> CheckIdentityOf(Devices devices, const GpuBenchOptions& options, int* num_wrong) {
  IdentityOptions identity = options.identity;
  const cuda::CudaRuntimeOptions limits = {
      .max_model_len = std::ranges::max(identity.prompt_tokens),
      .max_num_batched_tokens = IdentityTokens(identity),
      .max_num_seqs = static_cast<int32_t>(identity.prompt_tokens.size()),
      .num_kv_blocks = IdentityBlocks(identity)};
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime,
                         LoadOn(std::move(devices), options, limits));
  std::unique_ptr<Runtime> beside;
  if (options.tp > 1) {
    identity.beside = "one device";
    identity.beside_tokens = std::ranges::max(identity.prompt_tokens);
    SKEIN_ASSIGN_OR_RETURN(Devices one, OpenDevices(options, 1));
    SKEIN_ASSIGN_OR_RETURN(beside, LoadOn(std::move(one), options, limits));
  } else if (options.dtype == ComputeChoice::kF32) {
    GpuBenchOptions emulated = options;
    emulated.emulated = true;
    SKEIN_ASSIGN_OR_RETURN(Devices one, OpenDevices(emulated, 1));
    SKEIN_ASSIGN_OR_RETURN(beside, LoadOn(std::move(one), options, limits));
  }
  Json cases = Json::array();
  fmt::print("{:<40}{:>10}{:>12}\n", "computed", "answers", "different");
  for (const IdentityCase& one : CheckIdentity(runtime.get(), identity, beside.get())) {
    *num_wrong += one.different > 0;
    fmt::print("{:<40}{:>10}{:>12}{}{}\n", one.name, one.compared, one.different,
               one.first.empty() ? "" : "  first: ", one.first);
    cases.push_back({{"case", one.name},
                     {"compared", one.compared},
                     {"different", one.different},
                     {"first", one.first}});
  }
  return cases;
}

// The tokens ahead of a timed decode step.
constexpr int32_t kContext = 128;

// A runtime for the prompts and batches of the options, with `steps` decode steps.
Result<std::unique_ptr<Runtime>> LoadForPasses(Devices devices, const GpuBenchOptions& options,
                                               int32_t steps) {
  const int32_t decoded = kContext + steps + 1, batch = std::ranges::max(options.batches);
  const int32_t longest = std::max(std::ranges::max(options.prompt_tokens), decoded);
  if (int64_t{options.prompts} * longest > std::numeric_limits<int32_t>::max()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--prompts: {} prompts of {} tokens are too many for one pass",
                              options.prompts, longest),
                  "prompts");
  }
  return LoadOn(std::move(devices), options,
                {.max_model_len = longest,
                 .max_num_batched_tokens = std::max(options.prompts * longest, batch),
                 .max_num_seqs = std::max(options.prompts, batch),
                 .num_kv_blocks =
                     std::max(options.prompts * BlocksFor(longest), batch * BlocksFor(decoded))});
}

// The batches that decode: none without a language model's head.
std::span<const int32_t> BatchesOf(const Runtime& runtime, const GpuBenchOptions& options) {
  if (runtime.config().head != Head::kLanguageModel) return {};
  return options.batches;
}

// Times passes of a whole model: the time to the first token, or to another output, and the time of
// a decode step.
Result<Json> TimePasses(Devices devices, const GpuBenchOptions& options) {
  constexpr int32_t kSteps = 16, kPrefillsMax = 5;
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime,
                         LoadForPasses(std::move(devices), options, kSteps));
  ForwardBench bench(runtime.get(), /*seed=*/1);
  Json prefill = Json::array(), decode = Json::array();
  fmt::print("{:>8}{:>14}{:>12}\n", "prompts", "prompt tokens", "TTFT ms");
  for (const int32_t n : options.prompt_tokens) {
    bench.Prefill(n, options.prompts);  // warm-up
    std::vector<double> seconds;
    for (int32_t i = 0; i < std::min(options.repetitions, kPrefillsMax); ++i) {
      seconds.push_back(bench.Prefill(n, options.prompts));
    }
    const double ttft_ms = Median(std::move(seconds)) * 1e3;
    fmt::print("{:>8}{:>14}{:>12.2f}\n", options.prompts, n, ttft_ms);
    prefill.push_back({{"prompts", options.prompts}, {"prompt_tokens", n}, {"ttft_ms", ttft_ms}});
  }
  const std::span<const int32_t> batches = BatchesOf(*runtime, options);
  if (!batches.empty()) fmt::print("{:>14}{:>12}\n", "batch", "TPOT ms");
  for (const int32_t b : batches) {
    const double seconds = bench.Decode(b, kContext, kSteps).seconds;
    fmt::print("{:>14}{:>12.2f}\n", b, seconds * 1e3);
    decode.push_back({{"batch", b}, {"context", kContext}, {"tpot_ms", seconds * 1e3}});
  }
  return Json{{"prefill", std::move(prefill)}, {"decode", std::move(decode)}};
}

// Times the kernels of a pass, and adds them to `passes`.
Status Profile(cuda::Device& device, const std::string& name, double seconds,
               std::span<const cuda::Launch> launches, Json* passes) {
  SKEIN_ASSIGN_OR_RETURN(const std::vector<KernelTime> times, TimeKernels(device, launches));
  fmt::print("{}: {:.0f} us in {} launches\n", name, seconds * 1e6, launches.size());
  Json kernels = Json::array();
  for (const KernelTime& time : times) {
    fmt::print("{:>10.1f} us{:>6} of {:>8.1f} us{:>8}  {}\n", time.us, time.launches,
               time.us / time.launches, time.tflops > 0 ? fmt::format("{:.0f}", time.tflops) : "",
               time.kernel);
    kernels.push_back({{"kernel", time.kernel},
                       {"launches", time.launches},
                       {"us", time.us},
                       {"tflops", time.tflops}});
  }
  passes->push_back({{"pass", name}, {"us", seconds * 1e6}, {"kernels", std::move(kernels)}});
  return Status::Ok();
}

// Times the kernels of a prompt, and of a decode step, behind the pass that launched them.
Result<Json> ProfilePasses(std::unique_ptr<cuda::Device> device, const GpuBenchOptions& options) {
  constexpr int32_t kSteps = 2;
  std::vector<cuda::Launch>* recording = nullptr;
  cuda::Device* const kernels = device.get();
  Devices devices;
  devices.push_back(std::make_unique<RecordingDevice>(std::move(device), &recording));
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime,
                         LoadForPasses(std::move(devices), options, kSteps));
  ForwardBench bench(runtime.get(), /*seed=*/1);
  Json passes = Json::array();
  for (const int32_t n : options.prompt_tokens) {
    bench.Prefill(n, options.prompts);  // warm-up
    std::vector<cuda::Launch> launches;
    recording = &launches;
    const double seconds = bench.Prefill(n, options.prompts);
    recording = nullptr;
    const std::string name = options.prompts == 1
                                 ? fmt::format("prompt of {} tokens", n)
                                 : fmt::format("{} prompts of {} tokens", options.prompts, n);
    SKEIN_RETURN_IF_ERROR(Profile(*kernels, name, seconds, launches, &passes));
  }
  for (const int32_t b : BatchesOf(*runtime, options)) {
    std::vector<cuda::Launch> launches;
    double last = 0;
    const auto on_step = [&](int32_t step, double seconds) {
      recording = step + 1 == kSteps ? &launches : nullptr;
      last = seconds;
    };
    bench.Decode(b, kContext, kSteps, on_step);
    recording = nullptr;
    SKEIN_RETURN_IF_ERROR(
        Profile(*kernels, fmt::format("decode of {}", b), last, launches, &passes));
  }
  return passes;
}

// Times each tile of the products of models of 0.6B and 4B parameters.
Result<Json> TimeAllTiles(cuda::Device& device, const GpuBenchOptions& options) {
  std::vector<GemmShape> shapes;
  for (const int32_t m : {64, 128, 256, 512, 1024, 2048, 8192}) {
    for (const auto& [n, k] : {std::pair{4096, 1024},
                               {1024, 2048},
                               {6144, 1024},
                               {1024, 3072},
                               {6144, 2560},
                               {2560, 4096},
                               {19456, 2560},
                               {2560, 9728}}) {
      shapes.push_back({m, n, k});
    }
  }
  if (options.emulated) shapes = {{16, 64, 64}, {70, 64, 64}};
  SKEIN_ASSIGN_OR_RETURN(const std::vector<TileTime> tiles,
                         TimeTiles(device, shapes, options.repetitions));
  Json times = Json::array();
  for (const TileTime& time : tiles) {
    const GemmShape& shape = time.shape;
    const bool gated = time.output == cuda::GemmOutput::kGated;
    const double tflops = 2.0 * shape.m * shape.n * shape.k / time.us / 1e6;
    fmt::print("{:>8}{:>8}{:>8}  {:<6}{:<17}{:>10.1f} us{:>8.1f}{}\n", shape.m, shape.n, shape.k,
               gated ? "gated" : "add", time.tile, time.us, tflops, time.chosen ? " *" : "");
    times.push_back({{"m", shape.m},
                     {"n", shape.n},
                     {"k", shape.k},
                     {"gated", gated},
                     {"tile", time.tile},
                     {"chosen", time.chosen},
                     {"us", time.us},
                     {"tflops", tflops}});
  }
  return times;
}

Result<int> RunGpuBench(const GpuBenchOptions& options) {
  for (const char* part : {"identity", "passes", "profile"}) {
    if (options.Has(part) && options.model.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    std::string("--parts: ") + part + " needs a model (--model)", "parts");
    }
  }
  SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<cuda::Device> device, OpenDevice(options, 0));
  Json json = {{"date", BenchDate()},
               {"device", device->name()},
               {"emulated", options.emulated},
               {"tp", options.tp},
               {"gpus", cuda::NumCudaDevices()}};
  fmt::print("device: {}\n", device->name());
  int num_wrong = 0, num_different = 0;
  if (options.Has("kernels")) {
    SKEIN_ASSIGN_OR_RETURN(json["kernels"], CompareKernels(*device, &num_wrong));
  }
  if (options.Has("products")) {
    SKEIN_ASSIGN_OR_RETURN(json["products"], TimeProducts(*device, options));
  }
  if (options.Has("tiles")) {
    SKEIN_ASSIGN_OR_RETURN(json["tiles"], TimeAllTiles(*device, options));
  }
  if (options.Has("identity")) {
    SKEIN_ASSIGN_OR_RETURN(Devices own, OpenDevices(options, options.tp));
    SKEIN_ASSIGN_OR_RETURN(json["identity"],
                           CheckIdentityOf(std::move(own), options, &num_different));
  }
  if (options.Has("passes")) {
    SKEIN_ASSIGN_OR_RETURN(Devices own, OpenDevices(options, options.tp));
    SKEIN_ASSIGN_OR_RETURN(json["passes"], TimePasses(std::move(own), options));
  }
  if (options.Has("profile")) {
    SKEIN_ASSIGN_OR_RETURN(json["profile"], ProfilePasses(std::move(device), options));
  }
  SKEIN_RETURN_IF_ERROR(WriteBenchJson(options.json, json));
  if (options.Has("kernels")) {
    fmt::print("{}\n", num_wrong == 0 ? "every kernel agrees with the emulator"
                                      : fmt::format("{} kernels are WRONG", num_wrong));
  }
  if (options.Has("identity")) {
    fmt::print("{}\n", num_different == 0 ? "every answer has the same bits in every case"
                                          : fmt::format("{} cases have OTHER BITS", num_different));
  }
  return num_wrong + num_different == 0 ? 0 : 1;
}

}  // namespace

void AddBenchGpuCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<GpuBenchOptions>();
  CLI::App* app = bench->add_subcommand(
      "gpu", "Compare the kernels of a GPU with the emulator, and time them (docs/gpu.md)");
  app->add_option("--parts", options->parts,
                  "kernels, products, identity (the same bits in every batch and chunk), passes, "
                  "profile (the kernels of a pass), tiles (of products); default: kernels and "
                  "products, and with a model all but tiles")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"kernels", "products", "tiles", "identity", "passes", "profile"}));
  app->add_option("--model", options->model, "A model directory, for identity, passes and profile");
  AddDtypeOption(app, &options->dtype);
  AddChoice(app, "--quantization", &options->quantization,
            "Weights: auto (as in the file), none, int8, q8_0 or int4");
  app->add_flag("--emulated", options->emulated,
                "Take the emulated device in place of a GPU: tests the command itself");
  app->add_option("--prompt-tokens", options->prompt_tokens, "Lengths of whole prompts")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--prompts", options->prompts, "Prompts of a length that are computed together")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--batch", options->batches, "Sequences that decode together")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--identity-tokens", options->identity.prompt_tokens,
                  "Lengths of the prompts that are computed in several ways")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--repetitions", options->repetitions,
                  "Products of one measurement; passes: as many, at most 5")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--tp", options->tp,
                  "GPUs that share each operator of identity, where they are compared with one, "
                  "and of passes; on a machine with fewer, several share one GPU")
      ->check(CLI::Range(1, cuda::kMaxRanks))
      ->capture_default_str();
  AddJsonOption(app, &options->json);
  ShowFirst(app, {"--parts", "--model", "--dtype", "--quantization", "--emulated",
                  "--prompt-tokens", "--prompts", "--batch", "--repetitions", "--json"});
  RunOnBench(app, options, exit_status, RunGpuBench);
}

}  // namespace skein
