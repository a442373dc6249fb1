#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/weights/decoder_names.h"
#include "model/weights/tensor_loader.h"

namespace skein {

// Fills the weights of a decoder.
class DecoderLoader {
 public:
  // `loader` and `weights` outlive this object. The config is that of `weights`.
  DecoderLoader(TensorLoader& loader, ModelWeights& weights)
      : loader_(loader), config_(weights.config), weights_(weights) {}

  // Asks the loader for every tensor, in the order of the computation.
  Status Walk();

 private:
  Status WalkLayer(const DecoderLayerNames& names, LayerWeights& layer);
  Status WalkAttention(const DecoderLayerNames& names, LayerWeights& layer);
  Status WalkLinear(const DecoderLayerNames& names, LayerWeights& layer);
  // The parts of q, k and v. If `gate` is not null, they leave out the gates in q, whose parts go
  // to *gate.
  std::vector<TensorPart> PartsOfQkv(const DecoderLayerNames& names,
                                     std::vector<TensorPart>* gate) const;
  // The parts of a linear layer's input matrix.
  std::vector<TensorPart> PartsOfLinear(const DecoderLayerNames& names) const;
  // `mlp`: the intermediate size.
  Status WalkMlp(const DecoderLayerNames& names, int32_t mlp, LayerWeights& layer);
  Status WalkExperts(const DecoderLayerNames& names, LayerWeights& layer);
  Status WalkVocabulary();
  Status WalkClassifier();
  // Reads the gains of a norm; none if the norm has no name.
  Status Norm(const std::string& name, int32_t size, std::vector<float>& weight);

  TensorLoader& loader_;
  const ModelConfig& config_;
  ModelWeights& weights_;
};

// Replaces the rates of decay of a linear layer, as GGUF files hold them, by A_log:
// rate = -exp(A_log). kInvalidArgument names the tensor if a rate is not below 0.
Status TakeLogOfRates(const std::string& name, std::span<float> rates);

// Whether the files hold an output matrix that differs from the embedding. A model whose config
// ties the two then keeps both, as in transformers 5. Reads both matrices if they are the same.
bool HasOwnOutputMatrix(const ModelFiles& files);

}  // namespace skein
