#include "apps/bench_limits.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "apps/bench_peak.h"
#include "base/aligned_buffer.h"
#include "base/random.h"
#include "kernels/cpu/cpu_features.h"

namespace skein {
namespace {

constexpr size_t kReadBytes = size_t{512} << 20;
constexpr size_t kReadTicketBytes = size_t{4} << 20;
constexpr int64_t kAmxSteps = 300'000;    // about 10 ms
constexpr int64_t kFmaSteps = 2'500'000;  // about 10 ms

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Seconds for `count` tickets on all threads.
template <typename Fn>
double Seconds(ThreadTeam& team, int count, const Fn& fn) {
  const auto start = std::chrono::steady_clock::now();
  team.Run(0, count, fn);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<MachineLimits> MeasureLimits(ThreadTeam& team, int num_runs) {
  if (!CpuHas(Isa::kAvx2)) {
    return Status(StatusCode::kUnsupported, "the limits are measured with AVX2, AVX-512 or AMX");
  }
  const int threads = team.num_threads();
  AlignedBuffer operands(kPeakOperandBytes), memory(kReadBytes);
  for (size_t i = 0; i < operands.size(); i += 2) {
    // bf16 between -2 and 2, of both signs.
    const uint64_t random = RandomBitsAt(1, 0, i);
    const auto bits = static_cast<uint16_t>((random & 0x80ff) | 0x3f00);
    std::memcpy(operands.data() + i, &bits, 2);
  }
  std::vector<float> factors(256);
  for (size_t i = 0; i < factors.size(); ++i) factors[i] = 0.5f + static_cast<float>(i) / 1024;
  team.Run(0, kReadBytes / kReadTicketBytes, [&](int ticket, int) {
    std::memset(memory.data() + ticket * kReadTicketBytes, ticket + 1, kReadTicketBytes);
  });
  std::vector<double> done(threads), amx, amx_int8, fma, read;
  std::vector<uint64_t> sums(kReadBytes / kReadTicketBytes);
  for (int run = 0; run <= num_runs; ++run) {  // the first warms up
    const bool counts = run > 0;
    const auto rate = [&](auto peak) {
      std::fill(done.begin(), done.end(), 0.0);
      // More tickets than threads, so that a core that was taken away is made up for.
      const double seconds =
          Seconds(team, 4 * threads, [&](int, int thread) { done[thread] += peak(); });
      double sum = 0;
      for (double d : done) sum += d;
      return sum / seconds * 1e-12;
    };
    if (CpuHas(Isa::kAmx)) {
      const double tflops = rate([&] { return RunAmxPeak(operands.data(), kAmxSteps / 4); });
      const double int8_tflops =
          rate([&] { return RunAmxInt8Peak(operands.data(), kAmxSteps / 4); });
      if (counts) amx.push_back(tflops);
      if (counts) amx_int8.push_back(int8_tflops);
    }
    const double tflops = rate([&] {
      float out[16];
      const double flops = CpuHas(Isa::kAvx512) ? RunAvx512Peak(factors.data(), kFmaSteps / 4, out)
                                                : RunAvx2Peak(factors.data(), kFmaSteps / 4, out);
      return out[0] == out[0] ? flops : 0;
    });
    if (counts) fma.push_back(tflops);
    const double seconds = Seconds(team, static_cast<int>(sums.size()), [&](int ticket, int) {
      sums[ticket] = ReadAll(memory.data() + ticket * kReadTicketBytes, kReadTicketBytes);
    });
    if (counts) read.push_back(static_cast<double>(kReadBytes) / seconds * 1e-9);
  }
  return MachineLimits{Median(amx), Median(amx_int8), Median(fma), Median(read)};
}

double RooflineSeconds(const MachineLimits& limits, Isa isa, DType dtype, double flops,
                       double weight_bytes) {
  const double reading = weight_bytes / (limits.read_gbps * 1e9);
  const double tflops = limits.compute_tflops(isa, dtype);
  return tflops > 0 ? std::max(flops / (tflops * 1e12), reading) : reading;
}

nlohmann::ordered_json LimitsToJson(const MachineLimits& limits, Isa isa, DType dtype) {
  nlohmann::ordered_json json;
  const double tflops = limits.compute_tflops(isa, dtype);
  json["compute_tflops"] = tflops > 0 ? nlohmann::ordered_json(tflops) : nullptr;
  json["read_gbps"] = limits.read_gbps;
  json["fma_f32_tflops"] = limits.fma_f32_tflops;
  return json;
}

}  // namespace skein
