#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "server/generation/answer_format.h"
#include "server/generation/generation_call.h"
#include "server/json/request_body.h"
#include "server/reads/pair_reads.h"
#include "server/reads/pair_task_fields.h"
#include "server/reads/read_session.h"
#include "server/routes.h"

namespace skein {
namespace {

// The format of the answer.
struct RankFormat {
  enum class Kind {
    kCohere,  // {id, model, usage, results: [{index, document: {text}?, relevance_score}]}
    kTei,     // [{index, text?, score}]
    kSglang,  // [{index, document?, score, meta_info}]
  };
  Kind kind = Kind::kCohere;
  bool return_texts = false;
  size_t top_n = 0;
};

// The indices sorted by score, best first; indices of equal scores keep their order.
std::vector<size_t> BestFirst(const std::vector<double>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

Json RankedJson(const RankFormat& format, const std::vector<double>& scores,
                const std::vector<std::string>& documents) {
  Json list = Json::array();
  for (size_t index : BestFirst(scores)) {
    if (list.size() == format.top_n) break;
    Json entry;
    entry["index"] = index;
    const bool is_cohere = format.kind == RankFormat::Kind::kCohere;
    if (format.return_texts) {
      Json& text = is_cohere ? entry["document"]["text"]
                             : entry[format.kind == RankFormat::Kind::kTei ? "text" : "document"];
      text = documents[index];
    }
    entry[is_cohere ? "relevance_score" : "score"] = scores[index];
    if (format.kind == RankFormat::Kind::kSglang) entry["meta_info"] = nullptr;
    list.push_back(std::move(entry));
  }
  return list;
}

RankFormat ReadFormat(FieldReader* reader, const ModelEntry& model, bool return_texts,
                      PairTask* task) {
  RankFormat format;
  // Requests of SGLang's router have an id in the field `rid`, which may be null.
  if (reader->object().contains("rid")) format.kind = RankFormat::Kind::kSglang;
  if (reader->Has("texts")) format.kind = RankFormat::Kind::kTei;
  const size_t all = std::numeric_limits<size_t>::max();
  if (format.kind == RankFormat::Kind::kTei) {
    format.return_texts = reader->Bool("return_text").value_or(false);
    format.top_n = all;
    if (reader->Bool("truncate").value_or(false)) task->max_prompt_tokens = MaxPairTokens(model);
  } else {
    format.return_texts = reader->Bool("return_documents").value_or(return_texts);
    const bool is_sglang = format.kind == RankFormat::Kind::kSglang && reader->Has("top_k");
    const char* const field = is_sglang ? "top_k" : "top_n";
    const auto top_n = reader->Int(field, 0, std::numeric_limits<int32_t>::max()).value_or(0);
    format.top_n = top_n == 0 ? all : static_cast<size_t>(top_n);
  }
  task->raw_scores = reader->Bool("raw_scores").value_or(false);
  return format;
}

Status StartRerank(const ServerContext& context, const HttpRequest& request,
                   std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindDecisionModel(*context.models, &reader));
  PairTask task;
  ReadPairFields(&reader, *model, &task);
  // Cohere's second version returns texts only on request; the other routes return them by default.
  const RankFormat format =
      ReadFormat(&reader, *model, /*return_texts=*/request.path != "/v2/rerank", &task);
  task.query_field = "query";
  task.document_field = format.kind == RankFormat::Kind::kTei ? "texts" : "documents";
  const auto query = reader.String("query");
  if (!query || query->empty()) {
    reader.Refuse("query", "query must be a string that is not empty");
  }
  if (!reader.status().ok()) return reader.status();
  task.queries = {*query};
  SKEIN_ASSIGN_OR_RETURN(task.documents, TextList(reader, task.document_field));
  const TimeUs begin_us = MonotonicClock().NowUs();
  SKEIN_ASSIGN_OR_RETURN(PairReads reads, MakePairReads(*model, task));
  auto write = [model, format, id = MakeAnswerId("rerank", context.random_seed()),
                scores = std::move(reads.scores),
                documents = std::move(task.documents)](const ReadResults& results) -> Result<Json> {
    Json list = RankedJson(format, scores(results), documents);
    if (format.kind != RankFormat::Kind::kCohere) return list;
    Json answer;
    answer["id"] = id;
    answer["model"] = model->name();
    answer["usage"] = ReadUsageJson(results.usage);
    answer["results"] = std::move(list);
    return answer;
  };
  StartReads(context, model, std::move(responder), begin_us, std::move(reads.requests),
             std::move(write), std::move(reads.charged));
  return Status::Ok();
}

}  // namespace

void AddRerankRoutes(Router* router) {
  for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank"}) {
    router->AddWork("POST", path, Starting(&StartRerank), RouteClass::kRank);
  }
}

}  // namespace skein
