#include "bench/quality/quality_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace skein {
namespace {

std::string Cell(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}

// A figure before calibration and, after an arrow, the same figure with calibration.
std::string Pair(const std::optional<double>& before, const std::optional<double>& after) {
  return before ? Cell(before, 3) + " > " + Cell(after, 3) : "-";
}

// The accuracy and, after an arrow, the accuracy with the calibrated offset if there is one.
std::string AccuracyCell(const QualityFigures& f) {
  return f.accuracy_calibrated ? Pair(f.accuracy, f.accuracy_calibrated) : Cell(f.accuracy, 3);
}

bool IsChosen(const QualityResults& results, size_t run) {
  return std::ranges::find(results.chosen, run) != results.chosen.end();
}

// The header of a table. It contains the figures of chance if some method answered.
std::string Header(const QualityResults& results, QualityType type) {
  const bool ranks = type == QualityType::kRelevance;
  size_t first = results.runs.size();
  for (size_t i = results.runs.size(); i-- > 0;) {
    if (results.runs[i].type != type) continue;
    const bool known = first < results.runs.size() && results.summaries[first].figures.items > 0;
    if (!known || results.summaries[i].figures.items > 0) first = i;
  }
  const QualityFigures& figures = results.summaries[first].figures;
  const size_t num_tasks = results.summaries[first].tasks.size();
  std::string text =
      fmt::format("\n{}: {} items of {} {}", NameOf(type), results.runs[first].items.size(),
                  num_tasks, num_tasks == 1 ? "task" : "tasks");
  if (figures.items > 0) {
    text += fmt::format(", {} by chance {:.3f}", ranks ? "first right" : "accuracy",
                        figures.chance_accuracy);
  }
  if (figures.chance_mrr) text += fmt::format(", MRR by chance {:.3f}", *figures.chance_mrr);
  return text + fmt::format("\n  {:<34}{:>16}{:>7}{:>16}{:>16}{:>7}{:>9}{:>7}{:>8}{:>8}\n",
                            "reading/prompt", ranks ? "first" : "accuracy", "AUC", "ECE > at T",
                            "NLL > at T", "T",
                            ranks                         ? "MRR"
                            : type == QualityType::kScore ? "off by"
                                                          : "flips",
                            "mass", "tokens", "ms");
}

std::string Row(const QualityRun& run, const QualitySummary& summary, bool chosen) {
  const QualityFigures& f = summary.figures;
  const std::string name = (chosen ? "* " : "  ") + run.method.name();
  if (f.items == 0) return fmt::format("{:<36}refused\n", name);
  const std::optional<double> own = run.type == QualityType::kRelevance ? f.mrr
                                    : run.type == QualityType::kScore   ? f.level_error_calibrated
                                                                        : f.flips;
  std::string row = fmt::format(
      "{:<36}{:>16}{:>7}{:>16}{:>16}{:>7}{:>9}{:>7}{:>8.0f}{:>8.1f}", name, AccuracyCell(f),
      Cell(f.auc, 3), Pair(f.calibration_error, f.calibration_error_calibrated),
      Pair(f.cross_entropy, f.cross_entropy_calibrated),
      run.method.probabilities ? fmt::format("{:.2f}", summary.calibration.temperature) : "-",
      Cell(own, 3), Cell(f.label_mass, 3), f.input_tokens, run.ms_per_item);
  if (f.refused > 0) row += fmt::format("  {} refused", f.refused);
  return row + "\n";
}

constexpr size_t kMostConfusedLabels = 12;  // a terminal cannot show a larger table

std::string ConfusionTable(const std::string& task, const Confusion& confusion) {
  if (confusion.labels.size() > kMostConfusedLabels) {
    return fmt::format("\n  {}: {} labels; --json has the table\n", task, confusion.labels.size());
  }
  const auto cut = [](const std::string& label) { return label.substr(0, 11); };
  std::string text = fmt::format("\n  {:<22}", task + ", right:");
  for (const std::string& label : confusion.labels) text += fmt::format("{:>12}", cut(label));
  for (size_t i = 0; i < confusion.labels.size(); ++i) {
    text += fmt::format("\n  {:<22}", cut(confusion.labels[i]));
    for (const int64_t count : confusion.counts[i]) text += fmt::format("{:>12}", count);
  }
  return text + "\n";
}

// Tables of the confusions and the thresholds of the chosen methods.
std::string ServedTables(const QualityResults& results) {
  std::string confusions, thresholds;
  for (const size_t i : results.chosen) {
    const QualitySummary& summary = results.summaries[i];
    for (const auto& [task, confusion] : summary.confusions) {
      confusions += ConfusionTable(task, confusion);
    }
    for (const AnswerThreshold& t : summary.thresholds) {
      thresholds += t.threshold ? fmt::format("  {:<12}{:>9.2f}{:>12.4f}{:>10.3f}{:>10.3f}\n",
                                              NameOf(results.runs[i].type), t.target, *t.threshold,
                                              t.coverage, t.accuracy)
                                : fmt::format("  {:<12}{:>9.2f}{:>12}\n",
                                              NameOf(results.runs[i].type), t.target, "none");
    }
  }
  std::string text;
  if (!confusions.empty()) text += "\nright answers by row, given ones by column\n" + confusions;
  if (!thresholds.empty()) {
    text += fmt::format("\n  {:<12}{:>9}{:>12}{:>10}{:>10}\n", "type", "wanted", "threshold",
                        "answered", "right") +
            thresholds;
  }
  return text;
}

// Lists the first refusal of each run that has one.
std::string Refusals(const std::vector<QualityItem>& items, const QualityResults& results) {
  std::string text;
  for (const QualityRun& run : results.runs) {
    const auto refused = [](const QualityAnswer& answer) { return !answer.refusal.empty(); };
    const auto first = std::ranges::find_if(run.answers, refused);
    if (first == run.answers.end()) continue;
    const auto place = static_cast<size_t>(first - run.answers.begin());
    text += fmt::format("{} {} refused {} of {}: {}: {}\n", NameOf(run.type), run.method.name(),
                        std::ranges::count_if(run.answers, refused), run.answers.size(),
                        items[run.items[place]].id, first->refusal);
  }
  return text.empty() ? text : "\nrefused:\n" + text;
}

Json OptionalJson(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json PlattScaleJson(const PlattScale& calibration) {
  return {{"temperature", calibration.temperature}, {"offset", calibration.offset}};
}

Json FiguresJson(const QualityFigures& f) {
  Json json = {{"items", f.items},
               {"refused", f.refused},
               {"accuracy", f.accuracy},
               {"chance_accuracy", f.chance_accuracy},
               {"input_tokens", f.input_tokens}};
  const std::pair<const char*, const std::optional<double>*> members[] = {
      {"accuracy_calibrated", &f.accuracy_calibrated},
      {"auc", &f.auc},
      {"brier", &f.brier},
      {"brier_calibrated", &f.brier_calibrated},
      {"calibration_error", &f.calibration_error},
      {"calibration_error_calibrated", &f.calibration_error_calibrated},
      {"cross_entropy", &f.cross_entropy},
      {"cross_entropy_calibrated", &f.cross_entropy_calibrated},
      {"level_error", &f.level_error},
      {"level_error_calibrated", &f.level_error_calibrated},
      {"flips", &f.flips},
      {"mrr", &f.mrr},
      {"chance_mrr", &f.chance_mrr},
      {"label_mass", &f.label_mass}};
  for (const auto& [name, value] : members) json[name] = OptionalJson(*value);
  return json;
}

Json BinsJson(const std::vector<ReliabilityBin>& bins) {
  Json json = Json::array();
  for (const ReliabilityBin& bin : bins) {
    json.push_back({{"count", bin.count},
                    {"mean_confidence", bin.mean_confidence},
                    {"accuracy", bin.accuracy}});
  }
  return json;
}

Json ConfusionsJson(const QualitySummary& summary) {
  Json json = Json::object();
  for (const auto& [task, confusion] : summary.confusions) {
    json[task] = {{"labels", confusion.labels}, {"counts", confusion.counts}};
  }
  return json;
}

Json ThresholdsJson(const QualitySummary& summary) {
  Json json = Json::array();
  for (const AnswerThreshold& threshold : summary.thresholds) {
    json.push_back({{"target_accuracy", threshold.target},
                    {"threshold", OptionalJson(threshold.threshold)},
                    {"coverage", threshold.coverage},
                    {"accuracy", threshold.accuracy}});
  }
  return json;
}

Json AnswersJson(const std::vector<QualityItem>& items, const QualityRun& run) {
  Json json = Json::array();
  for (size_t i = 0; i < run.items.size(); ++i) {
    const QualityAnswer& answer = run.answers[i];
    Json entry = {{"id", items[run.items[i]].id}};
    if (!answer.refusal.empty()) {
      entry["refusal"] = answer.refusal;
    } else {
      const bool ranks = run.type == QualityType::kRelevance;
      entry[ranks ? "scores" : "probabilities"] = answer.probabilities;
      if (answer.label_mass) entry["label_mass"] = *answer.label_mass;
      if (answer.flipped) entry["flipped"] = *answer.flipped;
      entry["input_tokens"] = answer.input_tokens;
      if (answer.num_examples > 0) entry["examples"] = answer.num_examples;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

Json ItemsJson(const std::vector<QualityItem>& items) {
  Json json = Json::array();
  for (const QualityItem& item : items) {
    Json entry = {
        {"id", item.id}, {"task", item.task}, {"type", NameOf(item.type)}, {"half", item.half}};
    if (item.type == QualityType::kRelevance) {
      entry["documents"] = item.documents.size();
      entry["relevant"] = item.relevant;
    } else {
      entry["labels"] = item.labels;
      entry["answer"] = item.answer;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::string QualityTables(const std::vector<QualityItem>& items, const QualityResults& results) {
  std::string text;
  for (const QualityType type : kQualityTypes) {
    bool begun = false;
    for (size_t i = 0; i < results.runs.size(); ++i) {
      const QualityRun& run = results.runs[i];
      if (run.type != type) continue;
      const QualitySummary& summary = results.summaries[i];
      if (!begun) text += Header(results, type);
      begun = true;
      text += Row(run, summary, IsChosen(results, i));
    }
  }
  text += fmt::format(
      "\n* the least cross-entropy (NLL) at T of the methods within {} of the best accuracy or "
      "MRR, "
      "then the fewest tokens\n> at T: each half of the items at the temperature (of predicates "
      "and relevance, also the offset) that fits the other half; T fits all of them\n",
      kChoiceMargin);
  if (!results.chosen.empty()) {
    text += fmt::format("\n  {:<34}{:>16}{:>9}{:>7}{:>16}\n", "chosen, by task", "accuracy",
                        "chance", "AUC", "ECE > at T");
  }
  for (const size_t i : results.chosen) {
    for (const auto& [task, f] : results.summaries[i].tasks) {
      text += fmt::format("  {:<34}{:>16}{:>9.3f}{:>7}{:>16}\n", task, AccuracyCell(f),
                          f.chance_accuracy, Cell(f.auc, 3),
                          Pair(f.calibration_error, f.calibration_error_calibrated));
    }
  }
  return text + ServedTables(results) + Refusals(items, results);
}

Json QualityJson(const std::vector<QualityItem>& items, const QualityResults& results) {
  Json json;
  json["items"] = ItemsJson(items);
  json["methods"] = Json::array();
  for (size_t i = 0; i < results.runs.size(); ++i) {
    const QualityRun& run = results.runs[i];
    const QualitySummary& summary = results.summaries[i];
    Json entry = {{"type", NameOf(run.type)},
                  {"method", run.method.name()},
                  {"chosen", IsChosen(results, i)},
                  {"calibration", PlattScaleJson(summary.calibration)},
                  {"half_calibrations",
                   {PlattScaleJson(summary.half_calibrations[0]),
                    PlattScaleJson(summary.half_calibrations[1])}},
                  {"ms_per_item", run.ms_per_item},
                  {"figures", FiguresJson(summary.figures)},
                  {"tasks", Json::object()},
                  {"bins", BinsJson(summary.bins)},
                  {"bins_calibrated", BinsJson(summary.bins_calibrated)},
                  {"confusion", ConfusionsJson(summary)},
                  {"thresholds", ThresholdsJson(summary)}};
    for (const auto& [task, figures] : summary.tasks) entry["tasks"][task] = FiguresJson(figures);
    entry["answers"] = AnswersJson(items, run);
    json["methods"].push_back(std::move(entry));
  }
  return json;
}

std::vector<ReliabilityPanel> ReliabilityPanels(const QualityResults& results) {
  std::vector<ReliabilityPanel> panels;
  for (const size_t i : results.chosen) {
    const QualityRun& run = results.runs[i];
    if (!run.method.probabilities) continue;
    panels.push_back({fmt::format("{}: {}", NameOf(run.type), run.method.name()),
                      results.summaries[i].bins, results.summaries[i].bins_calibrated});
  }
  return panels;
}

}  // namespace skein
