#include "base/threads/processor_speeds.h"

#include <algorithm>
#include <functional>

#include "base/threads/sys_file.h"

namespace skein {
namespace {

std::vector<int32_t> AllProcessors(const std::vector<NumaNode>& nodes) {
  std::vector<int32_t> all;
  for (const NumaNode& node : nodes) {
    all.insert(all.end(), node.processors.begin(), node.processors.end());
  }
  return all;
}

bool Contains(const std::vector<int32_t>& processors, int32_t processor) {
  return std::ranges::find(processors, processor) != processors.end();
}

std::string CpuFolder(const std::string& folder, int32_t processor) {
  return folder + "/system/cpu/cpu" + std::to_string(processor);
}

// 0 where a processor has none.
std::vector<float> Capacities(const std::vector<int32_t>& processors, const std::string& folder) {
  std::vector<float> capacities;
  for (const int32_t processor : processors) {
    const std::vector<int32_t> number =
        ParseCpuList(FirstLineOf(CpuFolder(folder, processor) + "/cpu_capacity"));
    capacities.push_back(number.size() == 1 ? static_cast<float>(number[0]) : 0.0f);
  }
  return capacities;
}

// The speeds by the two kinds of processors; all 1 unless both kinds are there, on cores of their
// own.
std::vector<float> SpeedsOfKinds(const std::vector<int32_t>& processors,
                                 const std::string& folder) {
  const std::vector<int32_t> fast = ParseCpuList(FirstLineOf(folder + "/cpu_core/cpus"));
  const std::vector<int32_t> efficient = ParseCpuList(FirstLineOf(folder + "/cpu_atom/cpus"));
  std::vector<float> speeds(processors.size(), 1.0f);
  for (const int32_t processor : processors) {
    if (!Contains(fast, processor)) continue;
    const std::vector<int32_t> siblings =
        ParseCpuList(FirstLineOf(CpuFolder(folder, processor) + "/topology/thread_siblings_list"));
    const auto shares_core = [&](int32_t sibling) {
      return sibling != processor && Contains(processors, sibling);
    };
    if (std::ranges::any_of(siblings, shares_core)) return speeds;
  }
  for (size_t i = 0; i < processors.size(); ++i) {
    if (Contains(efficient, processors[i])) speeds[i] = kEfficientSpeed;
  }
  return speeds;
}

}  // namespace

std::vector<float> ProcessorSpeeds(const std::vector<NumaNode>& nodes, const std::string& folder) {
  const std::vector<int32_t> processors = AllProcessors(nodes);
  if (processors.empty()) return {};
  std::vector<float> speeds = Capacities(processors, folder);
  const auto [least, most] = std::ranges::minmax(speeds);
  if (least <= 0 || least == most) speeds = SpeedsOfKinds(processors, folder);
  const float best = std::ranges::max(speeds);
  if (std::ranges::min(speeds) == best) return {};
  std::vector<float> by_number(std::ranges::max(processors) + 1, 1.0f);
  for (size_t i = 0; i < processors.size(); ++i) by_number[processors[i]] = speeds[i] / best;
  return by_number;
}

void SortBySpeed(const std::vector<float>& speeds, std::vector<NumaNode>* nodes) {
  if (speeds.empty()) return;
  for (NumaNode& node : *nodes) {
    std::ranges::stable_sort(node.processors, std::greater<>(),
                             [&](int32_t processor) { return speeds[processor]; });
  }
}

}  // namespace skein
