#include "server/generation/openai_format.h"

#include <utility>

namespace skein {

OpenAiFormat::OpenAiFormat(std::string model_name, std::string id, const GenerationFields& fields)
    : model_name_(std::move(model_name)),
      id_(std::move(id)),
      created_s_(UnixSeconds()),
      include_usage_(fields.include_usage),
      continuous_usage_(fields.continuous_usage_stats) {}

Json OpenAiFormat::Envelope(bool chunk) const {
  Json json;
  json["id"] = id_;
  json["object"] = ObjectName(chunk);
  json["created"] = created_s_;
  json["model"] = model_name_;
  return json;
}

Json OpenAiFormat::Answer(std::vector<ChoiceState>* choices, const Usage& usage) {
  Json answer = Envelope(/*chunk=*/false);
  answer["choices"] = Json::array();
  for (ChoiceState& choice : *choices) answer["choices"].push_back(Choice(&choice));
  answer["usage"] = UsageJson(usage);
  Decorate(*choices, &answer);
  return answer;
}

void OpenAiFormat::AppendEvents(ChoiceState* state, const std::function<Usage()>& usage,
                                std::string* events) {
  std::vector<Json> chunks;
  AppendChunks(state, &chunks);
  for (Json& chunk : chunks) {
    Json list = Json::array();
    list.push_back(std::move(chunk));
    AppendChunk(std::move(list), continuous_usage_ ? UsageJson(usage()) : Json(nullptr), events);
  }
}

void OpenAiFormat::AppendChunk(Json choices, const Json& usage, std::string* events) const {
  Json chunk = Envelope(/*chunk=*/true);
  chunk["choices"] = std::move(choices);
  if (!usage.is_null() || include_usage_) chunk["usage"] = usage;
  *events += Event(chunk);
}

void OpenAiFormat::AppendEnd(const Usage& usage, std::string* events) {
  if (include_usage_) AppendChunk(Json::array(), UsageJson(usage), events);
  *events += "data: [DONE]\n\n";
}

}  // namespace skein
