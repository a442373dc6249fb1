#include "bench/gpu/gpu_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>

#include "cuda/kernels/launches.h"
#include "kernels/packed_weight.h"

namespace skein {
namespace {

using cuda::GemmArgs;
using cuda::GemmOutput;
using cuda::KernelId;
using cuda::Launch;
using cuda::TileSize;

constexpr const char* kOutputNames[] = {"store", "add", "gated"};
constexpr const char* kTileNames[] = {
    "few8",   "few16", "few32", "deep32",           "middle",
    "deep64", "large", "huge",  "persistent large", "persistent huge"};

bool IsBetween(KernelId id, KernelId first, KernelId last) { return id >= first && id <= last; }

// Whether this is a dense product of bf16.
bool IsProduct(const Launch& launch) {
  return IsBetween(launch.kernel, KernelId::kBf16Few8Store, KernelId::kBf16PersistentHugeGated);
}
GemmArgs ProductOf(const Launch& launch) {
  GemmArgs args;
  std::memcpy(&args, launch.args.data(), sizeof(args));
  return args;
}
int IndexOf(const Launch& launch) {
  return static_cast<int>(launch.kernel) - static_cast<int>(KernelId::kBf16Few8Store);
}
const char* TileOf(const Launch& launch) { return kTileNames[IndexOf(launch) / 3]; }
GemmOutput OutputOf(const Launch& launch) { return static_cast<GemmOutput>(IndexOf(launch) % 3); }

double FlopsOf(const Launch& launch) {
  if (!IsProduct(launch)) return 0;
  const GemmArgs args = ProductOf(launch);
  return 2.0 * args.m * args.columns * (OutputOf(launch) == GemmOutput::kGated ? 2 : 1) *
         (2.0 * args.words);
}

std::string NameOf(const Launch& launch) {
  using enum KernelId;
  const KernelId id = launch.kernel;
  if (IsProduct(launch)) {
    const GemmArgs args = ProductOf(launch);
    return fmt::format("product {} x {} x {}, {}, {}", args.m, args.columns, 2 * args.words,
                       kOutputNames[static_cast<int>(OutputOf(launch))], TileOf(launch));
  }
  if (IsBetween(id, kEmbedF32, kEmbedBlocks)) return "embed";
  if (IsBetween(id, kRmsNormF32, kLayerNormBf16)) return "norm";
  if (id == kAddTableRows) return "positions and segments";
  if (id == kMean) return "mean";
  if (IsBetween(id, kDeltaGates, kScaleLinearHeads)) return "linear attention but its delta rule";
  if (IsBetween(id, kDelta, kDeltaHead128)) return "delta rule";
  if (IsBetween(id, kGatedNormF32, kAttentionGateBf16)) return "gated results";
  if (IsBetween(id, kActivateF32, kActivateBf16)) return "activation";
  if (id == kGather) return "gathered rows";
  if (id == kShareColumns) return "columns to other devices";
  if (IsBetween(id, kStoreHeadsF32, kStoreHeadsBf16Head128)) return "heads";
  if (IsBetween(id, kAttentionF32, kBiasedAttentionBf16)) return "attention";
  if (IsBetween(id, kMergeSegmentsF32, kExtendedMergeSegmentsBf16)) return "merged segments";
  if (IsBetween(id, kFindLargest, kMergeLargest)) return "largest";
  if (IsBetween(id, kWeighGroups, kDraw)) return "draws";
  if (IsBetween(id, kChooseExperts, kSumExperts)) return "choice of experts";
  if (id >= kF32Few16Store) {  // products of f32, of integers, of experts
    return fmt::format("product of {} rows, {} columns", ProductOf(launch).m,
                       ProductOf(launch).columns);
  }
  return "other";
}

// The seconds of a second run of the launches as one graph.
Result<double> TimeGraph(cuda::Device& device, std::span<const Launch> launches) {
  device.BeginGraph();
  for (const Launch& launch : launches) device.Run(launch);
  SKEIN_ASSIGN_OR_RETURN(const int32_t graph, device.EndGraph());
  device.RunGraph(graph);
  Status status = device.WaitForAll();
  const auto begin = std::chrono::steady_clock::now();
  device.RunGraph(graph);
  if (status.ok()) status = device.WaitForAll();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  device.FreeGraph(graph);
  SKEIN_RETURN_IF_ERROR(status);
  return seconds.count();
}

// Memory of a device for the operands of products, filled with random numbers: zeros would be
// faster, since they take less power.
struct ProductMemory {
  static Result<ProductMemory> Make(cuda::Device& device, std::span<const GemmShape> shapes) {
    int64_t a_size = 0, w_size = 0, out_size = 0;
    for (const GemmShape& shape : shapes) {
      a_size = std::max(a_size, int64_t{shape.m} * shape.k);
      w_size = std::max(w_size, int64_t{shape.n} * shape.k);
      out_size = std::max(out_size, int64_t{shape.m} * shape.n);
    }
    ProductMemory memory;
    const auto make = [&](int64_t bytes) {
      return cuda::Buffer::Make(&device, cuda::Buffer::Place::kDevice, bytes);
    };
    SKEIN_ASSIGN_OR_RETURN(memory.a, make(a_size * sizeof(Bf16)));
    SKEIN_ASSIGN_OR_RETURN(memory.w, make(w_size * sizeof(Bf16)));
    SKEIN_ASSIGN_OR_RETURN(memory.out, make(out_size * sizeof(float)));
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    std::vector<Bf16> numbers((size_t{1} << 20) + 1);  // of a size that no row has
    for (Bf16& x : numbers) x = ToBf16(normal(random));
    const size_t bytes = numbers.size() * sizeof(Bf16);
    for (const cuda::Buffer* buffer : {&memory.a, &memory.w}) {
      for (size_t at = 0; at < buffer->bytes(); at += bytes) {
        device.CopyToDevice(buffer->as<uint8_t>() + at, numbers.data(),
                            std::min(bytes, buffer->bytes() - at));
      }
    }
    SKEIN_RETURN_IF_ERROR(device.WaitForAll());
    return memory;
  }

  cuda::Buffer a, w, out;
};

// Whether the rows of a tile suit a product of `m` rows: not far more, and not so few that the
// weights would be read too often.
bool Suits(TileSize tile, int32_t m) {
  constexpr int32_t kRows[] = {8, 16, 32, 32, 64, 64, 128, 256, 128, 256};
  const int32_t rows = kRows[static_cast<int>(tile)];
  return rows <= 2 * m && m <= 32 * rows;
}

}  // namespace

void RecordingDevice::Record(std::span<const Launch> launches) {
  if (*recording_ == nullptr) return;
  (*recording_)->insert((*recording_)->end(), launches.begin(), launches.end());
}

void RecordingDevice::Run(const Launch& launch) {
  if (graph_) {
    graph_->push_back(launch);
  } else {
    Record({&launch, 1});
  }
  device_->Run(launch);
}

void RecordingDevice::BeginGraph() {
  graph_.emplace();
  device_->BeginGraph();
}

Result<int32_t> RecordingDevice::EndGraph() {
  const std::vector<Launch> launches = *std::exchange(graph_, std::nullopt);
  SKEIN_ASSIGN_OR_RETURN(const int32_t graph, device_->EndGraph());
  graphs_[graph] = launches;
  return graph;
}

void RecordingDevice::RunGraph(int32_t graph) {
  Record(graphs_.at(graph));
  device_->RunGraph(graph);
}

void RecordingDevice::FreeGraph(int32_t graph) {
  graphs_.erase(graph);
  device_->FreeGraph(graph);
}

Result<std::vector<KernelTime>> TimeKernels(cuda::Device& device,
                                            std::span<const Launch> launches) {
  std::map<std::string, std::vector<Launch>> kinds;
  for (const Launch& launch : launches) kinds[NameOf(launch)].push_back(launch);
  std::vector<KernelTime> times;
  for (const auto& [name, kind] : kinds) {
    SKEIN_ASSIGN_OR_RETURN(const double seconds, TimeGraph(device, kind));
    double flops = 0;
    for (const Launch& launch : kind) flops += FlopsOf(launch);
    times.push_back(
        {name, static_cast<int32_t>(kind.size()), seconds * 1e6, flops / seconds / 1e12});
  }
  std::ranges::sort(times, std::greater(), &KernelTime::us);
  return times;
}

Result<std::vector<TileTime>> TimeTiles(cuda::Device& device, std::span<const GemmShape> shapes,
                                        int32_t repetitions) {
  SKEIN_ASSIGN_OR_RETURN(const ProductMemory memory, ProductMemory::Make(device, shapes));
  std::vector<TileTime> times;
  for (const GemmShape& shape : shapes) {
    for (const GemmOutput output : {GemmOutput::kAdd, GemmOutput::kGated}) {
      const int32_t columns = output == GemmOutput::kGated ? shape.n / 2 : shape.n;
      const GemmArgs args = {.a = memory.a.as<void>(),
                             .lda = shape.k / 2,
                             .w = memory.w.as<void>(),
                             .m = shape.m,
                             .columns = columns,
                             .words = shape.k / 2,
                             .up_panel = columns / kPanelCols,
                             .out = memory.out.as<void>(),
                             .ldo = columns};
      const auto launch = [&](std::optional<TileSize> tile) {
        return cuda::GemmLaunch(DType::kBf16, output, DType::kBf16, args,
                                {.shared_bytes = device.shared_bytes(),
                                 .persistent_blocks = device.persistent_blocks(),
                                 .tile = tile});
      };
      const KernelId chosen = launch(std::nullopt).kernel;
      for (int i = 0; i < cuda::kTileSizes; ++i) {
        const auto tile = static_cast<TileSize>(i);
        const bool persists = tile >= TileSize::kPersistentLarge;
        if (!Suits(tile, shape.m) || (persists && !device.has_phases())) continue;
        const Launch one = launch(tile);
        if (one.shape.shared_bytes > device.shared_bytes()) continue;
        const std::vector<Launch> all(repetitions, one);
        SKEIN_ASSIGN_OR_RETURN(const double seconds, TimeGraph(device, all));
        times.push_back(
            {shape, output, TileOf(one), one.kernel == chosen, seconds / repetitions * 1e6});
      }
    }
  }
  return times;
}

}  // namespace skein
