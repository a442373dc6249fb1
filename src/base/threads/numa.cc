#include "base/threads/numa.h"

#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/threads/sys_file.h"

namespace skein {
namespace {

constexpr int32_t kMostNodes = 1024;  // the most that Linux can be built for
constexpr int kBitsPerWord = sizeof(unsigned long) * CHAR_BIT;
using NodeMask = std::array<unsigned long, kMostNodes / kBitsPerWord>;

std::optional<int32_t> ParseNumber(std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

bool MayRunOn(int32_t processor, const cpu_set_t& allowed) {
  return processor < CPU_SETSIZE && CPU_ISSET(processor, &allowed);
}

}  // namespace

std::vector<int32_t> ParseCpuList(const std::string& text) {
  std::vector<int32_t> numbers;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view range = std::string_view(text).substr(begin, end - begin);
    const size_t dash = range.find('-');
    const std::optional<int32_t> first = ParseNumber(range.substr(0, dash));
    const std::optional<int32_t> last =
        dash == std::string_view::npos ? first : ParseNumber(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= CPU_SETSIZE) return {};
    for (int32_t number = *first; number <= *last; ++number) numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

std::vector<NumaNode> NumaNodes(const std::string& folder) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return {NumaNode{}};  // > CPU_SETSIZE
  std::vector<NumaNode> nodes;
  std::error_code error;  // no such folder: no node
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with("node")) continue;
    const std::optional<int32_t> id = ParseNumber(std::string_view(name).substr(4));
    if (!id || *id >= kMostNodes) continue;
    NumaNode node{*id, {}};
    for (const int32_t processor : ParseCpuList(FirstLineOf(entry->path() / "cpulist"))) {
      if (MayRunOn(processor, allowed)) node.processors.push_back(processor);
    }
    if (!node.processors.empty()) nodes.push_back(std::move(node));
  }
  std::ranges::sort(nodes, {}, &NumaNode::id);
  if (!nodes.empty()) return nodes;
  NumaNode all;
  for (int32_t processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) all.processors.push_back(processor);
  }
  return {all};
}

cpu_set_t ProcessorsOf(const NumaNode& node) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int32_t processor : node.processors) CPU_SET(processor, &set);
  return set;
}

bool HasMemoryRule() {
  int mode = MPOL_DEFAULT;
  return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 && mode != MPOL_DEFAULT;
}

Status InterleavePages(std::byte* memory, size_t size_bytes, const std::vector<NumaNode>& nodes) {
  NodeMask mask{};
  for (const NumaNode& node : nodes) {
    mask[node.id / kBitsPerWord] |= 1ul << (node.id % kBitsPerWord);
  }
  // A rule of the memory itself: pages under a rule of the thread would be moved to the threads
  // that read them (numa_balancing).
  if (syscall(SYS_mbind, memory, size_bytes, MPOL_INTERLEAVE, mask.data(), kMostNodes, 0) == 0) {
    return Status::Ok();
  }
  return {StatusCode::kUnsupported,
          std::string("memory cannot be interleaved here: ") + std::strerror(errno), "numa"};
}

Status OnEachNode(const std::vector<NumaNode>& nodes,
                  const std::function<void(int32_t index)>& write) {
  std::vector<int> errors(nodes.size());
  std::vector<std::exception_ptr> failures(nodes.size());
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < nodes.size(); ++i) {
    threads.emplace_back([&, i] {
      const cpu_set_t processors = ProcessorsOf(nodes[i]);
      errors[i] = pthread_setaffinity_np(pthread_self(), sizeof(processors), &processors);
      try {
        if (errors[i] == 0) write(static_cast<int32_t>(i));
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  threads.clear();  // waits for them
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (errors[i] == 0) continue;
    return {StatusCode::kUnsupported,
            "no thread may run on the processors of memory node " + std::to_string(nodes[i].id) +
                ": " + std::strerror(errors[i]),
            "numa"};
  }
  return Status::Ok();
}

}  // namespace skein
