#include "bench/quality/quality_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "apps/read_file.h"
#include "apps/read_json.h"
#include "base/check.h"
#include "bench/quality/labelled_rows.h"
#include "server/json/field_reader.h"

namespace skein {
namespace {

constexpr uint64_t kHalvesSeed = 0x5ce11;

// FNV-1a, then the finaliser of SplitMix64, which spreads ids that differ only in their last digit.
uint64_t HashOf(const std::string& id) {
  uint64_t hash = 14695981039346656037ull ^ kHalvesSeed;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ull;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebull;
  return hash ^ (hash >> 31);
}

std::string LabelOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : DumpJson(value);
}

// Reads the names of the options in `list`, an array of objects, from their member `name`.
Status ReadLabels(const Json& question, const std::string& list, const std::string& name,
                  QualityItem* item) {
  const Json* options = FieldReader(question).Find(list);
  if (options == nullptr || !options->is_array() || options->size() < 2) {
    return FieldError("question." + list, "an array of at least two objects");
  }
  for (size_t i = 0; i < options->size(); ++i) {
    const std::string field = fmt::format("question.{}[{}].{}", list, i, name);
    const Json& option = (*options)[i];
    const Json* value = option.is_object() ? FieldReader(option).Find(name) : nullptr;
    if (value == nullptr || !(value->is_string() || value->is_boolean())) {
      return FieldError(field, "a string");
    }
    item->labels.push_back(LabelOf(*value));
  }
  return Status::Ok();
}

Status ReadAnswer(const Json& answer, QualityItem* item) {
  if (item->type == QualityType::kPredicate) {
    if (!answer.is_boolean()) return FieldError("answer", "true or false");
    item->answer = answer.get<bool>() ? 0 : 1;
  } else if (item->type == QualityType::kScore) {
    const auto level = JsonInt(answer);
    if (!level || *level < 0 || *level >= static_cast<int64_t>(item->labels.size())) {
      return FieldError("answer", fmt::format("a level from 0 to {}, got {}",
                                              item->labels.size() - 1, DumpJson(answer)));
    }
    item->answer = static_cast<size_t>(*level);
  } else {
    const auto found = std::ranges::find(item->labels, LabelOf(answer));
    if (found == item->labels.end()) {
      return FieldError("answer", "one of the choices' values, got " + DumpJson(answer));
    }
    item->answer = static_cast<size_t>(found - item->labels.begin());
  }
  item->answer_value = answer;
  return Status::Ok();
}

Status ReadQuestion(const Json& line, QualityItem* item) {
  FieldReader reader(line);
  const Json* question = reader.Object("question");
  if (question == nullptr) return FieldError("question", "an object");
  const Json* input = reader.Find("input");
  if (input == nullptr || !(input->is_string() || input->is_array())) {
    return FieldError("input", "a string or an array of messages");
  }
  const Json* answer = reader.Find("answer");
  if (answer == nullptr) return FieldError("answer", "given");
  item->question = *question;
  item->input = *input;
  const std::string type = FieldReader(*question).String("type").value_or("");
  if (type == "predicate") {
    item->type = QualityType::kPredicate;
    item->labels = {"true", "false"};
  } else if (type == "choice") {
    item->type = QualityType::kChoice;
    SKEIN_RETURN_IF_ERROR(ReadLabels(*question, "choices", "value", item));
  } else if (type == "score") {
    item->type = QualityType::kScore;
    SKEIN_RETURN_IF_ERROR(ReadLabels(*question, "levels", "label", item));
  } else {
    return FieldError("question.type", "\"predicate\", \"choice\" or \"score\"");
  }
  return ReadAnswer(*answer, item);
}

Status ReadRelevance(const Json& line, QualityItem* item) {
  item->type = QualityType::kRelevance;
  FieldReader reader(line);
  item->query = reader.String("query").value_or("");
  if (item->query.empty()) return FieldError("query", "a string that is not empty");
  const Json* documents = reader.Find("documents");
  if (documents == nullptr || !documents->is_array() || documents->size() < 2) {
    return FieldError("documents", "an array of at least two strings");
  }
  for (const Json& document : *documents) {
    if (!document.is_string()) return FieldError("documents", "an array of at least two strings");
    item->documents.push_back(document.get<std::string>());
  }
  const Json* answer = reader.Find("answer");
  const std::string allowed = fmt::format(
      "an array of at least one place of a document, from 0 to {}", item->documents.size() - 1);
  if (answer == nullptr || !answer->is_array() || answer->empty())
    return FieldError("answer", allowed);
  std::set<size_t> relevant;
  for (const Json& value : *answer) {
    const auto index = JsonInt(value);
    if (!index || *index < 0 || *index >= static_cast<int64_t>(item->documents.size())) {
      return FieldError("answer", allowed + ", got " + DumpJson(value));
    }
    relevant.insert(static_cast<size_t>(*index));
  }
  item->relevant.assign(relevant.begin(), relevant.end());
  return Status::Ok();
}

Result<QualityItem> ReadItem(const Json& json, size_t number) {
  QualityItem item;
  FieldReader reader(json);
  item.id = reader.String("id").value_or(fmt::format("line-{}", number));
  item.task = reader.String("task").value_or("all");
  SKEIN_RETURN_IF_ERROR(reader.status());
  SKEIN_RETURN_IF_ERROR(reader.Has("query") ? ReadRelevance(json, &item)
                                            : ReadQuestion(json, &item));
  return item;
}

// The items of a line, which is an item or a labelled row.
Result<std::vector<QualityItem>> ParseItems(const std::string& line, size_t number) {
  std::string why;
  const std::optional<Json> json = ParseJson(line, &why);
  if (!json) return Status(StatusCode::kInvalidArgument, "not JSON: " + why);
  if (!json->is_object()) return Status(StatusCode::kInvalidArgument, "must be a JSON object");
  std::vector<Json> objects = {*json};
  if (IsLabelledRow(*json)) {
    SKEIN_ASSIGN_OR_RETURN(objects, ItemsOfRow(*json, number));
  }
  std::vector<QualityItem> items;
  for (const Json& object : objects) {
    SKEIN_ASSIGN_OR_RETURN(QualityItem item, ReadItem(object, number));
    items.push_back(std::move(item));
  }
  return items;
}

Status CheckItems(const std::vector<QualityItem>& items, std::set<std::string>* ids,
                  std::map<std::string, QualityType>* type_of) {
  for (const QualityItem& item : items) {
    if (!ids->insert(item.id).second) return FieldError("id", "unlike all before it");
    if (type_of->emplace(item.task, item.type).first->second == item.type) continue;
    return FieldError("task", fmt::format("of one type: \"{}\" was of another before", item.task));
  }
  return Status::Ok();
}

// The items of each task, sorted by their hashes.
std::map<std::string, std::vector<size_t>> OrderByHash(const std::vector<QualityItem>& items) {
  std::map<std::string, std::vector<size_t>> tasks;
  for (size_t i = 0; i < items.size(); ++i) tasks[items[i].task].push_back(i);
  for (auto& [task, order] : tasks) {
    std::ranges::sort(order, {}, [&](size_t i) { return std::pair(HashOf(items[i].id), i); });
  }
  return tasks;
}

void SplitInHalves(std::vector<QualityItem>* items) {
  for (const auto& [task, order] : OrderByHash(*items)) {
    for (size_t place = 0; place < order.size(); ++place) {
      (*items)[order[place]].half = static_cast<int>(place % 2);
    }
  }
}

bool SameQuestion(const QualityItem& a, const QualityItem& b) {
  if (a.type != b.type || a.task != b.task) return false;
  const Json* one = FieldReader(a.question).Find("instructions");
  const Json* other = FieldReader(b.question).Find("instructions");
  if (one == nullptr || other == nullptr || *one != *other) return false;
  return std::multiset<std::string>(a.labels.begin(), a.labels.end()) ==
         std::multiset<std::string>(b.labels.begin(), b.labels.end());
}

}  // namespace

const char* NameOf(QualityType type) {
  switch (type) {
    case QualityType::kPredicate:
      return "predicate";
    case QualityType::kChoice:
      return "choice";
    case QualityType::kScore:
      return "score";
    case QualityType::kRelevance:
      return "relevance";
  }
  return "";
}

Result<std::vector<QualityItem>> ParseQualityItems(const std::string& text,
                                                   const std::string& name) {
  std::vector<QualityItem> items;
  std::map<std::string, QualityType> type_of;  // the type of each task
  std::set<std::string> ids;
  std::istringstream lines(text);
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<std::vector<QualityItem>> parsed = ParseItems(line, number);
    Status status = parsed.status();
    if (status.ok()) status = CheckItems(*parsed, &ids, &type_of);
    if (!status.ok()) {
      return Status(status.code(), fmt::format("{}:{}: {}", name, number, status.message()),
                    status.param());
    }
    for (QualityItem& item : *parsed) items.push_back(std::move(item));
  }
  if (items.empty()) return Status(StatusCode::kInvalidArgument, name + " has no items");
  SplitInHalves(&items);
  return items;
}

Result<std::vector<QualityItem>> LoadQualityItems(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseQualityItems(text, path);
}

void LimitQualityItems(int32_t count, std::vector<QualityItem>* items) {
  std::map<std::string, int32_t> kept;
  std::erase_if(*items, [&](const QualityItem& item) { return ++kept[item.task] > count; });
  SplitInHalves(items);
}

std::vector<size_t> ExamplesFor(const std::vector<QualityItem>& items, size_t index, size_t count) {
  const QualityItem& asked = items[index];
  if (asked.type == QualityType::kRelevance) return {};
  std::map<std::string, std::vector<size_t>> by_label;
  std::vector<size_t> order;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].half != asked.half && SameQuestion(items[i], asked)) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(HashOf(items[i].id), i); });
  for (const size_t i : order) by_label[items[i].labels[items[i].answer]].push_back(i);
  std::vector<size_t> examples;
  for (size_t round = 0; examples.size() < std::min(count, order.size()); ++round) {
    for (const auto& [label, candidates] : by_label) {
      if (round < candidates.size() && examples.size() < count) {
        examples.push_back(candidates[round]);
      }
    }
  }
  return examples;
}

Json ReversedQuestion(const Json& question) {
  Json reversed = question;
  SKEIN_CHECK(reversed.contains("choices") && reversed["choices"].is_array());
  std::reverse(reversed["choices"].begin(), reversed["choices"].end());
  return reversed;
}

}  // namespace skein
