#include "bench/quality/quality_compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/read_json.h"
#include "bench/quality/quality_items.h"

namespace skein {
namespace {

std::string Number(const Json& figures, const char* name) {
  const auto found = figures.find(name);
  if (found == figures.end() || !found->is_number()) return "-";
  return fmt::format("{:.3f}", found->get<double>());
}

// A figure of the model as it is served and, after an arrow, as calibrated.
std::string Both(const Json& figures, const std::string& name) {
  const std::string before = Number(figures, name.c_str());
  const std::string after = Number(figures, (name + "_calibrated").c_str());
  return after == "-" ? before : before + " > " + after;
}

std::string CompareRow(const Json& result, const Json& method) {
  const Json& figures = method["figures"];
  return fmt::format("  {:<28}{:<24}{:>16}{:>16}{:>16}{:>16}{:>8.1f}\n",
                     result.value("model_id", ""), method.value("method", ""),
                     Both(figures, "accuracy"), Both(figures, "brier"),
                     Both(figures, "calibration_error"), Both(figures, "cross_entropy"),
                     method.value("ms_per_item", 0.0));
}

// The table rows for one type.
std::string RowsOf(const std::vector<Json>& results, QualityType type) {
  std::string rows;
  for (const Json& result : results) {
    for (const Json& method : result["methods"]) {
      if (method.value("type", "") != NameOf(type) || !method.value("chosen", false)) continue;
      rows += CompareRow(result, method);
    }
  }
  return rows;
}

}  // namespace

Result<Json> LoadQualityResult(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(Json json, ReadJsonObject(path));
  const auto methods = json.find("methods");
  const bool is_result =
      methods != json.end() && methods->is_array() && json.value("model_id", Json()).is_string() &&
      std::ranges::all_of(*methods, [](const Json& method) {
        return method.is_object() && method.contains("figures") && method["figures"].is_object();
      });
  if (is_result) return json;
  return Status(StatusCode::kInvalidArgument,
                path + " is not what `skein bench quality --json` writes", "beside");
}

std::string CompareTables(const std::vector<Json>& results) {
  std::string text;
  for (const QualityType type : kQualityTypes) {
    const std::string rows = RowsOf(results, type);
    if (rows.empty()) continue;
    text += fmt::format("\n{}, side by side\n  {:<28}{:<24}{:>16}{:>16}{:>16}{:>16}{:>8}\n",
                        NameOf(type), "model", "method", "accuracy", "Brier > at T", "ECE > at T",
                        "NLL > at T", "ms");
    text += rows;
  }
  const Json data = results.front().value("data", Json());
  for (const Json& result : results) {
    if (result.value("data", Json()) == data) continue;
    text += fmt::format("{} was asked about other items: {}\n", result.value("model_id", ""),
                        result.value("data", ""));
  }
  return text;
}

}  // namespace skein
