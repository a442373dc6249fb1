#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "server/decisions/decision_answer.h"
#include "server/generation/answer_format.h"
#include "server/generation/generation_call.h"
#include "server/json/request_body.h"
#include "server/reads/item_reads.h"
#include "server/reads/pair_reads.h"
#include "server/reads/pair_task_fields.h"
#include "server/reads/read_session.h"
#include "server/routes.h"

namespace skein {
namespace {

Json ScoreList(const ModelEntry& model, const std::string& id, const std::vector<double>& scores,
               const ReadUsage& usage) {
  Json answer;
  answer["id"] = id;
  answer["object"] = "list";
  answer["created"] = UnixSeconds();
  answer["model"] = model.name();
  answer["data"] = Json::array();
  for (size_t i = 0; i < scores.size(); ++i) {
    Json entry;
    entry["index"] = i;
    entry["object"] = "score";
    entry["score"] = scores[i];
    answer["data"].push_back(std::move(entry));
  }
  answer["usage"] = ReadUsageJson(usage);
  return answer;
}

// The names of the fields of the two sides, as in vLLM.
struct Sides {
  const char* left;
  const char* right;
};
constexpr Sides kSides[] = {{"queries", "documents"}, {"text_1", "text_2"}, {"data_1", "data_2"}};

Status ReadPairs(FieldReader* reader, PairTask* task) {
  for (const Sides& sides : kSides) {
    if (!reader->Has(sides.left) && !reader->Has(sides.right)) continue;
    task->query_field = sides.left;
    task->document_field = sides.right;
    SKEIN_ASSIGN_OR_RETURN(task->queries, TextList(*reader, sides.left));
    SKEIN_ASSIGN_OR_RETURN(task->documents, TextList(*reader, sides.right));
    if (task->queries.size() == 1 || task->queries.size() == task->documents.size()) {
      return reader->status();
    }
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} must have one text, or as many as {} ({}), got {}", sides.left,
                              sides.right, task->documents.size(), task->queries.size()),
                  sides.left);
  }
  return Status(StatusCode::kInvalidArgument,
                "queries and documents (or text_1 and text_2; or query, items and "
                "label_token_ids) must be given",
                "queries");
}

Status StartPairs(const ServerContext& context, const ModelEntry* model, FieldReader* reader,
                  std::shared_ptr<Responder> responder) {
  PairTask task;
  ReadPairFields(reader, *model, &task);
  SKEIN_RETURN_IF_ERROR(ReadPairs(reader, &task));
  const TimeUs begin_us = MonotonicClock().NowUs();
  SKEIN_ASSIGN_OR_RETURN(PairReads reads, MakePairReads(*model, task));
  auto write = [model, id = MakeAnswerId("score", context.random_seed()),
                scores = std::move(reads.scores)](const ReadResults& results) -> Result<Json> {
    return ScoreList(*model, id, scores(results), results.usage);
  };
  StartReads(context, model, std::move(responder), begin_us, std::move(reads.requests),
             std::move(write), std::move(reads.charged));
  return Status::Ok();
}

// [items, labels]
std::vector<std::vector<double>> LabelScores(const std::vector<ReadValues>& reads, bool softmax) {
  std::vector<std::vector<double>> scores;
  for (const ReadValues& read : reads) {
    scores.push_back(softmax ? AnswerOf(read.values, 1.0).probabilities : TokenProbabilities(read));
  }
  return scores;
}

Status StartItems(const ServerContext& context, const ModelEntry* model, FieldReader* reader,
                  bool softmax_default, bool as_list, std::shared_ptr<Responder> responder) {
  const TimeUs begin_us = MonotonicClock().NowUs();
  const bool softmax = reader->Bool("apply_softmax").value_or(softmax_default);
  SKEIN_ASSIGN_OR_RETURN(std::vector<Request> requests,
                         ItemReads(*model, reader, /*want_log_sum_exp=*/!softmax));
  auto write = [model, softmax, as_list, id = MakeAnswerId("score", context.random_seed())](
                   const ReadResults& results) -> Result<Json> {
    const auto scores = LabelScores(results.reads, softmax);
    if (as_list) {
      std::vector<double> first;
      for (const auto& of_item : scores) first.push_back(of_item[0]);
      return ScoreList(*model, id, first, results.usage);
    }
    Json answer;
    answer["scores"] = scores;
    answer["model"] = model->name();
    answer["usage"] = ReadUsageJson(results.usage);
    answer["object"] = "scoring";
    return answer;
  };
  StartReads(context, model, std::move(responder), begin_us, std::move(requests), std::move(write));
  return Status::Ok();
}

Status StartScore(const ServerContext& context, const HttpRequest& request,
                  std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  if (reader.Has("items") || reader.Has("label_token_ids")) {
    return StartItems(context, model, &reader, /*softmax_default=*/false, /*as_list=*/false,
                      std::move(responder));
  }
  return StartPairs(context, &context.models->ForDecisions(*model), &reader, std::move(responder));
}

Status StartGenerativeScoring(const ServerContext& context, const HttpRequest& request,
                              std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  return StartItems(context, model, &reader, /*softmax_default=*/true, /*as_list=*/true,
                    std::move(responder));
}

}  // namespace

void AddScoreRoutes(Router* router) {
  router->AddWork("POST", "/v1/score", Starting(&StartScore), RouteClass::kRank);
  router->AddWork("POST", "/score", Starting(&StartScore), RouteClass::kRank);
  router->AddWork("POST", "/generative_scoring", Starting(&StartGenerativeScoring),
                  RouteClass::kRank);
}

}  // namespace skein
