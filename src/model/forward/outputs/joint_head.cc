#include "model/forward/outputs/joint_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model/forward/outputs/final_norm.h"
#include "model/forward/outputs/joint_head_operators.h"

namespace skein {
namespace {

constexpr float kNormEps = 1e-5f;       // epsilon of the LayerNorms
constexpr double kLeastLength = 1e-12;  // of a vector that is divided by its length
constexpr double kLeastCosine = 1e-8;   // of a vector whose cosine is taken

double JointDot(const float* a, const float* b, int32_t n) {
  double sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += double{a[i]} * b[i];
  return sum;
}

double JointLength(const float* a, int32_t n) { return std::sqrt(JointDot(a, a, n)); }

// Makes the list of a head's operators, and has the functions of those that work row by row: each
// of them keeps a copy of the builder.
class JointHeadBuilder {
 public:
  JointHeadBuilder(PassState& pass, OperatorList& list)
      : pass_(pass),
        list_(list),
        head_(pass.weights().joint_head),
        rows_(pass.workspace.head.joint),
        hidden_(pass.config().hidden_size),
        width_(pass.config().decision.joint.width),
        options_max_(JointOptionsMax(pass.limits)) {}

  void Build() {
    AddInputs();
    for (const JointOptionLayer& layer : head_.option_layers) AddOptionLayer(layer);
    AddRows("joint_field", JointRows::kQuestions,
            [*this](const JointTask& task, int32_t row) { MakeField(task, row); });
    for (const JointQuestionLayer& layer : head_.question_layers) AddQuestionLayer(layer);
    AddOutputs();
  }

 private:
  using enum JointRows;

  float* Last() const { return rows_.spans; }
  float* TextMeans() const { return rows_.spans + hidden_; }
  float* OptionMeans() const { return TextMeans() + int64_t{options_max_} * hidden_; }
  float* OutputMeans() const { return OptionMeans() + int64_t{options_max_} * hidden_; }
  float* Wide(int32_t row, int64_t width) const { return rows_.wide + row * width; }
  float* Row(float* matrix, int32_t row) const { return matrix + int64_t{row} * width_; }

  void AddRows(std::string_view name, JointRows rows, JointRowOperator::RowFn fn) {
    list_.Whole<JointRowOperator>(pass_, name, rows, std::move(fn));
  }

  void AddProduct(std::string_view name, JointRows rows, const PackedWeight& weight,
                  const float* in, float* out, bool adds = false, const float* bias = nullptr) {
    list_.Whole<JointProductOperator>(pass_, name,
                                      JointProduct{rows, &weight, bias, in, out, adds});
  }

  void AddProduct(std::string_view name, JointRows rows, const BiasedWeight& weight,
                  const float* in, float* out, bool adds = false) {
    AddProduct(name, rows, weight.weight, in, out, adds, weight.bias.data());
  }

  void AddGeluProduct(std::string_view name, JointRows rows, const BiasedWeight& weight,
                      const float* in, float* out) {
    list_.Whole<JointProductOperator>(
        pass_, name,
        JointProduct{rows, &weight.weight, weight.bias.data(), in, out, false, Activation::kGelu});
  }

  // Adds out[row] = norm(in[row]).
  void AddNorm(std::string_view name, JointRows rows, const LayerNormWeights& norm, float* in,
               float* out) {
    AddRows(name, rows, [*this, &norm, in, out](const JointTask&, int32_t row) {
      Normalize(norm, Row(in, row), Row(out, row));
    });
  }

  void Normalize(const LayerNormWeights& norm, const float* in, float* out) const {
    pass_.kernels().LayerNorm(in, norm.weight.data(), norm.bias.data(), kNormEps,
                              static_cast<int32_t>(norm.weight.size()), out, DType::kF32);
  }

  // Adds the states, which replace those of the pass, the means, and the products of both.
  void AddInputs() {
    AddRows("joint_states", kTokens, [*this](const JointTask& task, int32_t row) {
      float* const x = State(task, row);
      FinalNormRow(pass_, task.first_token() + row, x, DType::kF32);
      Normalize(head_.hidden_norm, x, x);
    });
    AddRows("joint_last", kLast, [*this](const JointTask& task, int32_t) {
      std::copy_n(State(task, task.Count(kTokens) - 1), hidden_, Last());
    });
    AddRows("joint_texts", kQuestions, [*this](const JointTask& task, int32_t row) {
      AddUpStates(task, task.TextOf(row), TextMeans() + int64_t{row} * hidden_);
    });
    AddRows("joint_options", kOptions, [*this](const JointTask& task, int32_t row) {
      AddUpStates(task, task.OptionAt(row), OptionMeans() + int64_t{row} * hidden_);
      AddUpOutputRows(task, row);
    });
    AddProduct("joint_memory", kTokens, head_.memory, nullptr, rows_.memory);
    AddProduct("joint_global", kLast, head_.global, Last(), rows_.last);
    AddProduct("joint_question", kQuestions, head_.question, TextMeans(), rows_.base);
    AddProduct("joint_option_question", kQuestions, head_.option_question, TextMeans(),
               rows_.fields);
    AddRows("joint_spread", kOptions, [*this](const JointTask& task, int32_t row) {
      std::copy_n(Row(rows_.fields, task.QuestionOf(row)), width_, Row(rows_.options, row));
    });
    AddProduct("joint_context", kOptions, head_.context, OptionMeans(), rows_.options, true);
    AddProduct("joint_lexical", kOptions, head_.lexical, OutputMeans(), rows_.options, true);
  }

  // Adds the keys and values of `keys`, [rows, 2 * width] at `kv`, in the order of the kernels.
  void AddStore(std::string_view name, JointRows keys, const float* kv, int64_t stride) {
    const KvLayout layout = JointKvLayout(pass_.config(), pass_.limits);
    AddRows(name, keys, [*this, layout, kv, stride](const JointTask&, int32_t row) {
      const float* const k = kv + row * stride;
      for (int32_t head = 0; head < layout.num_kv_heads; ++head) {
        std::byte* const to = rows_.kv + layout.Offset(0, row / kKvBlockTokens, head);
        const int64_t column = int64_t{head} * layout.head_dim;
        layout.StoreK(to, row % kKvBlockTokens, k + column);
        layout.StoreV(to, row % kKvBlockTokens, k + width_ + column);
      }
    });
  }

  // Adds x += attention(norm(x)) to the prompt, whose rows are `memory`.
  void AddPromptAttention(JointRows rows, const JointAttentionWeights& w, const float* memory,
                          float* x) {
    AddProduct("joint_kv", kTokens, w.kv, memory, rows_.memory_kv);
    AddStore("joint_store", kTokens, rows_.memory_kv, 2 * int64_t{width_});
    AddNorm("joint_attn_norm", rows, w.norm, x, rows_.h);
    AddProduct("joint_q", rows, w.q, rows_.h, rows_.wide);
    list_.Whole<JointAttentionOperator>(pass_, "joint_attention",
                                        JointAttention{rows, kTokens, rows_.wide, width_, rows_.h});
    AddProduct("joint_o", rows, w.o, rows_.h, x, true);
  }

  // Adds x += mlp(norm(x)).
  void AddMlp(JointRows rows, const JointMlpWeights& w, float* x) {
    AddNorm("joint_mlp_norm", rows, w.norm, x, rows_.h);
    AddGeluProduct("joint_up", rows, w.up, rows_.h, rows_.wide);
    AddProduct("joint_down", rows, w.down, rows_.wide, x, true);
  }

  void AddOptionLayer(const JointOptionLayer& layer) {
    AddNorm("joint_memory_norm", kTokens, layer.memory_norm, rows_.memory, rows_.memory_h);
    AddPromptAttention(kOptions, layer.attention, rows_.memory_h, rows_.options);
    AddMlp(kOptions, layer.mlp, rows_.options);
  }

  void AddQuestionLayer(const JointQuestionLayer& layer) {
    const int64_t qkv_width = 3 * int64_t{width_};
    AddNorm("joint_self_norm", kQuestions, layer.self_norm, rows_.fields, rows_.h);
    AddProduct("joint_qkv", kQuestions, layer.qkv, rows_.h, rows_.wide);
    AddStore("joint_self_store", kQuestions, rows_.wide + width_, qkv_width);
    list_.Whole<JointAttentionOperator>(
        pass_, "joint_self_attention",
        JointAttention{kQuestions, kQuestions, rows_.wide, qkv_width, rows_.h});
    AddProduct("joint_self_o", kQuestions, layer.self_o, rows_.h, rows_.fields, true);
    AddPromptAttention(kQuestions, layer.attention, rows_.memory, rows_.fields);
    AddMlp(kQuestions, layer.mlp, rows_.fields);
  }

  void AddOutputs() {
    AddNorm("joint_field_norm", kQuestions, head_.field_norm, rows_.fields, rows_.fields);
    AddNorm("joint_option_norm", kOptions, head_.option_norm, rows_.options, rows_.options);
    AddRows("joint_features", kOptions, [*this](const JointTask& task, int32_t row) {
      const float* const field = Row(rows_.fields, task.QuestionOf(row));
      const float* const option = Row(rows_.options, row);
      float* const out = Wide(row, 4 * int64_t{width_});
      for (int32_t i = 0; i < width_; ++i) {
        out[i] = field[i];
        out[width_ + i] = option[i];
        out[2 * width_ + i] = field[i] * option[i];
        out[3 * width_ + i] = std::abs(field[i] - option[i]);
      }
    });
    AddGeluProduct("joint_scorer", kOptions, head_.scorer, rows_.wide, rows_.h);
    AddRows("joint_score", kOptions,
            [*this](const JointTask& task, int32_t row) { Score(task, row); });
  }

  // The residual stream of a token of the task's row. The head's states replace it.
  float* State(const JointTask& task, int32_t row) const {
    const int32_t token = task.first_token() + row;
    return pass_.workspace.x + int64_t{pass_.layout.ActiveIndex(token)} * hidden_;
  }

  // Writes the mean of the states of a span to `out` [hidden].
  void AddUpStates(const JointTask& task, JointTask::Span span, float* out) const {
    constexpr int32_t kColumns = 64;
    const double count = span.end - span.begin;
    for (int32_t first = 0; first < hidden_; first += kColumns) {
      const int32_t columns = std::min(kColumns, hidden_ - first);
      std::array<double, kColumns> sums = {};
      for (int32_t row = span.begin; row < span.end; ++row) {
        const float* const x = State(task, row) + first;
        for (int32_t i = 0; i < columns; ++i) sums[static_cast<size_t>(i)] += x[i];
      }
      for (int32_t i = 0; i < columns; ++i) {
        out[first + i] = static_cast<float>(sums[static_cast<size_t>(i)] / count);
      }
    }
  }

  // Writes the mean of the output matrix's rows for the tokens of an option.
  void AddUpOutputRows(const JointTask& task, int32_t option) const {
    const JointTask::Span span = task.OptionAt(option);
    float* const out = OutputMeans() + int64_t{option} * hidden_;
    float* const row = Wide(option, JointWide(pass_.config()));
    std::fill_n(out, hidden_, 0.0f);
    for (int32_t at = span.begin; at < span.end; ++at) {
      const auto token = static_cast<size_t>(task.first_token() + at);
      pass_.weights().output.UnpackRow(pass_.batch.tokens[token], row);
      for (int32_t i = 0; i < hidden_; ++i) out[i] += row[i];
    }
    const auto count = static_cast<float>(span.end - span.begin);
    for (int32_t i = 0; i < hidden_; ++i) out[i] /= count;
  }

  // A question's field: its own product, the last token's, its type, and the sum of its options,
  // weighted by a softmax of their match with the question.
  void MakeField(const JointTask& task, int32_t question) const {
    const float* const base = Row(rows_.base, question);
    const int32_t first = task.FirstOptionOf(question), count = task.NumOptionsOf(question);
    const double scale = 1 / std::sqrt(static_cast<double>(width_));
    double largest = 0, sum = 0;
    for (int32_t i = 0; i < count; ++i) {
      const double score = JointDot(Row(rows_.options, first + i), base, width_) * scale;
      largest = i == 0 ? score : std::max(largest, score);
    }
    float* const summary = Row(rows_.h, question);
    std::fill_n(summary, width_, 0.0f);
    for (int32_t i = 0; i < count; ++i) {
      const float* const option = Row(rows_.options, first + i);
      const double weight = std::exp(JointDot(option, base, width_) * scale - largest);
      sum += weight;
      for (int32_t j = 0; j < width_; ++j) {
        summary[j] += static_cast<float>(weight * option[j]);
      }
    }
    for (int32_t j = 0; j < width_; ++j) summary[j] = static_cast<float>(summary[j] / sum);
    Normalize(head_.summary_norm, summary, summary);
    float* const field = Row(rows_.fields, question);
    const float* const type = head_.type_embedding.data() + int64_t{task.TypeOf(question)} * width_;
    for (int32_t j = 0; j < width_; ++j) {
      field[j] = base[j] + summary[j] + rows_.last[j] + type[j];
    }
  }

  void Score(const JointTask& task, int32_t option) const {
    const int32_t question = task.QuestionOf(option);
    const float* const text = TextMeans() + int64_t{question} * hidden_;
    const float* const lexical = OutputMeans() + int64_t{option} * hidden_;
    double dot = 0, length = 0;
    for (int32_t i = 0; i < hidden_; ++i) {
      const double anchor = text[i] + Last()[i];
      dot += anchor * lexical[i];
      length += anchor * anchor;
    }
    const double lengths = std::max(std::sqrt(length), kLeastLength) *
                           std::max(JointLength(lexical, hidden_), kLeastLength);
    const double prior = head_.prior_scale * dot / lengths;
    const float* const field = Row(rows_.fields, question);
    const float* const x = Row(rows_.options, option);
    const double cosine =
        JointDot(field, x, width_) / (std::max(JointLength(field, width_), kLeastCosine) *
                                      std::max(JointLength(x, width_), kLeastCosine));
    const double residual =
        JointDot(Row(rows_.h, option), head_.scorer_out.data(), width_) + head_.scorer_bias.front();
    pass_.Output(0)[option] =
        static_cast<float>(prior + head_.gate * (head_.joint_scale * cosine + residual));
  }

  PassState& pass_;
  OperatorList& list_;
  const JointHeadWeights& head_;
  const JointHeadRows& rows_;
  const int32_t hidden_, width_, options_max_;
};

}  // namespace

void AddJointHead(PassState& pass, OperatorList& list) { JointHeadBuilder(pass, list).Build(); }

}  // namespace skein
