#pragma once

#include <string>
#include <vector>

#include "model/weights/decoder_names.h"
#include "model/weights/tensor_loader.h"

namespace skein {

// Fills the weights of a decoder.
class DecoderLoader {
 public:
  // Both outlive it. The config is that of `weights`.
  DecoderLoader(TensorLoader& loader, ModelWeights& weights)
      : loader_(loader), config_(weights.config), weights_(weights) {}

  // Asks the loader for every tensor, in the order of the computation.
  Status Walk();

 private:
  Status WalkLayer(const DecoderLayerNames& names, LayerWeights& layer);
  Status WalkAttention(const DecoderLayerNames& names, LayerWeights& layer);
  Status WalkLinear(const DecoderLayerNames& names, LayerWeights& layer);
  // The parts of q, k and v; with `gate` not null q without the gates, which are the parts of that.
  std::vector<TensorPart> PartsOfQkv(const DecoderLayerNames& names,
                                     std::vector<TensorPart>* gate) const;
  Status WalkMlp(const DecoderLayerNames& names, LayerWeights& layer);
  Status WalkExperts(const DecoderLayerNames& names, LayerWeights& layer);
  Status WalkVocabulary();
  Status WalkClassifier();
  // The gains of a norm; none if it has no name.
  Status Norm(const std::string& name, int32_t size, std::vector<float>& weight);

  TensorLoader& loader_;
  const ModelConfig& config_;
  ModelWeights& weights_;
};

// Whether the files hold an output matrix that differs from the embedding. A model whose config
// ties the two then keeps both, as in transformers 5. Reads both matrices if they are the same.
bool HasOwnOutputMatrix(const ModelFiles& files);

}  // namespace skein
