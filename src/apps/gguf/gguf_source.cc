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
  const bool is_mixtral = config.architecture == Architecture::kMixtral;
  source.spec_ = {is_mixtral ? MixtralName(weight.name) : weight.name, dtype, weight.shape};
  source.weights_ = {weight.name};
  if (weight.name.ends_with(".in_proj_qkvz.weight") && !files.Has(weight.name)) {
    SKEIN_RETURN_IF_ERROR(source.OpenFused(files, config.decoder.linear));
    return source;
  }
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

Status GgufSource::OpenFused(const ModelFiles& files, const LinearLayers& linear) {
  const std::string begin = spec_.name.substr(0, spec_.name.rfind("qkvz"));
  weights_ = {begin + "qkv.weight", begin + "z.weight"};
  const int64_t columns = spec_.shape[1];
  SKEIN_ASSIGN_OR_RETURN(view_, files.Find(weights_[0], {linear.conv_width(), columns}));
  SKEIN_ASSIGN_OR_RETURN(z_, files.Find(weights_[1], {linear.v_width(), columns}));
  k_width_ = linear.k_width();
  k_dim_ = linear.k_dim;
  v_rows_ = linear.v_width() / linear.num_k_heads;
  return Status::Ok();
}

void GgufSource::ReadFusedRow(int64_t row, float* out) const {
  const int64_t head = row / (2 * k_dim_ + 2 * v_rows_);
  int64_t at = row % (2 * k_dim_ + 2 * v_rows_);
  for (const int64_t first : {int64_t{0}, k_width_}) {
    if (at < k_dim_) return view_.ReadRows(first + head * k_dim_ + at, 1, out);
    at -= k_dim_;
  }
  if (at < v_rows_) return view_.ReadRows(2 * k_width_ + head * v_rows_ + at, 1, out);
  z_.ReadRows(head * v_rows_ + at - v_rows_, 1, out);
}

int64_t GgufSource::InFile(const Heads& heads, int64_t index) const {
  if (heads.width == 0 || index < heads.first) return index;
  const int64_t head = (index - heads.first) / heads.width;
  const int64_t tiled = head % heads_per_k_ * num_k_heads_ + head / heads_per_k_;
  return heads.first + tiled * heads.width + (index - heads.first) % heads.width;
}

Status GgufSource::ReadRows(int64_t first, int64_t count, float* out) const {
  const int64_t width = row_elements();
  if (fuses()) {
    for (int64_t i = 0; i < count; ++i) ReadFusedRow(first + i, out + i * width);
    return Status::Ok();
  }
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
    used.insert(source.weights().begin(), source.weights().end());
    sources.push_back(std::move(source));
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
