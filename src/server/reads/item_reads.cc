#include "server/reads/item_reads.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "server/decisions/decision_requests.h"
#include "server/early_check.h"
#include "server/json/scheduling_fields.h"
#include "server/prompt_text.h"
#include "server/reads/read_session.h"

namespace skein {
namespace {

bool IsIds(const Json& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& id) { return id.is_number(); });
}

Result<std::vector<TokenId>> ReadLabels(const ModelEntry& model, FieldReader* reader) {
  auto labels = reader->TokenIds("label_token_ids", model.engine->Limits().vocab_size);
  if (!reader->status().ok()) return reader->status();
  if (labels.empty() || labels.size() > static_cast<size_t>(kMaxLabels)) {
    reader->Refuse("label_token_ids", fmt::format("label_token_ids must have 1 to {} token ids, "
                                                  "got {}",
                                                  kMaxLabels, labels.size()));
    return reader->status();
  }
  std::vector<TokenId> sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    reader->Refuse("label_token_ids",
                   fmt::format("label_token_ids must differ, got {} twice", *twice));
    return reader->status();
  }
  return labels;
}

// Joins the query and an item in the given order. Both are texts, or both are token ids.
Result<Request> ReadOf(const ModelEntry& model, const Request& base, const Json& query,
                       const Json& item, bool item_first, const std::string& field) {
  const Json& first = item_first ? item : query;
  const Json& second = item_first ? query : item;
  if (query.is_string()) {
    return MakeRead(model, base,
                    RawText(model, first.get<std::string>() + second.get<std::string>()),
                    /*add_special_tokens=*/true, field, "query with " + field);
  }
  Request request = base;
  const int32_t vocab_size = model.engine->Limits().vocab_size;
  for (const Json* part : {&first, &second}) {
    for (const Json& value : *part) {
      const auto id = JsonInt(value);
      if (!id || *id < 0 || *id >= vocab_size) {
        return Status(
            StatusCode::kInvalidArgument,
            fmt::format("{} must be an array of token ids in [0, {}], got {}",
                        part == &query ? "query" : field, vocab_size - 1, DumpJson(value)),
            part == &query ? "query" : field);
      }
      request.prompt.push_back(static_cast<TokenId>(*id));
    }
  }
  SKEIN_RETURN_IF_ERROR(CheckPromptLength(MaxLabelTokens(model), request.prompt.size(), field,
                                          "query with " + field));
  return request;
}

}  // namespace

Result<std::vector<Request>> ItemReads(const ModelEntry& model, FieldReader* reader,
                                       bool want_log_sum_exp) {
  SKEIN_RETURN_IF_ERROR(CheckReadsLabels(model));
  Request base;
  ReadScheduling(reader, &base);
  const bool item_first = reader->Bool("item_first").value_or(false);
  SKEIN_ASSIGN_OR_RETURN(std::vector<TokenId> labels, ReadLabels(model, reader));
  base.output = LabelSpec{std::move(labels), want_log_sum_exp};
  const Json* query = reader->Find("query");
  const Json* items = reader->Find("items");
  if (query == nullptr || !(query->is_string() || IsIds(*query))) {
    reader->Refuse("query", "query must be a string or an array of token ids");
  }
  Json one;
  if (items != nullptr && items->is_string()) {
    one = Json::array({*items});
    items = &one;
  }
  if (items == nullptr || !items->is_array() || items->empty()) {
    reader->Refuse("items", "items must be an array of at least one item");
  }
  if (!reader->status().ok()) return reader->status();
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, "items", items->size()));
  if (query->is_string() && AreTexts(items, items->size())) {
    SKEIN_RETURN_IF_ERROR(CheckReadWait(model, base));
  }
  std::vector<Request> requests;
  for (size_t i = 0; i < items->size(); ++i) {
    const std::string field = fmt::format("items[{}]", i);
    const Json& item = (*items)[i];
    if (query->is_string() ? !item.is_string() : !IsIds(item)) {
      return Status(StatusCode::kInvalidArgument,
                    field + (query->is_string() ? " must be a string, as query is"
                                                : " must be an array of token ids, as query is"),
                    field);
    }
    SKEIN_ASSIGN_OR_RETURN(Request request, ReadOf(model, base, *query, item, item_first, field));
    requests.push_back(std::move(request));
  }
  if (requests.size() > 1) SetSharedHead(0, &requests);
  return requests;
}

}  // namespace skein
