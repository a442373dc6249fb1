#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "apps/host/help.h"
#include "apps/host/model_host.h"
#include "apps/source_dir.h"
#include "bench/bench_command.h"
#include "bench/quality/decision_profile_file.h"
#include "bench/quality/quality.h"
#include "bench/quality/quality_compare.h"
#include "bench/quality/quality_report.h"
#include "server/decisions/decision_method_names.h"
#include "server/local_routes.h"

namespace skein {
namespace {

// The environment variable for a data file that replaces the one in the source tree.
constexpr char kDataVariable[] = "SKEIN_QUALITY_DATA";

struct QualityBenchOptions {
  ModelHostOptions model;
  std::string data;
  std::string methods;
  std::string json;
  std::string plot;
  std::vector<std::string> beside;
  QualityLoad load;
  int32_t limit = 0;
  bool no_flips = false;
  bool write = false;
};

std::string DataPath(const QualityBenchOptions& options) {
  if (!options.data.empty()) return options.data;
  const char* path = std::getenv(kDataVariable);
  return path != nullptr && *path != '\0' ? path : SourceDir() + "/bench/quality/items.jsonl";
}

Result<std::vector<QualityItem>> LoadItems(const QualityBenchOptions& options,
                                           const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Status(StatusCode::kNotFound,
                  fmt::format("there is no file {}: name one of labelled items with --data or {}",
                              path, kDataVariable),
                  "data");
  }
  SKEIN_ASSIGN_OR_RETURN(std::vector<QualityItem> items, LoadQualityItems(path));
  if (options.limit > 0) LimitQualityItems(options.limit, &items);
  return items;
}

// Shows a line on stderr; on a terminal it replaces the previous line.
void ShowProgress(const std::string& text) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal && text.empty()) return;
  std::fputs(fmt::format("{}{}{}", terminal ? "\r\033[K" : "", text, terminal ? "" : "\n").c_str(),
             stderr);
}

Result<QualityResults> Measure(const QualityBenchOptions& options,
                               const std::vector<QualityItem>& items, const MethodFilter& filter,
                               ModelHost* host) {
  LocalRoutes routes(RegistryOf(*host));
  const QualityAsk ask = [&](const std::string& path, std::string body,
                             std::function<void(HttpResponse)> done) {
    routes.Post(path, std::move(body), std::move(done));
  };
  QualityLoad load = options.load;
  load.reverse_choices = !options.no_flips;
  QualityResults results;
  for (const QualityType type : kQualityTypes) {
    const auto of_type = [&](const QualityItem& item) { return item.type == type; };
    if (std::ranges::none_of(items, of_type)) continue;
    const std::vector<QualityMethod> methods = Filtered(
        QualityMethodsFor(host->decision_entry().traits, host->chat_template() != nullptr, type),
        filter);
    for (const QualityMethod& method : methods) {
      ShowProgress(fmt::format("asking: {}, {}", NameOf(type), method.name()));
      SKEIN_ASSIGN_OR_RETURN(QualityRun run,
                             RunQuality(items, type, method, load, host->clock(), ask));
      results.summaries.push_back(Summarize(items, run));
      results.runs.push_back(std::move(run));
    }
    const auto best = ChooseBest(results.runs, results.summaries, type);
    if (best) results.chosen.push_back(*best);
  }
  ShowProgress("");
  if (!results.runs.empty()) return results;
  return Status(StatusCode::kInvalidArgument,
                "none of the methods \"" + options.methods + "\" fits the model and the items",
                "methods");
}

// Rounds to four decimals: some hundred items do not justify more.
double Rounded(double value) { return std::round(value * 1e4) / 1e4; }
PlattScale Rounded(const PlattScale& c) { return {Rounded(c.temperature), Rounded(c.offset)}; }

DecisionProfile ChosenProfile(const QualityResults& results, DecisionProfile profile) {
  for (const size_t i : results.chosen) {
    profile = WithMethod(profile, results.runs[i], Rounded(results.summaries[i].calibration));
  }
  return profile;
}

// Reports methods whose fitted temperature is at the end of the range. There a temperature only
// flattens the probabilities, which are wrong for another reason than being too sharp. The order of
// the answers stays the same.
void TellFlatMethods(const QualityResults& results) {
  for (const size_t i : results.chosen) {
    if (Rounded(results.summaries[i].calibration.temperature) < kFitTemperatureMax) continue;
    fmt::print(
        "\n{}: the best temperature is the highest that is tried, {}: no temperature makes the "
        "probabilities of {} fit. Use their order alone.\n",
        NameOf(results.runs[i].type), kFitTemperatureMax, results.runs[i].method.name());
  }
}

void TellExamples(const QualityBenchOptions& options, const QualityResults& results) {
  if (options.load.num_examples == 0) return;
  int64_t fewer = 0;
  int64_t all = 0;
  for (size_t i = 0; i < results.runs.size(); ++i) {
    if (results.runs[i].type == QualityType::kRelevance) continue;
    for (const QualityAnswer& answer : results.runs[i].answers) {
      ++all;
      if (answer.num_examples < options.load.num_examples) ++fewer;
    }
  }
  fmt::print(
      "\n{} examples before each question; {} of {} questions had fewer: their tasks have no more "
      "of the same wording.\n",
      options.load.num_examples, fewer, all);
}

Status WritePlot(const std::string& path, const QualityResults& results) {
  if (path.empty()) return Status::Ok();
  std::ofstream file(path);
  file << ReliabilitySvg(ReliabilityPanels(results));
  file.flush();
  if (file) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, "plot: " + path + " cannot be written", "plot");
}

Status WriteProfile(const DecisionProfile& profile, const ModelHost& host) {
  SKEIN_ASSIGN_OR_RETURN(
      const WrittenProfile written,
      WriteDecisionProfile(profile, host.decision_dir(), host.decision_entry().name()));
  fmt::print("written to {}\n", written.path);
  if (!written.backup.empty()) fmt::print("the former file is now {}\n", written.backup);
  if (!written.shadow.empty()) {
    fmt::print("it has no effect while there is {}, which cannot be written\n", written.shadow);
  }
  return Status::Ok();
}

void TellProfile(const Json& profile) {
  fmt::print(
      "\nThe best methods, calibrated on all items; a type that was not measured stays as it was:"
      "\n{}\n",
      profile.dump(2));
}

// Refuses options that a decision model does not take: it has only one method, and its own
// temperatures.
Status CheckDecisionModel(const QualityBenchOptions& options, const ModelTraits& traits) {
  if (!traits.decision_model) return Status::Ok();
  const char* option = options.write                   ? "--write"
                       : !options.methods.empty()      ? "--methods"
                       : options.load.num_examples > 0 ? "--examples"
                                                       : nullptr;
  if (option == nullptr) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} is for language models; the model is a decision model, which "
                            "answers with its head alone",
                            option),
                option);
}

Status RunQualityBench(const QualityBenchOptions& options) {
  // The table shows small label masses, so warnings of them are off.
  spdlog::set_level(spdlog::level::err);
  SKEIN_ASSIGN_OR_RETURN(const MethodFilter filter, ParseMethodFilter(options.methods));
  const std::string path = DataPath(options);
  SKEIN_ASSIGN_OR_RETURN(const std::vector<QualityItem> items, LoadItems(options, path));
  std::vector<Json> beside;
  for (const std::string& file : options.beside) {
    SKEIN_ASSIGN_OR_RETURN(Json result, LoadQualityResult(file));
    beside.push_back(std::move(result));
  }
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host, ModelHost::Load(options.model));
  SKEIN_RETURN_IF_ERROR(CheckDecisionModel(options, host->entry().traits));
  const DecisionProfile former = host->decision_entry().traits.decisions;
  SKEIN_ASSIGN_OR_RETURN(const QualityResults results, Measure(options, items, filter, host.get()));
  host->Shutdown(kShutdownUs);
  fmt::print("{}: {} items of {}\n{}", host->decision_entry().name(), items.size(), path,
             QualityTables(items, results));
  TellExamples(options, results);
  TellFlatMethods(results);
  const DecisionProfile profile = ChosenProfile(results, former);
  const Json profile_json = DecisionProfileJson(profile);
  if (!host->entry().traits.decision_model) TellProfile(profile_json);
  Json json = {{"date", BenchDate()},
               {"model_id", host->decision_entry().name()},
               {"data", path},
               {"examples", options.load.num_examples},
               {"profile", profile_json}};
  json.update(QualityJson(items, results));
  if (!beside.empty()) {
    beside.insert(beside.begin(), json);
    fmt::print("{}", CompareTables(beside));
  }
  SKEIN_RETURN_IF_ERROR(WriteBenchJson(options.json, json));
  SKEIN_RETURN_IF_ERROR(WritePlot(options.plot, results));
  if (!options.write) return Status::Ok();
  if (results.chosen.empty()) {
    return Status(StatusCode::kInvalidArgument, "--write: the model answered no item", "--write");
  }
  return WriteProfile(profile, *host);
}

}  // namespace

void AddBenchQualityCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<QualityBenchOptions>();
  CLI::App* app =
      bench->add_subcommand("quality",
                            "Measure how often a model's decisions are right; of a "
                            "language model by reading and prompt, and choose the best");
  AddModelHostOptions(app, &options->model);
  app->add_option(
      "--data", options->data,
      "Labelled items, one JSON object a line (bench/quality/README.md); default: those "
      "of the source tree");
  app->add_option("--methods", options->methods,
                  "Methods to measure, as READING or READING/PROMPT with commas between them, such "
                  "as words+calibrated/cue,letters; default: all that fit the model");
  app->add_option("--examples", options->load.num_examples,
                  "Labelled examples put before each question, of the other half of its task")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app->add_option("--limit", options->limit, "At most so many items of each task; 0: all")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app->add_option("--window", options->load.window, "Requests in flight, at most")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app->add_flag("--no-flips", options->no_flips,
                "Do not ask choices again with their options reversed");
  app->add_flag("--write", options->write,
                "Write the best methods where the server reads them: skein.decisions.json beside "
                "the model, or the user's own configuration");
  app->add_option("--plot", options->plot, "Write a reliability plot of the best methods, as SVG");
  app->add_option("--beside", options->beside,
                  "Results of other models, as --json wrote them: a table shows all side by side");
  AddJsonOption(app, &options->json);
  ShowFirst(app, {"--data", "--methods", "--examples", "--limit", "--window", "--no-flips",
                  "--write", "--plot", "--beside", "--json"});
  RunOnBench(app, options, exit_status, RunQualityBench);
}

}  // namespace skein
