#include "bench/kernels/limits.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/random.h"
#include "bench/kernels/peak.h"
#include "bench/serving/load_report.h"
#include "kernels/cpu/cpu_features.h"

namespace skein {
namespace {

constexpr size_t kReadBytes = size_t{512} << 20;
constexpr size_t kReadBurstBytes = size_t{256} << 20;
constexpr size_t kPartBytes = size_t{4} << 20;
constexpr int64_t kAmxSteps = 300'000;    // about 10 ms
constexpr int64_t kFmaSteps = 2'500'000;  // about 10 ms

constexpr double MachineLimits::*kFigures[] = {
    &MachineLimits::amx_bf16_tflops,    &MachineLimits::amx_int8_tflops,
    &MachineLimits::fma_f32_tflops,     &MachineLimits::read_gbps,
    &MachineLimits::avx512_bf16_tflops, &MachineLimits::vector_int8_tflops};

// The seconds that all threads take for `count` tickets.
template <typename Fn>
double Seconds(ThreadTeam& team, int count, const Fn& fn) {
  const auto start = std::chrono::steady_clock::now();
  team.Run(0, count, fn);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

LimitMeter::LimitMeter(ThreadTeam* team)
    : team_(team),
      operands_(kPeakOperandBytes),
      memory_(kReadBytes),
      factors_(256),
      sums_(kReadBytes / kPartBytes) {
  for (size_t i = 0; i < operands_.size(); i += 2) {
    // bf16 numbers between -2 and 2, of both signs.
    const uint64_t random = RandomBitsAt(1, 0, i);
    const auto bits = static_cast<uint16_t>((random & 0x80ff) | 0x3f00);
    std::memcpy(operands_.data() + i, &bits, 2);
  }
  for (size_t i = 0; i < factors_.size(); ++i) factors_[i] = 0.5f + static_cast<float>(i) / 1024;
  team->Run(0, static_cast<int>(sums_.size()), [&](int part, int) {
    std::memset(memory_.data() + part * kPartBytes, part + 1, kPartBytes);
  });
}

Result<std::unique_ptr<LimitMeter>> LimitMeter::Make(ThreadTeam* team) {
  if (!CpuHas(Isa::kAvx2)) {
    return Status(StatusCode::kUnsupported, "the limits are measured with AVX2, AVX-512 or AMX");
  }
  return std::unique_ptr<LimitMeter>(new LimitMeter(team));
}

template <typename Peak>
double LimitMeter::Tflops(const Peak& peak) {
  const int threads = team_->num_threads();
  std::vector<double> done(threads);
  // There are more tickets than threads, so that other threads make up for a core that is taken
  // away.
  const double seconds =
      Seconds(*team_, 4 * threads, [&](int, int thread) { done[thread] += peak(); });
  double sum = 0;
  for (const double d : done) sum += d;
  return sum / seconds * 1e-12;
}

double LimitMeter::AmxBf16Tflops() {
  if (!CpuHas(Isa::kAmx)) return 0;
  return Tflops([&] { return RunAmxPeak(operands_.data(), kAmxSteps / 4); });
}

double LimitMeter::Avx512Bf16Tflops() {
  if (!CpuHas(Isa::kAvx512Bf16)) return 0;
  return Tflops([&] {
    float out[16];
    const double flops = RunAvx512Bf16Peak(operands_.data(), kFmaSteps / 4, out);
    return out[0] == out[0] ? flops : 0;
  });
}

double LimitMeter::AmxInt8Tflops() {
  if (!CpuHas(Isa::kAmx)) return 0;
  return Tflops([&] { return RunAmxInt8Peak(operands_.data(), kAmxSteps / 4); });
}

double LimitMeter::VectorInt8Tflops(Isa isa) {
  return Tflops([&] {
    int32_t out[16];
    const double operations = RunInt8Peak(isa, operands_.data(), kFmaSteps / 4, out);
    return out[0] != 0 ? operations : 0;
  });
}

double LimitMeter::FmaTflops(Isa isa) {
  return Tflops([&] {
    float out[16];
    const double flops = RunFmaPeak(isa, factors_.data(), kFmaSteps / 4, out);
    return out[0] == out[0] ? flops : 0;
  });
}

double LimitMeter::ReadGbps() {
  constexpr int kParts = kReadBurstBytes / kPartBytes;
  const size_t begin = next_part_;
  next_part_ = (next_part_ + kParts) % sums_.size();
  const double seconds = Seconds(*team_, kParts, [&](int ticket, int) {
    const size_t part = begin + ticket;
    sums_[part] = ReadAll(memory_.data() + part * kPartBytes, kPartBytes);
  });
  return static_cast<double>(kReadBurstBytes) / seconds * 1e-9;
}

MachineLimits LimitMeter::Now(Isa isa, DType dtype) {
  MachineLimits limits;
  if (isa == Isa::kAvx512Bf16 && dtype == DType::kBf16) {
    limits.avx512_bf16_tflops = Avx512Bf16Tflops();
  } else if (dtype == DType::kBlocks || (isa != Isa::kAmx && dtype == DType::kInt8)) {
    limits.vector_int8_tflops = VectorInt8Tflops(isa);
    if (isa == Isa::kAmx) limits.amx_int8_tflops = AmxInt8Tflops();
  } else if (isa != Isa::kAmx) {
    limits.fma_f32_tflops = FmaTflops(isa);
  } else if (dtype == DType::kInt8) {
    limits.amx_int8_tflops = AmxInt8Tflops();
  } else {
    limits.amx_bf16_tflops = AmxBf16Tflops();
  }
  limits.read_gbps = ReadGbps();
  return limits;
}

MachineLimits MedianOf(const std::vector<MachineLimits>& limits) {
  MachineLimits median;
  for (const auto figure : kFigures) {
    std::vector<double> values;
    for (const MachineLimits& l : limits) values.push_back(l.*figure);
    median.*figure = Median(std::move(values));
  }
  return median;
}

MachineLimits MeanOf(const MachineLimits& a, const MachineLimits& b) {
  MachineLimits mean;
  for (const auto figure : kFigures) mean.*figure = (a.*figure + b.*figure) / 2;
  return mean;
}

MachineLimits MeasureLimits(LimitMeter& meter, Isa isa, int num_runs) {
  std::vector<MachineLimits> limits;
  for (int run = 0; run <= num_runs; ++run) {
    const MachineLimits now = {.amx_bf16_tflops = meter.AmxBf16Tflops(),
                               .amx_int8_tflops = meter.AmxInt8Tflops(),
                               .fma_f32_tflops = meter.FmaTflops(isa),
                               .read_gbps = meter.ReadGbps(),
                               .avx512_bf16_tflops = meter.Avx512Bf16Tflops(),
                               .vector_int8_tflops = meter.VectorInt8Tflops(isa)};
    if (run > 0) limits.push_back(now);  // the first run is a warm-up
  }
  return MedianOf(limits);
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
  return json;
}

}  // namespace skein
