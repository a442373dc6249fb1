#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

class RerankTest : public DecisionServerTest {
 protected:
  void ExpectRefused(const Answer& answer, const std::string& param, const std::string& part) {
    EXPECT_EQ(answer.status, 400) << answer.body;
    const Json error = answer.json()["error"];
    EXPECT_EQ(error["param"], param) << answer.body;
    EXPECT_NE(error["message"].get<std::string>().find(part), std::string::npos) << answer.body;
  }
  // Makes the engine answer {0, n} with n the number of x's in the prompt. For readers of {no,
  // yes}, more x's mean more relevance.
  void PreferManyX() {
    engine_.set_reader([](const Request& request) {
      return ReadValues{
          {0, static_cast<float>(std::count(request.prompt.begin(), request.prompt.end(), 'x'))},
          0};
    });
  }
};

constexpr char kDocuments[] = R"(["a x", "b", {"text": "c xx"}])";
std::string Body(const std::string& documents, const std::string& more = "") {
  return R"({"model": "fake", "query": "q", "documents": )" + documents + more + "}";
}
double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST_F(RerankTest, RerankerTemplateBitForBit) {
  StartModel([](ModelEntry* entry) { entry->traits.qwen3_reranker = true; });
  PreferManyX();
  const Answer answer = Post("/v1/rerank", Body(kDocuments));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string head =
      "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
      "and the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
      "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
      "answer the query\n<Query>: q\n<Document>: ";
  const std::string tail = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
  EXPECT_EQ(PromptText(0), head + "a x" + tail);
  EXPECT_EQ(PromptText(2), head + "c xx" + tail);
  EXPECT_EQ(Labels(1), (std::vector<TokenId>{Word("no"), Word("yes")}));
  const auto shared = engine_.last_group()[0].group.parent_prefix_len;
  EXPECT_EQ(words_.Decode(std::span(engine_.last_group()[0].prompt).first(shared), false), head);

  const Json json = answer.json();
  ASSERT_EQ(json["results"].size(), 3u);
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("rerank-"));
  EXPECT_EQ(json["results"][0]["index"], 2);
  EXPECT_EQ(json["results"][0]["document"]["text"], "c xx");
  EXPECT_EQ(json["results"][1]["index"], 0);
  EXPECT_EQ(json["results"][2]["index"], 1);
  const auto in_head = static_cast<double>(std::count(head.begin(), head.end(), 'x'));
  EXPECT_DOUBLE_EQ(json["results"][0]["relevance_score"].get<double>(), Logistic(in_head + 2));
  EXPECT_GT(json["usage"]["prompt_tokens"].get<int>(), 0);

  ASSERT_EQ(Post("/rerank", Body(R"(["d"])", R"(, "instruction": "Find it.")")).status, 200);
  EXPECT_NE(PromptText(0).find("<Instruct>: Find it.\n<Query>: q\n<Document>: d<|im_end|>"),
            std::string::npos);
}

TEST_F(RerankTest, AnyCausalModelIsAskedInWords) {
  StartModel();
  const Answer answer = Post("/v2/rerank", Body(kDocuments, R"(, "top_n": 2)"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(PromptText(0),
            "user: Query:\nq\n\nDocument:\na x\n\nQuestion: Is the document relevant to the "
            "query?\nAnswer with yes or no only.\nassistant: ");
  EXPECT_EQ(Labels(0), (std::vector<TokenId>{Word("yes"), Word("no")}));
  const Json results = answer.json()["results"];
  ASSERT_EQ(results.size(), 2u);
  // Equal scores keep their order; the fake's logits are 0 and -1.
  EXPECT_EQ(results[0]["index"], 0);
  EXPECT_EQ(results[1]["index"], 1);
  EXPECT_DOUBLE_EQ(results[0]["relevance_score"].get<double>(), Logistic(1));
  EXPECT_FALSE(results[0].contains("document"));
  EXPECT_TRUE(Post("/v2/rerank", Body(kDocuments, R"(, "return_documents": true)"))
                  .json()["results"][0]
                  .contains("document"));
}

TEST_F(RerankTest, TeiForm) {
  StartModel([](ModelEntry* entry) { entry->traits.qwen3_reranker = true; });
  PreferManyX();
  const auto post = [&](const std::string& more) {
    return Post("/rerank", R"({"query": "q", "texts": ["a", "bx"])" + more + "}").json();
  };
  const Json plain = post("");
  ASSERT_TRUE(plain.is_array()) << plain.dump();
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0]["index"], 1);
  EXPECT_FALSE(plain[0].contains("text"));
  const Json raw = post(R"(, "raw_scores": true, "return_text": true)");
  EXPECT_EQ(raw[0]["text"], "bx");
  EXPECT_DOUBLE_EQ(raw[0]["score"].get<double>() - raw[1]["score"].get<double>(), 1);
  EXPECT_DOUBLE_EQ(plain[0]["score"].get<double>(), Logistic(raw[0]["score"].get<double>()));
}

// The gateway smg sends requests in SGLang's form and expects a bare array. Without a model's name
// it sends "unknown".
TEST_F(RerankTest, SglangForm) {
  StartModel([](ModelEntry* entry) { entry->traits.qwen3_reranker = true; });
  PreferManyX();
  const auto post = [&](const std::string& more) {
    return Post("/v1/rerank", R"({"query": "q", "documents": ["a", "bx"], "model": "unknown", )"
                              R"("rid": null, "user": null)" +
                                  more + "}")
        .json();
  };
  const Json whole = post(R"(, "return_documents": true)");
  ASSERT_TRUE(whole.is_array()) << whole;
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0]["index"], 1);
  EXPECT_EQ(whole[0]["document"], "bx");
  EXPECT_TRUE(whole[0]["score"].is_number());
  EXPECT_TRUE(whole[0]["meta_info"].is_null());
  const Json first = post(R"(, "return_documents": false, "top_k": 1)");
  ASSERT_EQ(first.size(), 1u);
  EXPECT_FALSE(first[0].contains("document"));
}

TEST_F(RerankTest, TruncationTakesTheDocumentsEnd) {
  StartModel([](ModelEntry* entry) { entry->max_model_len = 130; });
  const std::string text(100, 'd');
  const std::string body = R"({"query": "q", "texts": [")" + text + R"("])";
  ExpectRefused(Post("/rerank", body + "}"), "texts[0]", "takes at most 129");
  ASSERT_EQ(Post("/rerank", body + R"(, "truncate": true})").status, 200);
  EXPECT_EQ(engine_.last_group()[0].prompt.size(), 129u);
  EXPECT_TRUE(PromptText(0).starts_with("user: Query:\nq\n\nDocument:\nd"));
  EXPECT_TRUE(
      PromptText(0).ends_with("d\n\nQuestion: Is the document relevant to the query?\n"
                              "Answer with yes or no only.\nassistant: "));
  ExpectRefused(
      Post("/rerank", R"({"query": ")" + text + R"(", "texts": ["d"], "truncate": true})"), "query",
      "leaves no room");
}

TEST_F(RerankTest, EmbeddingModelsCompareByCosine) {
  StartModel([](ModelEntry* entry) {
    entry->traits.generates = false;
    entry->traits.embeds = true;
    entry->traits.prompts = {{"query", "ask: "}, {"passage", "say: "}};
  });
  engine_.set_reader([&](const Request& request) {
    const std::string text = words_.Decode(request.prompt, false);
    if (text == "ask: q") return ReadValues{{3, 0}, 0};
    return text == "say: a" ? ReadValues{{0, 2}, 0} : ReadValues{{5, 5}, 0};
  });
  const Json results = Post("/rerank", Body(R"(["a", "b"])")).json()["results"];
  EXPECT_EQ(engine_.last_group().size(), 3u);
  EXPECT_EQ(results[0]["index"], 1);
  EXPECT_NEAR(results[0]["relevance_score"].get<double>(), std::sqrt(0.5), 1e-12);
  EXPECT_EQ(results[1]["relevance_score"], 0.0);
  engine_.set_max_whole_prompt_len(6);  // each side is a prompt
  EXPECT_EQ(Post("/rerank", Body(R"(["a"])")).status, 200);
  ExpectRefused(Post("/rerank", Body(R"(["ab"])")), "documents[0]", "takes at most 6");
}

TEST_F(RerankTest, MoreDocumentsThanTheQueueTakes) {
  engine_.set_queue_limit(3);
  StartModel();
  ExpectRefused(Post("/rerank", Body(R"(["a", "b", "c", "d"])")), "documents",
                "at most 3 reads (--max-queued-requests), got 4");
  EXPECT_EQ(Post("/rerank", Body(R"(["a", "b", "c"])")).status, 200);
  StartModel([](ModelEntry* entry) {
    entry->traits.generates = false;
    entry->traits.embeds = true;
  });
  // The query is one of the reads, too.
  ExpectRefused(Post("/rerank", Body(R"(["a", "b", "c"])")), "documents", "at most 3 reads");
  EXPECT_EQ(Post("/rerank", Body(R"(["a", "b"])")).status, 200);
}

TEST_F(RerankTest, WrongFields) {
  StartModel();
  ExpectRefused(Post("/rerank", R"({"documents": ["a"]})"), "query", "not empty");
  ExpectRefused(Post("/rerank", R"({"query": "", "documents": ["a"]})"), "query", "not empty");
  ExpectRefused(Post("/rerank", R"({"query": "q"})"), "documents", "given");
  ExpectRefused(Post("/rerank", Body("[]")), "documents", "at least one");
  ExpectRefused(Post("/rerank", Body(R"(["a", 1])")), "documents[1]", "a string or an object");
  ExpectRefused(Post("/rerank", Body(R"(["a"])", R"(, "top_n": -1)")), "top_n", "integer");
  ExpectRefused(Post("/rerank", Body(R"(["a"])", R"(, "raw_scores": 1)")), "raw_scores",
                "true or false");
  ExpectRefused(Post("/rerank", Body(R"(["a"])", R"(, "truncate_prompt_tokens": 0)")),
                "truncate_prompt_tokens", "at least 1");
}

// A tokenizer with a pair template: [C] a [S] b [S], the second text's tokens of type 1.
class PairTokenizer final : public Tokenizer {
 public:
  Status Encode(std::string_view text, bool, std::vector<TokenId>* ids) const override {
    return bytes_.Encode(text, false, ids);
  }
  Status EncodeFull(const EncodeInput& input, const EncodeOptions& options,
                    Encoding* out) const override {
    std::string second(input.pair.value_or(""));
    const size_t rest = input.text.size() + 3;
    if (options.truncation)
      second.resize(std::min(second.size(), options.truncation->max_length - rest));
    const std::string first = "^" + std::string(input.text) + "|";
    SKEIN_RETURN_IF_ERROR(bytes_.Encode(first + second + "|", false, &out->ids));
    out->type_ids.assign(out->ids.size(), 1);
    std::fill_n(out->type_ids.begin(), first.size(), 0);
    return Status::Ok();
  }
  std::string Decode(std::span<const TokenId> ids, bool skip) const override {
    return bytes_.Decode(ids, skip);
  }
  std::unique_ptr<TextStream> NewTextStream(bool skip) const override {
    return bytes_.NewTextStream(skip);
  }
  int32_t vocab_size() const override { return bytes_.vocab_size(); }
  std::optional<TokenId> TokenToId(std::string_view t) const override {
    return bytes_.TokenToId(t);
  }
  std::string_view IdToToken(TokenId id) const override { return bytes_.IdToToken(id); }
  std::string TokenBytes(TokenId id) const override { return bytes_.TokenBytes(id); }
  bool IsSpecial(TokenId id) const override { return bytes_.IsSpecial(id); }
  std::optional<TokenId> bos_id() const override { return std::nullopt; }
  std::optional<TokenId> eos_id() const override { return std::nullopt; }
  std::optional<TokenId> pad_id() const override { return std::nullopt; }

 private:
  ByteTokenizer bytes_;
};

TEST_F(RerankTest, CrossEncodersGetPairs) {
  PairTokenizer pairs;
  std::vector<std::string> labels = {"LABEL_0"};
  const auto start = [&] {
    StartModel([&](ModelEntry* entry) {
      entry->tokenizer = &pairs;
      entry->traits.generates = false;
      entry->traits.classifies = true;
      entry->traits.encodes_pairs = true;
      entry->traits.class_labels = labels;
      entry->max_model_len = 20;
    });
  };
  start();
  engine_.set_reader([](const Request& request) {
    return ReadValues{{static_cast<float>(request.prompt.size())}, 0};
  });
  const Json results = Post("/rerank", Body(R"(["ab", "abc"])")).json()["results"];
  const Request request = engine_.last_group()[1];
  EXPECT_TRUE(std::holds_alternative<ClassifySpec>(request.output));
  EXPECT_EQ(pairs.Decode(request.prompt, false), "^q|abc|");
  EXPECT_EQ(request.second_segment_begin, 3);
  EXPECT_EQ(request.group.parent_prefix_len, 5);  // ^q|ab
  EXPECT_EQ(results[0]["index"], 1);
  EXPECT_DOUBLE_EQ(results[0]["relevance_score"].get<double>(), Logistic(7));
  const Json raw = Post("/rerank", Body(R"(["ab"])", R"(, "raw_scores": true)")).json();
  EXPECT_EQ(raw["results"][0]["relevance_score"], 6.0);
  const std::string longer = R"(["abcdefghijklmnopqrst"])";
  ExpectRefused(Post("/rerank", Body(longer)), "documents[0]", "takes at most 20");
  EXPECT_EQ(Post("/rerank", Body(longer, R"(, "truncate_prompt_tokens": -1)")).status, 200);
  EXPECT_EQ(engine_.last_group()[0].prompt.size(), 20u);
  // The limit is the length of a prompt that the engine computes in one step.
  engine_.set_max_whole_prompt_len(12);
  ExpectRefused(Post("/rerank", Body(longer)), "documents[0]", "takes at most 12");
  EXPECT_EQ(Post("/rerank", Body(longer, R"(, "truncate_prompt_tokens": -1)")).status, 200);
  EXPECT_EQ(engine_.last_group()[0].prompt.size(), 12u);
  // With two classes the second one means relevant. More classes are refused.
  labels = {"no", "yes"};
  start();
  engine_.set_reader([](const Request&) { return ReadValues{{1, 3}, 0}; });
  EXPECT_DOUBLE_EQ(
      Post("/rerank", Body(R"(["ab"])")).json()["results"][0]["relevance_score"].get<double>(),
      Logistic(2));
  labels = {"a", "b", "c"};
  start();
  ExpectRefused(Post("/rerank", Body(R"(["ab"])")), "model", "3 classes");
}

}  // namespace
}  // namespace skein::testing
