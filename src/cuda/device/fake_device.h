#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cuda/device/device.h"
#include "cuda/emulator/emulator.h"
#include "cuda/kernels/args.h"

namespace skein::cuda {

// A device in the host's memory, whose kernels run on the Emulator. Each command runs as late as
// possible: when a Wait needs it. So a caller that reads results too early, or reuses memory too
// early, gets wrong results. But one block of each launch begins before the launch ahead of it has
// run, and stops where it waits for that: so does a kernel that reads its results too early. Slow:
// for tests, and for serving tiny models without a GPU.
class FakeDevice final : public Device {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Options {
    int64_t memory_bytes = int64_t{384} << 20;
    int64_t shared_bytes = kLeastSharedBytes;  // of a block
    int64_t persistent_blocks = 0;
    // After this number of launches, the next one loses the device.
    int64_t launches_until_lost = kNever;
    TurnOrder order;
    // Commands run as soon as they can instead: those of peers may then run late beside them.
    bool at_once = false;
  };

  FakeDevice() : FakeDevice(Options{}) {}
  explicit FakeDevice(const Options& options)
      : options_(options), emulators_{Emulator(options.order), Emulator(options.order)} {}
  ~FakeDevice() override;

  const std::string& name() const override { return name_; }
  DeviceMemory Memory() override;
  int64_t shared_bytes() const override { return options_.shared_bytes; }
  bool has_phases() const override { return options_.persistent_blocks > 0; }
  int64_t persistent_blocks() const override { return options_.persistent_blocks; }
  Result<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  Result<void*> AllocateHost(size_t bytes) override;
  void FreeHost(void* memory) override;
  void CopyToDevice(void* to, const void* from, size_t bytes) override;
  void CopyToHost(void* to, const void* from, size_t bytes) override;
  void CopyToDevice(const LayerRows& to, const void* from) override;
  void CopyToHost(void* to, const LayerRows& from) override;
  void Run(const Launch& launch) override;
  void BeginGraph() override;
  Result<int32_t> EndGraph() override;
  void RunGraph(int32_t graph) override;
  void FreeGraph(int32_t graph) override;
  int64_t Mark() override;
  Status Wait(int64_t mark) override;
  Status Connect(Device&) override { return Status::Ok(); }
  void WaitForPeer(Device& peer, int64_t mark) override;

  // The device is lost after this number of further launches.
  void LoseAfter(int64_t launches) { launches_until_lost_ = num_launches_done_ + launches; }

  // The number of launches that were given, and the number of those that have run.
  int64_t num_launches() const { return num_launches_; }
  int64_t num_launches_done() const { return num_launches_done_; }
  int64_t num_copies() const { return num_copies_; }
  // Graphs that there are, and their runs so far.
  int64_t num_graphs() const { return std::ssize(graphs_); }
  int64_t num_graph_runs() const { return num_graph_runs_; }
  int64_t bytes_in_use() const { return bytes_in_use_; }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };
  struct PeerMark {
    FakeDevice* peer;
    int64_t mark;
  };
  struct GraphRun {
    int32_t graph;
  };
  using Command = std::variant<Copy, Launch, int64_t, PeerMark, GraphRun>;  // int64_t: a mark
  struct GraphCommand {
    FakeDevice* device;
    Command command;
  };
  using Graph = std::vector<GraphCommand>;

  void Add(Command&& command);
  void RunNext();
  // Runs the commands of a graph beside those that its devices have. Those of each device run in
  // their order, as late as another device needs them.
  void PlayGraph(const Graph& graph);
  // `next`: the launch behind this one, whose first block begins ahead of it; null: none.
  void RunLaunch(const Launch& launch, const Launch* next);
  Status Emulate(const Launch& launch, const Launch* next);

  const Options options_;
  int64_t launches_until_lost_ = options_.launches_until_lost;
  const std::string name_ = "emulated";
  std::array<Emulator, 2> emulators_;  // of the launch that runs, and of the next one
  int turn_ = 0;                       // the emulator of the next launch
  bool begun_ = false;                 // whether the next launch has begun
  std::deque<Command> commands_;
  std::map<void*, size_t> allocated_;  // memory of the device
  int64_t bytes_in_use_ = 0;
  int64_t num_marks_ = 0;
  int64_t num_marks_passed_ = 0;
  int64_t num_launches_ = 0;
  int64_t num_launches_done_ = 0;
  int64_t num_copies_ = 0;
  std::map<int32_t, Graph> graphs_;
  std::shared_ptr<Graph> recording_;  // that commands go to; null: none
  int32_t last_graph_ = 0;
  int64_t num_graph_runs_ = 0;
  Status status_;  // of the device
};

}  // namespace skein::cuda
