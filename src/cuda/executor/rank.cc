#include "cuda/executor/rank.h"

#include <algorithm>
#include <string>

#include "base/ceil_div.h"
#include "kernels/packed_weight.h"

namespace skein::cuda {
namespace {

// The heads of each rank begin at panels of q, k and v.
bool CanShareHeads(const ModelConfig& config, int32_t count) {
  return config.num_kv_heads % count == 0 &&
         config.num_kv_heads / count * config.head_dim % kPanelCols == 0;
}

}  // namespace

ColumnRange ColumnsOf(const Rank& rank, int32_t width) {
  const int64_t panels = CeilDiv<int64_t>(width, kPanelCols);
  const auto panel = [&](int64_t index) {
    return static_cast<int32_t>(panels * index / rank.count) * kPanelCols;
  };
  return {panel(rank.index), std::min(width, panel(rank.index + 1))};
}

ModelConfig ShareOf(const Rank& rank, const ModelConfig& config) {
  ModelConfig share = config;
  share.num_heads /= rank.count;
  share.num_kv_heads /= rank.count;
  share.intermediate_size = ColumnsOf(rank, config.intermediate_size).size();
  share.expert_size = ColumnsOf(rank, config.expert_size).size();
  share.decoder.shared_expert_size = ColumnsOf(rank, config.decoder.shared_expert_size).size();
  return share;
}

Status CheckRanks(const ModelConfig& config, int32_t count) {
  if (count == 1) return Status::Ok();
  const auto refuse = [&](const std::string& what) {
    return Status(StatusCode::kUnsupported,
                  "several devices do not compute " + what + " together yet (" +
                      config.ArchitectureName() + "); --tp 1 does",
                  "architectures");
  };
  if (config.is_encoder() || config.bidirectional) return refuse("encoders");
  if (config.has_linear_layers()) return refuse("linear layers");
  if (config.decoder.attention_gate) return refuse("gates of attention");
  if (config.decision.num_layers > 0) return refuse("the layers of a decision head");
  if (config.decoder.qk_norm_spans_heads) return refuse("norms over all heads");
  if (!config.HasGate(0)) return refuse("MLPs without a gate");
  int32_t most = config.hidden_size;
  for (const int32_t width :
       {config.intermediate_size, config.expert_size, config.decoder.shared_expert_size}) {
    if (width > 0) most = std::min(most, width);
  }
  most = std::min(kMaxRanks, static_cast<int32_t>(CeilDiv(most, kPanelCols)));
  std::string allowed = "1";
  for (int32_t allowed_count = 2; allowed_count <= most; ++allowed_count) {
    if (!CanShareHeads(config, allowed_count)) continue;
    if (allowed_count == count) return Status::Ok();
    allowed += ", " + std::to_string(allowed_count);
  }
  return Status(StatusCode::kInvalidArgument,
                "tp is " + std::to_string(count) + "; devices share the " +
                    std::to_string(config.num_kv_heads) +
                    " heads of keys and values evenly, and all products by 16 columns, so it can "
                    "be " +
                    allowed,
                "tp");
}

}  // namespace skein::cuda
