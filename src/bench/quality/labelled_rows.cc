#include "bench/quality/labelled_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "server/json/field_reader.h"
#include "server/json/python_json.h"

namespace skein {
namespace {

Status RowError(const std::string& field, const std::string& allowed, const Json& got) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} must be {}, got {}", field, allowed, DumpJson(got)), field);
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : DumpPythonJson(value);
}

// The names of a question's options as they occur in labels; for a score, the texts of its levels.
std::vector<std::string> NamesOf(const std::string& type, const Json& criteria) {
  std::vector<std::string> names;
  if (type == "noul") return {"false", "true"};
  for (const auto& [key, value] : criteria.items()) {
    names.push_back(criteria.is_object() ? key : TextOf(value));
  }
  return names;
}

// Turns a question of /v1/systemone into one of /v1/decisions.
Result<Json> QuestionOf(const Json& question, const std::string& field) {
  FieldReader reader(question);
  const std::string type = reader.String("type").value_or("");
  const std::string instructions = reader.String("instructions").value_or("");
  SKEIN_RETURN_IF_ERROR(reader.status());
  if (instructions.empty()) {
    return RowError(field + ".instructions", "a string that is not empty", Json(instructions));
  }
  const Json* criteria = reader.Find("criteria");
  Json out = {{"instructions", instructions}};
  if (type == "noul") {
    out["type"] = "predicate";
    if (criteria != nullptr) out["criteria"] = *criteria;
    return out;
  }
  if (type != "choice" && type != "score") {
    return RowError(field + ".type", "\"noul\", \"choice\" or \"score\"", Json(type));
  }
  const bool choice = type == "choice";
  if (criteria == nullptr || !(criteria->is_array() || (choice && criteria->is_object()))) {
    return RowError(field + ".criteria",
                    choice ? "an object or an array of options" : "an array of levels",
                    criteria == nullptr ? Json() : *criteria);
  }
  out["type"] = type;
  Json& list = out[choice ? "choices" : "levels"] = Json::array();
  for (const auto& [key, value] : criteria->items()) {
    const std::string name = criteria->is_object() ? key : TextOf(value);
    Json option = {{choice ? "value" : "label", name}};
    if (criteria->is_object() && !value.is_null() && value != "") {
      option["description"] = TextOf(value);
    }
    list.push_back(std::move(option));
  }
  return out;
}

// The index of the option that a label names.
std::optional<size_t> PlaceOf(const std::string& type, const std::vector<std::string>& names,
                              const Json& label) {
  if (type == "score" && !label.is_string()) {
    const auto level = JsonInt(label);
    if (!level || *level < 0 || *level >= std::ssize(names)) return std::nullopt;
    return static_cast<size_t>(*level);
  }
  std::string text = TextOf(label);
  if (type == "noul") {
    if (label.is_boolean()) text = label.get<bool>() ? "true" : "false";
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (text == "yes" || text == "1") text = "true";
    if (text == "no" || text == "0") text = "false";
  }
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

// The index of the most likely option by soft labels, which are an object keyed by option or by a
// level's number.
std::optional<size_t> PlaceOfGold(const std::string& type, const std::vector<std::string>& names,
                                  const Json& gold) {
  if (!gold.is_object()) return std::nullopt;
  const Json& by_name = gold.contains("probabilities") ? gold["probabilities"] : gold;
  if (!by_name.is_object()) return std::nullopt;
  std::optional<size_t> best;
  double most = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = by_name.find(type == "score" ? std::to_string(i) : names[i]);
    if (found == by_name.end() || !found->is_number() || found->get<double>() <= most) continue;
    most = found->get<double>();
    best = i;
  }
  return best;
}

Json AnswerValue(const std::string& type, const std::vector<std::string>& names, size_t place) {
  if (type == "noul") return place == 1;
  return type == "score" ? Json(place) : Json(names[place]);
}

// The answer that a row has for a question; null if it has none.
Result<Json> RowLabelOf(const Json& row, const std::string& id, const Json& question) {
  const std::string type = question.value("type", "");
  const std::vector<std::string> names = NamesOf(type, question.value("criteria", Json()));
  for (const char* member : {"expected", "gold"}) {
    const auto labels = row.find(member);
    if (labels == row.end() || !labels->is_object() || !labels->contains(id)) continue;
    const Json& label = (*labels)[id];
    const bool gold = std::string(member) == "gold";
    const auto place = gold ? PlaceOfGold(type, names, label) : PlaceOf(type, names, label);
    if (place) return AnswerValue(type, names, *place);
    return RowError(std::string(member) + "." + id,
                    gold ? "an object of the options' probabilities"
                         : "an option, a level's number or text, or true or false",
                    label);
  }
  if (!question.contains("label")) return Json();
  const auto place = PlaceOf(type, names, question["label"]);
  if (place) return AnswerValue(type, names, *place);
  return RowError("questions." + id + ".label",
                  "an option, a level's number or text, or true or false", question["label"]);
}

}  // namespace

bool IsLabelledRow(const Json& line) {
  return line.is_object() && line.contains("state") && line.contains("questions");
}

Result<std::vector<Json>> ItemsOfRow(const Json& row, size_t number) {
  const Json& questions = row["questions"];
  if (!questions.is_object() || questions.empty()) {
    return RowError("questions", "an object of questions by their ids", questions);
  }
  std::vector<Json> items;
  for (const auto& [id, question] : questions.items()) {
    const std::string field = "questions." + id;
    if (!question.is_object()) return RowError(field, "an object", question);
    SKEIN_ASSIGN_OR_RETURN(Json asked, QuestionOf(question, field));
    SKEIN_ASSIGN_OR_RETURN(Json answer, RowLabelOf(row, id, question));
    if (answer.is_null()) continue;
    items.push_back({{"id", fmt::format("line-{}/{}", number, id)},
                     {"task", id},
                     {"input", TextOf(row["state"])},
                     {"question", std::move(asked)},
                     {"answer", std::move(answer)}});
  }
  if (!items.empty()) return items;
  return Status(StatusCode::kInvalidArgument,
                "expected must be an object with the answer to a question, by its id", "expected");
}

}  // namespace skein
