#include "sched/record/recorder.h"

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sched/decode_set/stop_constants.h"
#include "sched/decode_set/stop_table.h"
#include "skein/choice_names.h"

namespace skein {
namespace {

// Writes `values` as a JSON array, each value by `write(value)`.
template <typename Range, typename Write>
std::string Array(const Range& values, const Write& write) {
  std::string text = "[";
  for (const auto& value : values) {
    if (text.size() > 1) text += ',';
    text += write(value);
  }
  return text + ']';
}

std::string Numbers(std::span<const TokenId> tokens) {
  return Array(tokens, [](TokenId token) { return fmt::format("{}", token); });
}

std::string NumberOrNull(std::optional<int64_t> number) {
  return number ? fmt::format("{}", *number) : "null";
}

// `text` may hold any bytes, so they are written as numbers.
std::string Bytes(std::string_view text) {
  std::string list;
  for (const char c : text) {
    list += fmt::format("{}{}", list.empty() ? "" : ",", static_cast<unsigned char>(c));
  }
  return list;
}

std::string Rows(const std::vector<PlanRow>& rows) {
  return Array(rows, [](const PlanRow& row) {
    std::string text =
        fmt::format("[{},{},{},{},{},{},{}", RequestOf(row.sequence), SampleOf(row.sequence),
                    row.begin, row.begin + std::ssize(row.tokens), row.draws.size(),
                    row.read != nullptr ? 1 : 0, row.prompt_logprobs.tokens.size());
    if (row.parent != 0) {
      text += fmt::format(",{},{}", RequestOf(row.parent), row.fork.num_tokens);
    }
    return text + ']';
  });
}

std::string Copies(const std::vector<BlockCopy>& copies) {
  return Array(copies,
               [](const BlockCopy& copy) { return fmt::format("[{},{}]", copy.from, copy.to); });
}

std::string HostCopies(std::span<const HostCopy> copies) {
  return Array(copies, [](const HostCopy& copy) {
    return fmt::format("[{},{},{}]", copy.block, copy.slot, copy.to_host ? 1 : 0);
  });
}

std::string PlanMembers(std::string_view name, const std::vector<BlockCopy>& copies,
                        const std::vector<PlanRow>& prefills, const std::vector<PlanRow>& decodes) {
  return fmt::format(R"("class":"{}","copies":{},"prefills":{},"decodes":{})", name, Copies(copies),
                     Rows(prefills), Rows(decodes));
}

std::string PlanMembers(const StepPlan& plan) {
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) {
    return PlanMembers("oneshot", {}, oneshot->rows, {});
  }
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) {
    return PlanMembers("decode", decode->copies, {}, decode->rows);
  }
  const auto& mixed = std::get<MixedPlan>(plan);
  return PlanMembers("mixed", mixed.copies, mixed.prefills, mixed.decodes);
}

std::string CostNumbers(const CostFit& fit) {
  return fmt::format("{},{},{},{}", fit.step_us, fit.token_us, fit.pair_us, fit.row_us);
}

std::string ChoiceMembers(const SchedulerConfig& config) {
  return fmt::format(
      R"("sharing":"{}","preempt_granularity":"{}","max_suspended_steps":{},)"
      R"("max_suspended_us":{},"decode_steps":"{}","max_decode_wait_us":{},"express_blocks":{},)"
      R"("decode_set":"{}","order":"{}","batching":"{}",)"
      R"("jct":"{}","aging":{},"cost":[{}],"execution":"{}","retention":"{}",)"
      R"("default_slo_us":{},"max_late_us":{},"slo_batch_tokens":{})",
      NameOf(config.policies.sharing), NameOf(config.policies.granularity),
      config.preemption.max_suspended_steps, config.preemption.max_suspended_us,
      NameOf(config.preemption.decode_steps), config.policies.max_decode_wait_us,
      ExpressBlocks(config), NameOf(config.policies.decode_set), NameOf(config.policies.order),
      NameOf(config.policies.batching), NameOf(config.jct.by), config.jct.aging,
      CostNumbers(config.cost), NameOf(config.policies.execution),
      NameOf(config.policies.retention), config.deadlines.default_slo_us,
      config.deadlines.max_late_us, config.deadlines.slo_batch_tokens);
}

std::string DecodeCost(const DecodeFit& fit) {
  return fmt::format("{},{},{},{},{},{}", fit.step_us, fit.row_us, fit.free_rows, fit.token_us,
                     fit.arithmetic_share, fit.cache_tokens);
}

// The learned table as JSON on one line.
std::string Learned(const SchedulerConfig& config) {
  if (config.prefix_groups.learned == nullptr) return "null";
  std::string text = config.prefix_groups.learned->ToJson();
  std::erase(text, '\n');
  return text;
}

}  // namespace

void SchedulerRecorder::OnStart(const SchedulerConfig& config) {
  *out_ << fmt::format(R"({{"event":"start",{},"num_kv_blocks":{},"num_host_kv_blocks":{},)"
                       R"("max_model_len":{},"max_num_seqs":{},"max_num_batched_tokens":{},)"
                       R"("num_adapters":{},"prefix_caching":{},"max_whole_prompt_len":{},)"
                       R"("force_decode_path":{},"forests":{},"max_prefix_wait_us":{},)"
                       R"("contiguous_kv":{},"dynamic_step_us":{},)"
                       R"("stop_rule":"{}","stop_constants":"{}",)"
                       R"("stop_seed":{},"stop_max_wait_us":{},"stop_max_wait_stretch":{},)"
                       R"("decode_cost":[{}],"stop_table":{}}})",
                       ChoiceMembers(config), config.num_kv_blocks, config.num_host_kv_blocks,
                       config.max_model_len, config.max_num_seqs, config.max_num_batched_tokens,
                       config.num_adapters, config.prefix_caching, config.max_whole_prompt_len,
                       config.force_decode_path, config.policies.forests, config.max_prefix_wait_us,
                       config.kv_storage == KvStorage::kContiguous, config.dynamic_step_us,
                       NameOf(config.prefix_groups.stop.rule),
                       StopConstants(config.prefix_groups.stop), config.prefix_groups.stop.seed,
                       config.prefix_groups.max_wait_us, config.prefix_groups.max_wait_stretch,
                       DecodeCost(config.decode_cost), Learned(config))
        << '\n';
}

void SchedulerRecorder::OnProfile(const CostFit& cost, const DecodeFit& decode_cost,
                                  TimeUs now_us) {
  *out_ << fmt::format(R"({{"event":"profile","t":{},"cost":[{}],"decode_cost":[{}]}})", now_us,
                       CostNumbers(cost), DecodeCost(decode_cost))
        << '\n';
}

void SchedulerRecorder::OnArrive(RequestId id, const Request& request, TimeUs now_us) {
  const GenerateSpec generate = request.generates() ? request.generate() : GenerateSpec{};
  constexpr const char* kOutputs[] = {"generate", "labels", "embedding", "classes"};
  *out_ << fmt::format(
               R"({{"event":"arrive","t":{},"id":{},"prompt":{},"output":"{}","max_tokens":{},)"
               R"("min_tokens":{},"stop_token_ids":{},"choices":{},"n":{},)"
               R"("prompt_logprob_start":{},)"
               R"("priority":{},"cache_salt":{},"adapter_id":{},"group":{},)"
               R"("parent_prefix_len":{},"slo_ttft_us":{},"slo_tpot_us":{},"user":[{}]}})",
               now_us, id, Numbers(request.prompt), kOutputs[request.output.index()],
               generate.max_tokens, generate.min_tokens, Numbers(generate.stop_token_ids),
               Array(generate.choices, Numbers), generate.num_samples,
               request.prompt_logprobs ? fmt::format("{}", request.prompt_logprobs->start) : "null",
               request.priority, request.cache_salt, request.adapter_id, request.group.id,
               request.group.parent_prefix_len, NumberOrNull(request.slo_ttft_us),
               NumberOrNull(request.slo_tpot_us), Bytes(request.user))
        << '\n';
}

void SchedulerRecorder::OnCancel(RequestId id, int32_t sample, TimeUs now_us) {
  *out_ << fmt::format(R"({{"event":"cancel","t":{},"id":{},"sample":{}}})", now_us, id, sample)
        << '\n';
}

void SchedulerRecorder::OnPlan(int64_t iteration, const StepPlan& plan, TimeUs now_us) {
  std::string members = PlanMembers(plan);
  if (const std::span<const HostCopy> copies = HostCopiesOf(plan); !copies.empty()) {
    members += fmt::format(R"(,"host_copies":{})", HostCopies(copies));
  }
  *out_ << fmt::format(R"({{"event":"plan","t":{},"iteration":{},{}}})", now_us, iteration, members)
        << '\n';
}

void SchedulerRecorder::OnPreempt(int64_t iteration, TimeUs now_us) {
  *out_ << fmt::format(R"({{"event":"preempt","t":{},"iteration":{}}})", now_us, iteration) << '\n';
}

void SchedulerRecorder::OnResume(int64_t iteration, TimeUs now_us) {
  *out_ << fmt::format(R"({{"event":"resume","t":{},"iteration":{}}})", now_us, iteration) << '\n';
}

void SchedulerRecorder::OnComplete(const StepResults& results, TimeUs now_us) {
  const std::string tokens = Array(results.draws, [](const DrawResult& result) {
    return result.finite ? fmt::format("{}", result.token.token) : std::string("null");
  });
  const auto finite = [](const auto& result) { return fmt::format("{}", result.finite); };
  *out_ << fmt::format(
               R"({{"event":"complete","t":{},"tokens":{},"reads":{},"prompt_logprobs":{}}})",
               now_us, tokens, Array(results.reads, finite), Array(results.prompt_logprobs, finite))
        << '\n';
}

}  // namespace skein
