#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skein/status.h"

namespace skein {

// The place of the weights on a machine with several memory nodes.
enum class NumaRule : uint8_t {
  kAuto,        // interleaved, if there are several nodes and the system allows it
  kOff,         // where the threads that pack them run
  kInterleave,  // on the nodes in turn, page by page
  kReplicate,   // whole on each node, for the threads that run there
};

// A node of a machine whose memory is not equally near to all processors (NUMA).
struct NumaNode {
  int32_t id = 0;
  std::vector<int32_t> processors;  // ascending: those on which the calling thread may run
};

// The nodes with a processor on which the calling thread may run, by ascending id. `folder`
// describes the machine as Linux does; without it, there is one node, with all those processors.
inline constexpr char kNumaFolder[] = "/sys/devices/system/node";
std::vector<NumaNode> NumaNodes(const std::string& folder = kNumaFolder);

cpu_set_t ProcessorsOf(const NumaNode& node);

// Reads a list of numbers as Linux writes it ("0-2,5"). Empty if `text` is no such list.
std::vector<int32_t> ParseCpuList(const std::string& text);

// Whether the calling thread has a rule for the place of its memory, as by numactl.
bool HasMemoryRule();

// Lets the pages of memory lie on the nodes in turn, whichever threads use them. REQUIRES: the
// memory is page-aligned, and nothing has been written to it. kUnsupported if the system refuses,
// as in a container without the right to it.
Status InterleavePages(std::byte* memory, size_t size_bytes, const std::vector<NumaNode>& nodes);

// Calls `write` for each node at the same time, on a thread that runs on the node's processors. So
// pages that `write` is the first to write lie on that node. kUnsupported if the system does not
// let a thread run there; all calls have ended then.
Status OnEachNode(const std::vector<NumaNode>& nodes,
                  const std::function<void(int32_t index)>& write);

// The index of the calling thread's node in the list that its ThreadTeam is bound to. 0 if no bound
// team has had a ticket for this thread. It stays after the team's last ticket.
inline int32_t& ThisNode() {
  static constinit thread_local int32_t node = 0;
  return node;
}

}  // namespace skein
