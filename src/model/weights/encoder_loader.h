#pragma once

#include <string>
#include <vector>

#include "model/weights/encoder_names.h"
#include "model/weights/tensor_loader.h"

namespace skein {

// Fills the weights of an encoder.
class EncoderLoader {
 public:
  // `loader` and `weights` outlive this object. The config is that of `weights`.
  EncoderLoader(TensorLoader& loader, ModelWeights& weights)
      : loader_(loader), config_(weights.config), weights_(weights) {}

  // Asks the loader for every tensor, in the order of the computation.
  Status Walk() { return config_.is_bert_family() ? WalkBert() : WalkModernBert(); }

 private:
  // The names of the head that predicts masked tokens.
  struct MaskedHead {
    std::string dense, norm, decoder, decoder_bias;
    Activation activation = Activation::kNone;
  };

  Status WalkBert();
  Status WalkWords(const std::string& words, const MaskedHead& head);
  Status WalkMaskedHead(const MaskedHead& head);
  Status WalkProjection();
  Status WalkBertLayer(const EncoderLayerNames& names, LayerWeights& layer);
  Status WalkDistances(const EncoderNames& names);
  Status WalkDistanceBias(const std::string& name);
  Status WalkDistanceLayer(const EncoderLayerNames& names, LayerWeights& layer);
  Status ProjectDistances(const std::string& name, PackedWeight& out);
  Status WalkRotatingLayer(const EncoderLayerNames& names, LayerWeights& layer);
  Status WalkModernBert();
  Status WalkModernBertLayer(const ModernBertLayerNames& names, LayerWeights& layer);
  // Reads a matrix of a layer, in the type of matrices, and its biases if it has any.
  Status LayerLinear(const std::vector<TensorPart>& parts, int32_t n, int32_t k,
                     PackedWeight& weight, std::vector<float>& bias, bool has_bias = true);
  Status Norm(const std::string& name, std::vector<float>& weight, std::vector<float>& bias);

  TensorLoader& loader_;
  const ModelConfig& config_;
  ModelWeights& weights_;
  std::vector<float> distances_;  // [num_rows, hidden]: the table of RelativeAttention
};

}  // namespace skein
