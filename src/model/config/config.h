#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "kernels/kernels.h"
#include "model/config/quantization_config.h"
#include "model/config/rope.h"

namespace skein {

enum class Architecture {
  kLlama,  // from here: decoders
  kMistral,
  kQwen2,
  kQwen3,
  kQwen3Moe,
  kQwen2Moe,
  kOlmoe,
  kMixtral,
  kGemma,
  kGemma2,
  kGemma3,
  kPhi3,
  kOlmo2,
  kOlmo3,
  kGranite,
  kSmolLm3,
  kQwen35,
  kGptOss,
  kQwen35Moe,
  kQwen3Next,
  kBert,  // from here: encoders
  kRoberta,
  kXlmRoberta,
  kDistilBert,
  kNomicBert,
  kGte,
  kDebertaV2,  // and v3
  kMpnet,
  kModernBert,
};
const char* NameOf(Architecture architecture);  // as config.json spells it: "LlamaForCausalLM"

// The head after the last layer.
enum class Head {
  kNone,           // none: the outputs are hidden states
  kLanguageModel,  // the output matrix over the vocabulary
  kClassifier,     // ForSequenceClassification: num_classes outputs
  // The head that predicts masked tokens, in a SPLADE model: it gives a sparse vector of a whole
  // row, over the vocabulary.
  kMaskedLanguageModel,
  kTokenVectors,  // of a ColBERT model: a projection that gives a vector for each token
  kDecision,      // of a decision model: a logit for each option, and logits of the actions
};

// Layers in which a token attends only to keys near it. All other layers are global.
struct LocalLayers {
  std::vector<bool> layers;       // by layer; empty: no layer is local
  int32_t before = 0, after = 0;  // keys to which a token attends on either side, besides its own
  RopeConfig rope;                // of these layers

  int32_t window() const { return before + after + 1; }
};

// Layers of gated linear attention (Gated DeltaNet), which keep a state of fixed size instead of
// keys and values. In all other layers, a token attends to every token before it.
struct LinearLayers {
  std::vector<bool> layers;  // by layer; empty: no layer is linear
  int32_t num_k_heads = 0;   // heads of q and k; divides num_v_heads
  int32_t num_v_heads = 0;
  int32_t k_dim = 0;  // of a head of q or k; a multiple of 4
  int32_t v_dim = 0;  // of a head of v; a multiple of kDeltaCols
  // The heads of v that share a head of k are num_k_heads apart, as GGUF keeps them, and not
  // neighbours.
  bool tiled_v_heads = false;
  // The files have q, k, v and z as one matrix, in which each head of k and its heads of v follow
  // each other; and b and a as another one (Qwen3-Next). GGUF files may have only the latter.
  bool fused_qkvz = false, fused_ba = false;

  // The head of q and k that a head of v reads.
  int32_t KHeadOf(int32_t v_head) const {
    return tiled_v_heads ? v_head % num_k_heads : v_head / (num_v_heads / num_k_heads);
  }
  int32_t k_width() const { return num_k_heads * k_dim; }
  int32_t v_width() const { return num_v_heads * v_dim; }
  int32_t conv_width() const { return 2 * k_width() + v_width(); }  // q, k, v
  // The width of the product with a layer's input: q, k, v, z, b, a.
  int32_t width() const { return conv_width() + v_width() + 2 * num_v_heads; }
};

// Disentangled attention (He et al. 2021, "DeBERTa", section 3.1). The score of a query and a key
// also depends on their distance, query's position less key's. It has a term of the query with the
// distance, and one of the key with it. A table has a row for each distance.
struct RelativeAttention {
  // Distances that are known apart: [-span, span). Farther ones are those at the ends. 0: scores do
  // not depend on distances.
  int32_t span = 0;
  // If not 0, distances beyond half the span share rows: those up to this distance in steps that
  // grow with it.
  int32_t max_distance = 0;
  bool normed = false;              // whether the table's rows are normed
  bool shares_projections = false;  // whether they have the projections of keys and queries

  int32_t num_rows() const { return 2 * span; }
};

// Relative attention bias (Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a
// Unified Text-to-Text Transformer", section 2.1), which all layers share. A number for each head
// and each bucket of distances is added to the scaled score of a query and a key.
struct RelativeBias {
  // Half of the buckets are for keys before the query and the query itself, half for keys behind.
  // The nearer half of each has a bucket for each distance. 0: there is no bias.
  int32_t num_buckets = 0;
  int32_t max_distance = 0;  // from here on, all distances share a bucket
};

// The sparse vector of a SPLADE model (Formal et al. 2021, "SPLADE: Sparse Lexical and Expansion
// Model for First Stage Ranking", section 3.1). Its element for an id of the vocabulary is the
// maximum, over the tokens of a row, of log(1 + relu(logit)).
struct SparseFields {
  bool sums = false;            // the sum over the tokens in place of the maximum
  bool log_twice = false;       // log(1 + log(1 + relu(logit)))
  bool documents_only = false;  // the model computes no vectors of queries
  // With documents_only: the directory with the weights of a query's tokens; empty: not known.
  std::string query_dir = {};
};

// The fields of encoders. Their norms are LayerNorms. Every token attends to every other, unless
// the layer is local.
struct EncoderFields {
  float layer_norm_eps = 0;
  // Fields of BERT's family:
  int32_t num_segments = 0;    // rows of the segment table; 0: there is none
  int32_t first_position = 0;  // row of the position table for token 0
  bool has_positions = true;   // DeBERTa v3 has no position table; nor has an encoder that rotates
  RelativeAttention relative;  // DeBERTa
  RelativeBias relative_bias;  // MPNet
  // Rope in place of learned positions, and a gate in the MLP (NomicBERT, GTE).
  bool rotates = false;
  // These two: the files have the names that transformers gives, not those of the published files.
  bool library_names = false;
  // ModernBERT.
  bool norm_bias = true;         // biases of the norms
  bool head_bias = true;         // bias of the first layer of a classifier's head
  bool classifies_mean = false;  // a classifier reads the mean of the states, else the first
  Activation head_activation = Activation::kNone;
  bool output_bias = true;  // of the head that predicts masked tokens: biases of the logits
  // Whether config.json names a head that predicts masked tokens. It is read if vectors are sparse.
  bool predicts_masked = false;
  // The size of a ColBERT model's vectors if the matrix that makes them is in the model's own file.
  // 0: it is in a module of its own (sentence-transformers' Dense), or there is none.
  int32_t token_width = 0;
  SparseFields sparse;        // with Head::kMaskedLanguageModel
  std::string tensor_prefix;  // of the encoder's tensors in the files: "model." or nothing
};

// The positions of a decoder's norms. kBefore: before attention and before the MLP. kBehind: behind
// each of the two, before the result is added to the residual. kAround: both.
enum class NormPlacement : uint8_t { kBefore, kAround, kBehind };

// The fields of decoders. Their norms are RMSNorms. A token attends to the tokens before it.
struct DecoderFields {
  float rms_norm_eps = 0;
  NormPlacement norms = NormPlacement::kBefore;
  float norm_offset = 0;                // added to the gains in the files (Gemma: 1)
  float embedding_scale = 1;            // of the tokens' embeddings
  bool rounds_embedding_scale = false;  // whether it is rounded to the compute type
  double attention_scale = 0;           // factor of the scores; 0: 1 / sqrt(head_dim)
  float residual_scale = 1;             // factor of the results of attention and the MLP
  float logits_divisor = 1;
  // Soft caps (Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size",
  // section 2): x becomes cap * tanh(x / cap). 0: none.
  float score_cap = 0;                 // of the scaled scores
  float logits_cap = 0;                // of the divided logits
  bool qk_norm = false;                // RMSNorm over each head of q and k, before rope
  bool qk_norm_spans_heads = false;    // the norm spans all heads of q, or of k
  bool fused_projections = false;      // the files have q, k, v, and gate, up, as one matrix each
  std::vector<bool> unrotated_layers;  // by layer: q and k have no rope; empty: all have it
  bool reward_mlp = false;  // a classifier's head is score.0, ReLU, score.2; false: score
  // The result of attention is multiplied by sigmoid(gate). In q_proj, the rows of each head's gate
  // come behind the rows of its q.
  bool attention_gate = false;
  bool attention_sinks = false;  // each head has a sink (AttentionRow::sink)
  bool expert_bias = false;      // biases of the router and of the experts' matrices
  LinearLayers linear;
  // In a layer with experts: the intermediate size of one more MLP, which every token goes through.
  // Its result is multiplied by the sigmoid of a product with one row. 0: there is no such MLP.
  int32_t shared_expert_size = 0;
};

// A joint head (model/weights/joint_head_weights.h), which reads a whole prompt and answers all its
// questions together.
struct JointHeadFields {
  int32_t width = 0;  // 0: the head is not joint
  int32_t heads = 0;
  int32_t mlp_width = 0;
  int32_t option_layers = 0;    // layers in which options read the prompt
  int32_t question_layers = 0;  // layers in which questions read each other and the prompt
};

// The head of a decision model, of one of three kinds. The first kind has transformer layers behind
// the encoder's, without rope and gate, which normalize before attention and the MLP; then a scorer
// at the options' markers, and one for the actions. The second kind is a compact head, the third a
// joint head.
struct DecisionHeadFields {
  int32_t num_layers = 0;                     // the last layers of ModelConfig::num_layers
  int32_t intermediate_size = 0;              // of the MLPs of these layers
  Activation activation = Activation::kRelu;  // of the MLPs of these layers
  float layer_norm_eps = 1e-5f;
  int32_t num_actions = 0;

  // A compact head (model/weights/compact_head_weights.h): transformer layers over the states of a
  // question's markers alone, with their own width.
  int32_t compact_width = 0;  // 0: the head is not compact
  int32_t compact_layers = 0;
  int32_t compact_heads = 0;
  // Whether the compact head has only the two projections, which read the states directly: a
  // pointer head.
  bool is_pointer = false;
  // Whether the states that the head reads are rounded to bf16, as in training. Tests turn it off.
  bool rounds_states = true;
  int32_t num_type_rows = 0;              // of the type embedding in the file
  std::array<int32_t, 3> type_rows = {};  // rows of a choice, a score and a noul
  bool is_compact() const { return compact_width > 0; }

  JointHeadFields joint;
  bool is_joint() const { return joint.width > 0; }
  // Whether the head answers whole questions, and does not score marker by marker.
  bool answers_questions() const { return is_compact() || is_joint(); }
};
inline constexpr int32_t kTypeEmbeddings = 3;  // types of questions: choice, score, noul
// The width of the hidden layer of the actions' scorer.
inline constexpr int32_t kActionWidth = 256;

// The intermediate size of an MLP, rounded up to whole weight panels (kernels/packed_weight.h).
int32_t Padded(int32_t mlp_size);

// The contents of a HuggingFace config.json. Shapes use the symbols of docs/glossary.md.
struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  Head head = Head::kLanguageModel;
  int32_t num_classes = 0;  // of a classifier
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  int32_t intermediate_size = 0;
  int32_t num_layers = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t max_position = 0;  // tokens of context; for yarn, the stretched context
  bool tie_embeddings = false;
  bool qkv_bias = false;  // biases of q_proj, k_proj, v_proj
  bool o_bias = false;    // bias of o_proj
  bool mlp_bias = false;  // biases of gate, up and down_proj; GTE's is down_proj's alone
  RopeConfig rope;        // of global layers
  LocalLayers local;
  // Whether a token of a global layer attends to its whole row. Rows are then neither cut nor
  // cached.
  bool bidirectional = false;

  // Mixture of experts: in some layers, a router chooses a few of many small MLPs for each token.
  // These MLPs replace the one large MLP.
  int32_t num_experts = 0;  // 0: there are none
  int32_t experts_per_token = 0;
  int32_t expert_size = 0;           // intermediate size of each expert
  bool norm_expert_weights = false;  // the weights of a token's experts add up to 1
  std::vector<bool> has_experts;     // by layer; empty: no layer has experts

  Activation activation = Activation::kSilu;  // of the MLP, or of its gate
  DecoderFields decoder;
  EncoderFields encoder;
  DecisionHeadFields decision;

  QuantizationConfig quantization;  // of the file's matrices
  DType file_dtype = DType::kBf16;  // torch_dtype / dtype; if absent, that of the embedding
  std::optional<int32_t> bos_token_id;
  std::vector<int32_t> eos_token_ids;  // from generation_config.json, else from config.json

  int32_t intermediate_padded() const;         // Padded(intermediate_size)
  int32_t widest_intermediate_padded() const;  // the largest of all layers
  int32_t expert_padded() const;               // the same for expert_size
  bool HasExperts(int32_t layer) const { return num_experts > 0 && has_experts[layer]; }
  // The intermediate size of the layer's MLP: with experts, of the shared one; 0: there is none.
  int32_t MlpSize(int32_t layer) const {
    return HasExperts(layer) ? decoder.shared_expert_size : intermediate_size;
  }
  bool is_encoder() const { return architecture >= Architecture::kBert; }
  // BERT and its kin: a norm follows each residual addition, positions are learned, and the MLP has
  // no gate, unless `encoder.rotates`. All other models normalize before, rotate q and k, and have
  // a gate.
  bool is_bert_family() const { return is_encoder() && architecture != Architecture::kModernBert; }
  bool has_local_layers() const { return !local.layers.empty(); }
  bool IsLocal(int32_t layer) const { return has_local_layers() && local.layers[layer]; }
  bool has_linear_layers() const { return !decoder.linear.layers.empty(); }
  bool IsLinear(int32_t layer) const { return has_linear_layers() && decoder.linear.layers[layer]; }
  // Whether the last layer computes the results of output tokens alone (BatchLayout).
  bool gathers_outputs() const { return !IsLinear(num_layers - 1); }
  // The number of layers in the memory of keys and values, and the index of `layer` there. Linear
  // layers have no keys and values. In a bidirectional model nobody reads those of a layer once the
  // next one begins, so that all layers have index 0; none of its layers is linear.
  int32_t num_kv_layers() const { return bidirectional ? 1 : KvLayer(num_layers); }
  int32_t KvLayer(int32_t layer) const;
  int32_t num_linear_layers() const {
    return has_linear_layers() ? num_layers - num_kv_layers() : 0;
  }
  int32_t num_base_layers() const { return num_layers - decision.num_layers; }
  // Whether the layer belongs to the head of a decision model.
  bool IsHeadLayer(int32_t layer) const { return layer >= num_base_layers(); }
  bool has_rope() const { return !is_bert_family() || encoder.rotates; }
  // Whether the layer's MLP has a gate.
  bool HasGate(int32_t layer) const { return has_rope() && !IsHeadLayer(layer); }
  // The epsilon of the LayerNorms of a layer; num_layers: of the last one.
  float LayerNormEps(int32_t layer) const {
    return decision.num_layers > 0 && IsHeadLayer(layer) ? decision.layer_norm_eps
                                                         : encoder.layer_norm_eps;
  }
  // Whether the results of attention and the MLP are changed before they are added to the residual.
  bool has_branches() const {
    return decoder.norms != NormPlacement::kBefore || decoder.residual_scale != 1;
  }
  // Whether the head gives a logit for each id of the vocabulary.
  bool has_logits() const {
    return head == Head::kLanguageModel || head == Head::kMaskedLanguageModel;
  }
  // Whether the model has an output matrix: a joint head reads its rows.
  bool has_output_matrix() const { return has_logits() || decision.is_joint(); }
  // Whether q and k of a layer are rotated by their positions.
  bool Rotates(int32_t layer) const {
    return has_rope() && !IsHeadLayer(layer) &&
           (decoder.unrotated_layers.empty() || !decoder.unrotated_layers[layer]);
  }
  std::string ArchitectureName() const;  // with the head's name: "BertForSequenceClassification"
  int64_t NumParameters() const;
  // Bytes of memory for K and V that one token takes: in all layers, or in one if the model is
  // bidirectional.
  int64_t KvBytesPerToken(DType dtype) const;
  // Bytes of the state of one sequence in all linear layers, in f32.
  int64_t StateBytes() const;
};

// Reads the config of a model directory from config.json and generation_config.json. A Laya
// directory has encoder/config.json and rl_agent_config.json instead; a sysone directory has its
// config.json and that of the base model; a Kev directory has head.pt and the config of its
// decoder; a Clef directory has joint_head_config.json, too. Fails with kUnsupported, naming the
// feature, if this engine would compute a feature differently. Fails with kInvalidArgument, naming
// the field, if a field is missing, contradictory or out of range. No field has a silent default.
Result<ModelConfig> LoadModelConfig(const std::string& model_dir);

// Parses the text of a config.json alone. The text must then name the dtype.
Result<ModelConfig> ParseModelConfig(const std::string& config_json);

}  // namespace skein
