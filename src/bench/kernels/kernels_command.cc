#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "bench/bench_command.h"
#include "bench/kernels/kernels.h"
#include "server/json/json.h"

namespace skein {
namespace {

struct KernelBenchCommandOptions : KernelBenchOptions {
  void SetType(const std::string& name) {
    const bool plain = name == "bf16" || name == "int8";
    dtype = name == "bf16" ? DType::kBf16 : plain ? DType::kInt8 : DType::kBlocks;
    format = name == "q4_k"   ? BlockFormat::kQ4K
             : name == "q8_0" ? BlockFormat::kQ8_0
                              : BlockFormat::kQ4_0;
  }

  std::string model;
  std::string json;
};

void PrintKernelTable(const Json& result) {
  const Json& compute = result["limits"]["compute_tflops"];
  fmt::print("{}, {} threads, at most {} TFLOP/s and {:.1f} GB/s\n",
             result["isa"].get<std::string>(), result["threads"].get<int>(),
             compute.is_null() ? "-" : fmt::format("{:.3f}", compute.get<double>()),
             result["limits"]["read_gbps"].get<double>());
  fmt::print("{:<12}{:<9}{:>6}{:>10}{:>9}{:>10}{:>15}\n", "model", "product", "rows", "TFLOP/s",
             "GB/s", "fraction", "oneDNN TFLOP/s");
  for (const Json& row : result["gemm"]) {
    const Json& peer = row["onednn_tflops"];
    fmt::print("{:<12}{:<9}{:>6}{:>10.3f}{:>9.1f}{:>10.3f}{:>15}{}\n",
               row["model"].get<std::string>(), row["name"].get<std::string>(), row["m"].get<int>(),
               row["tflops"].get<double>(), row["gbps"].get<double>(),
               row["fraction"].get<double>(),
               peer.is_null() ? "-" : fmt::format("{:.3f}", peer.get<double>()),
               row["onednn_dtype"] == "f32" ? " f32" : "");
  }
  fmt::print("{:<8}{:<52}{:>12}\n", "logits", "draw of one in 151936, one thread", "us");
  for (const Json& row : result["draws"]) {
    fmt::print("{:<8}{:<52}{:>12.1f}\n", row["logits"].get<std::string>(),
               row["parameters"].get<std::string>(), row["us"].get<double>());
  }
}

Status RunKernelBenchCommand(KernelBenchCommandOptions options) {
  std::erase_if(options.products, [&](const ProductToMeasure& product) {
    return !options.model.empty() && product.model != options.model;
  });
  SKEIN_ASSIGN_OR_RETURN(const Json result, RunKernelBench(options));
  PrintKernelTable(result);
  return WriteBenchJson(options.json, result);
}

}  // namespace

void AddBenchKernelsCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<KernelBenchCommandOptions>();
  CLI::App* app = bench->add_subcommand(
      "kernels", "Matrix products beside the machine's limits and oneDNN; draws of tokens");
  app->add_option("--model", options->model, "Only the shapes of this model")
      ->check(CLI::IsMember({"Qwen3-0.6B", "Qwen3-4B"}));
  app->add_option("--rows", options->rows, "Rows of the products")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app->add_option("--samples", options->num_samples, "Samples of each figure, alternating")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option_function<std::string>(
         "--dtype", [options](const std::string& name) { options->SetType(name); },
         "Type of the weights: bf16; int8 or int4 as under --quantization; a format of GGUF")
      ->check(CLI::IsMember({"bf16", "int8", "int4", "q4_0", "q4_k", "q8_0"}));
  AddThreadsOption(app, &options->threads);
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunKernelBenchCommand);
}

}  // namespace skein
