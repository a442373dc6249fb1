#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_files.h"
#include "model/config/config.h"
#include "model/weights/compact_head_weights.h"
#include "model/weights/tensor_list.h"

namespace skein {

// Attention to rows that a norm or another layer made. Keys and values are one product.
struct JointAttentionWeights {
  LayerNormWeights norm;  // of the rows that attend
  BiasedWeight q;         // [width, width]
  BiasedWeight kv;        // [2 * width, width]
  BiasedWeight o;         // [width, width]
};

// An MLP behind its norm.
struct JointMlpWeights {
  LayerNormWeights norm;
  BiasedWeight up;    // [mlp_width, width]
  BiasedWeight down;  // [width, mlp_width]
};

// A layer in which options attend to the prompt.
struct JointOptionLayer {
  JointAttentionWeights attention;
  LayerNormWeights memory_norm;  // of the prompt's rows
  JointMlpWeights mlp;
};

// A layer in which questions attend to each other, then to the prompt.
struct JointQuestionLayer {
  LayerNormWeights self_norm;
  BiasedWeight qkv;     // [3 * width, width]
  BiasedWeight self_o;  // [width, width]
  JointAttentionWeights attention;
  JointMlpWeights mlp;
};

// The head of a Clef model, always in f32. With s the prompt's states behind `hidden_norm`, and
// means over the tokens of a question's text or of an option:
//
//   memory   = memory · s                                    for each token
//   option   = context · mean(s) + lexical · mean(rows of the output matrix)
//              + option_question · mean(s of the question), then the option layers
//   field    = question · mean(s of the question) + norm(options, weighted by their match)
//              + global · s of the last token + type, then the question layers
//   logit    = prior_scale * cos(mean of output rows, question + last)
//              + gate * (joint_scale * cos(field, option) + scorer(field, option))
struct JointHeadWeights {
  LayerNormWeights hidden_norm;  // [hidden]
  // [width, hidden], without biases.
  PackedWeight memory, question, option_question, global, context, lexical;
  std::vector<float> type_embedding;  // [kTypeEmbeddings, width]: choice, score, noul
  std::vector<JointOptionLayer> option_layers;
  LayerNormWeights summary_norm;
  std::vector<JointQuestionLayer> question_layers;
  LayerNormWeights field_norm, option_norm;
  BiasedWeight scorer;             // [width, 4 * width]
  std::vector<float> scorer_out;   // [width]
  std::vector<float> scorer_bias;  // [1]
  // exp(min(x, ln 100)) of the files' scales, and the sigmoid of the files' gate.
  double prior_scale = 0, joint_scale = 0, gate = 0;

  size_t bytes() const;
};

// The prefix of the head's tensors in the files of a model (model/weights/model_weight_files.h).
inline constexpr char kJointHeadPrefix[] = "joint_head.";

// The tensors of the head, in the order of the computation.
std::vector<ModelTensor> ListJointHeadTensors(const ModelConfig& config);

// Reads the head. REQUIRES: the files have every tensor that ListJointHeadTensors lists.
Result<JointHeadWeights> LoadJointHead(const ModelFiles& files, const ModelConfig& config);

}  // namespace skein
