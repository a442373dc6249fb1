#include "model/weights/random_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <string_view>
#include <utility>

#include "io/model_files.h"
#include "io/safetensors_writer.h"
#include "model/weights/tensor_list.h"

namespace skein {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 20;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

// A bijection that spreads every input bit over the whole word (Stafford 2011, variant 13).
inline uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t KeyOf(uint64_t seed, std::string_view name) {
  uint64_t key = Mix(seed + kGolden);
  for (const char c : name) key = Mix(key ^ static_cast<unsigned char>(c)) + kGolden;
  return key;
}

// The values of one tensor: mean + deviation * (sum of four uniforms, centred and scaled to
// variance 1). No value exceeds 3.47 deviations.
struct Distribution {
  uint64_t key = 0;
  float mean = 0;
  float deviation = 0;

  float At(int64_t index) const {
    const uint64_t bits = Mix(key + static_cast<uint64_t>(index) * kGolden);
    const auto sum = static_cast<int32_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) +
                                          ((bits >> 32) & 0xffff) + (bits >> 48));
    // The sum of four integers below 2^16 has a mean of 131070 and a variance of (2^32 - 1) / 3.
    constexpr float kUnit = 1.0f / 37837.227f;
    return mean + static_cast<float>(sum - 131070) * (kUnit * deviation);
  }
};

Distribution DistributionOf(const ModelTensor& tensor, const ModelConfig& config, uint64_t seed) {
  Distribution d;
  d.key = KeyOf(seed, tensor.name);
  switch (tensor.role) {
    case TensorRole::kNorm:
      d.mean = 1 - config.decoder.norm_offset;
      d.deviation = 0.05f;
      break;
    case TensorRole::kBias:
      d.deviation = 0.05f;
      break;
    case TensorRole::kPlainNorm:
      d.mean = 1;
      d.deviation = 0.05f;
      break;
    case TensorRole::kConv:
      d.deviation = 0.5f;  // 1 / sqrt(kConvWidth)
      break;
    case TensorRole::kDecay:
      d.mean = -1;  // states fade by a fifth to a half with each token
      d.deviation = 0.5f;
      break;
    case TensorRole::kEmbedding:
    case TensorRole::kInput:
    case TensorRole::kOutput: {
      double inputs = static_cast<double>(tensor.shape[1]);
      if (tensor.role == TensorRole::kOutput) inputs *= 2.0 * config.num_layers;
      d.deviation = static_cast<float>(1 / std::sqrt(inputs));
      break;
    }
  }
  return d;
}

template <typename T, typename Convert>
std::vector<std::byte> Fill(const Distribution& d, int64_t begin, int64_t end, Convert convert) {
  std::vector<std::byte> bytes(static_cast<size_t>(end - begin) * sizeof(T));
  auto* out = reinterpret_cast<T*>(bytes.data());
  for (int64_t i = begin; i < end; ++i) out[i - begin] = convert(d.At(i));
  return bytes;
}

std::vector<std::byte> Fill(const Distribution& d, int64_t begin, int64_t end, DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return Fill<Bf16>(d, begin, end, ToBf16);
    case DType::kF16:
      return Fill<F16>(d, begin, end, ToF16);
    case DType::kF32:
      return Fill<float>(d, begin, end, [](float x) { return x; });
    case DType::kInt8:
    case DType::kBlocks:
      break;  // weights in one piece never have these types
  }
  return {};
}

struct Chunk {
  size_t tensor;
  int64_t begin, end;  // range of elements
};

}  // namespace

Status WriteRandomWeights(const ModelConfig& config, const RandomWeightsOptions& options,
                          const std::string& dir, ThreadTeam* team, const LoadProgress& progress) {
  const std::vector<ModelTensor> tensors = ListTensors(config);
  const auto element_bytes = static_cast<int64_t>(SizeOf(options.dtype));
  std::vector<TensorSpec> specs;
  std::vector<Distribution> distributions;
  std::vector<Chunk> chunks;
  for (const ModelTensor& tensor : tensors) {
    const bool is_mixtral = config.architecture == Architecture::kMixtral;
    specs.push_back(
        {is_mixtral ? MixtralName(tensor.name) : tensor.name, options.dtype, tensor.shape});
    distributions.push_back(DistributionOf(tensor, config, options.seed));
    const int64_t size = specs.back().num_elements();
    for (int64_t begin = 0; begin < size; begin += kChunkElements) {
      chunks.push_back({specs.size() - 1, begin, std::min(begin + kChunkElements, size)});
    }
  }
  SKEIN_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                         SafetensorsWriter::Create(dir, specs, options.max_shard_bytes));

  const int64_t total = config.NumParameters() * element_bytes;
  std::atomic<bool> stop = false;
  std::mutex mutex;  // guards the two members below
  Status failure;
  int64_t done = 0;
  team->Run(
      0, static_cast<int>(chunks.size()),
      [&](int ticket, int) {
        const Chunk& chunk = chunks[static_cast<size_t>(ticket)];
        const std::vector<std::byte> bytes =
            Fill(distributions[chunk.tensor], chunk.begin, chunk.end, options.dtype);
        const Status status = writer.Write(chunk.tensor, chunk.begin * element_bytes, bytes);
        const std::lock_guard lock(mutex);
        if (!status.ok()) {
          failure = status;
          stop = true;
        }
        done += static_cast<int64_t>(bytes.size());
        if (progress) progress(done, total);
      },
      &stop);
  SKEIN_RETURN_IF_ERROR(failure);
  return writer.Close();
}

}  // namespace skein
