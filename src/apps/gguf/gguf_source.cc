#include "apps/gguf/gguf_source.h"

#include <functional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "model/weights/decoder_loader.h"

namespace skein {

Result<GgufSource> GgufSource::Open(const ModelFiles& files, const ModelConfig& config,
                                    const ModelTensor& weight, DType dtype) {
  GgufSource source;
  source.spec_ = {weight.name, dtype, weight.shape};
  SKEIN_ASSIGN_OR_RETURN(source.view_, files.Find(weight.name, weight.shape));
  source.offset_ = weight.role == TensorRole::kNorm ? config.decoder.norm_offset : 0;
  source.is_decay_ = weight.role == TensorRole::kDecay;
  const LinearLayers& linear = config.decoder.linear;
  if (!linear.tiled_v_heads) return source;
  source.num_k_heads_ = linear.num_k_heads;
  source.heads_per_k_ = linear.num_v_heads / linear.num_k_heads;
  const auto is = [&](std::string_view part) {
    return weight.name.ends_with(".linear_attn." + std::string(part));
  };
  if (is("in_proj_qkv.weight") || is("conv1d.weight")) {
    source.rows_ = {int64_t{2} * linear.k_width(), linear.v_dim};
  } else if (is("in_proj_z.weight")) {
    source.rows_ = {0, linear.v_dim};
  } else if (is("in_proj_a.weight") || is("in_proj_b.weight")) {
    source.rows_ = {0, 1};
  } else if (is("out_proj.weight")) {
    source.columns_ = {0, linear.v_dim};
  } else if (is("A_log") || is("dt_bias")) {
    source.columns_ = {0, 1};
  }
  return source;
}

int64_t GgufSource::InFile(const Heads& heads, int64_t index) const {
  if (heads.width == 0 || index < heads.first) return index;
  const int64_t head = (index - heads.first) / heads.width;
  const int64_t tiled = head % heads_per_k_ * num_k_heads_ + head / heads_per_k_;
  return heads.first + tiled * heads.width + (index - heads.first) % heads.width;
}

Status GgufSource::ReadRows(int64_t first, int64_t count, float* out) const {
  const int64_t width = row_elements();
  if (rows_.width == 0) view_.ReadRows(first, count, out);
  for (int64_t i = 0; rows_.width > 0 && i < count; ++i) {
    view_.ReadRows(InFile(rows_, first + i), 1, out + i * width);
  }
  if (columns_.width > 0) {
    std::vector<float> row(static_cast<size_t>(width));
    for (int64_t i = 0; i < count; ++i) {
      row.assign(out + i * width, out + (i + 1) * width);
      for (int64_t c = 0; c < width; ++c) out[i * width + c] = row[InFile(columns_, c)];
    }
  }
  const std::span<float> all(out, static_cast<size_t>(count * width));
  if (is_decay_) return TakeLogOfRates(spec_.name, all);
  for (float& value : all) value -= offset_;
  return Status::Ok();
}

Result<std::vector<GgufSource>> FindGgufSources(const ModelFiles& files, const std::string& path,
                                                const ModelConfig& config, DType dtype) {
  std::vector<GgufSource> sources;
  std::set<std::string, std::less<>> used = {"rope_freqs.weight"};  // it is in the config
  for (const ModelTensor& weight : ListTensors(config)) {
    SKEIN_ASSIGN_OR_RETURN(GgufSource source, GgufSource::Open(files, config, weight, dtype));
    sources.push_back(std::move(source));
    used.insert(weight.name);
  }
  for (const std::string& name : files.Names()) {
    if (!used.contains(name)) {
      return Status(StatusCode::kUnsupported,
                    path + ": tensor '" + name + "' is not one of this architecture's");
    }
  }
  return sources;
}

}  // namespace skein
