#include "server/reads/pair_task_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "server/json/scheduling_fields.h"

namespace skein {
namespace {

const Json* TextOf(const Json& value) {
  if (value.is_string()) return &value;
  if (!value.is_object()) return nullptr;
  const Json* text = FieldReader(value).Find("text");
  return text != nullptr && text->is_string() ? text : nullptr;
}

}  // namespace

void ReadPairFields(FieldReader* reader, const ModelEntry& model, PairTask* task) {
  ReadScheduling(reader, &task->base);
  task->instruction = reader->String("instruction").value_or("");
  task->method = ReadMethodOverride(reader);
  if (const auto keep = reader->Int("truncate_prompt_tokens", -1, model.max_model_len)) {
    if (*keep == 0) reader->RefuseValue("truncate_prompt_tokens", "-1 or at least 1", Json(0));
    task->max_prompt_tokens = *keep < 0
                                  ? MaxPairTokens(model)
                                  : std::min(MaxPairTokens(model), static_cast<size_t>(*keep));
  }
}

Result<std::vector<std::string>> TextList(const FieldReader& reader, const std::string& field) {
  const Json* value = reader.Find(field);
  const auto wrong = [](const std::string& name, const char* allowed) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{} must be {}", name, allowed), name);
  };
  if (value == nullptr) return wrong(field, "given");
  if (const Json* text = TextOf(*value)) return std::vector{text->get<std::string>()};
  if (!value->is_array() || value->empty()) {
    return wrong(field, "a string or an array of at least one string");
  }
  std::vector<std::string> texts;
  for (size_t i = 0; i < value->size(); ++i) {
    const Json* text = TextOf((*value)[i]);
    if (text == nullptr) {
      return wrong(fmt::format("{}[{}]", field, i), "a string or an object with a string text");
    }
    texts.push_back(text->get<std::string>());
  }
  return texts;
}

}  // namespace skein
