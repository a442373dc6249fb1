#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/device/launch.h"
#include "cuda/emulator/fiber.h"

namespace skein::cuda {

// The order in which the threads of a block, and the blocks of a grid, take turns. Hardware has no
// fixed order, so a kernel whose results depend on the order lacks a barrier or a wait.
struct TurnOrder {
  enum class Kind : uint8_t { kForward, kReverse, kShuffled };
  Kind kind = Kind::kForward;
  uint64_t seed = 0;  // for kShuffled
  // Whether cp.async copies at once, or at the wait that must see the copy, and boxes at once, or
  // when no thread can go on without them. Hardware may do either.
  bool early_copies = false;
};

// Runs the threads of a launch on the calling thread: each thread is a fiber, and blocks run one
// after the other. A thread runs until it waits for others of its warp or block. Before each block,
// shared memory is filled with the bits of a NaN. It has the size that the launch states, so that
// an address sanitizer notices accesses beyond its end. Arithmetic is in the engine's
// floating-point mode.
//
// Errors of the kernel are kInternal: threads that wait for each other forever, lanes of a warp
// that meet in different operations, a box whose barrier was not shown to copies, and a thread that
// waits for its block although some of the block's threads have finished.
class Emulator {
 public:
  explicit Emulator(TurnOrder order = {}) : order_(order) {}

  // Runs `thread` once for each thread of the launch.
  Status Run(const LaunchShape& shape, const std::function<void()>& thread);

  // The same for a kernel, in two steps. The first runs the threads of one block until they wait
  // for the kernel before. The caller may run that kernel between the steps: then a thread that
  // reads its results before the wait gets old ones. Each thread must wait once; another number of
  // waits is an error of the kernel. REQUIRES: Finish or Drop follows each Begin.
  void BeginKernel(const LaunchShape& shape, std::function<void()> thread);
  Status FinishKernel();
  void DropKernel();

  // The functions below are for the code inside the threads (device_emulator.h).

  // The emulator that runs the calling thread. REQUIRES: called inside Run.
  static Emulator& Current();

  const LaunchShape& shape() const { return shape_; }
  Dim3 block_index() const { return block_index_; }
  uint32_t thread_index() const { return current_; }
  std::byte* shared_memory(size_t bytes) const;

  void WaitForBlock();
  void WaitForPreviousKernel();

  // mbarrier: a word of shared memory that counts arrivals. Its phase ends when as many as
  // `arrivals` have come, and the next phase begins, whose parity is the other one. The first phase
  // has the parity 0.
  void InitBarrier(uint64_t* barrier, uint32_t arrivals);
  void ShowBarriersToCopies() { barriers_shown_ = true; }
  void Arrive(uint64_t* barrier);
  // Arrives, and lets the phase last until boxes of so many bytes are there, too.
  void ArriveWithBytes(uint64_t* barrier, uint32_t bytes);
  // Waits until the present phase has another parity than `parity`.
  void WaitForPhase(const uint64_t* barrier, uint32_t parity);

  // cp.async.bulk.tensor: copies the box whose first element is (x, y, z), and tells the barrier.
  // `to`: in shared memory, a multiple of 1,024 bytes behind its begin.
  void CopyBox(void* to, const TensorMap& map, int32_t x, int32_t y, int32_t z, uint64_t* barrier);

  // The most bytes that a lane passes to its warp in one operation.
  static constexpr size_t kMaxMessageBytes = 32;
  // Passes `message` to the warp and waits for its other lanes. `operation` names the operation,
  // which must be the same in all lanes. Returns the messages of the 32 lanes, kMaxMessageBytes
  // each. They stay valid until the meeting after the next one.
  const std::byte* MeetWarp(const char* operation, const void* message, size_t bytes);

  // cp.async: copies 16 bytes from `from`, or zeros if `from` is null. The next two functions end a
  // group of copies and wait for groups.
  void Copy16(void* to, const void* from);
  void CommitCopies();
  void WaitForCopies(int pending_groups);

 private:
  enum class State : uint8_t {
    kReady,
    kAtBlockBarrier,
    kAtWarpBarrier,
    kAtPhase,
    kAtPreviousKernel,
    kDone
  };
  struct PendingCopy {
    void* to = nullptr;
    const void* from = nullptr;
    int64_t group = 0;
  };
  struct PendingBox {
    std::byte* to = nullptr;
    TensorMap map;
    int32_t first[3] = {};
    uint64_t* barrier = nullptr;
  };
  struct Thread {
    Fiber fiber;
    State state = State::kDone;
    std::vector<PendingCopy> copies;
    int64_t group = 0;                  // the group that new copies belong to
    int32_t num_waits = 0;              // for the kernel before
    const uint64_t* barrier = nullptr;  // whose phase it waits for
  };
  struct Warp {
    const char* operation = nullptr;  // null: no lane is waiting
    int arrived = 0;
    int64_t meeting = 0;
    std::vector<std::byte> messages;  // [2 meetings, 32 lanes, kMaxMessageBytes]
  };

  void Prepare(const LaunchShape& shape);
  // Runs the blocks, the first of which has begun if `begun`.
  Status RunBlocks(const std::function<void()>& thread, bool begun);
  void StartBlock(uint32_t block, const std::function<void()>& thread);
  Status FinishBlock();
  // Lets threads take their turns. Returns whether any of them could run.
  bool TakeTurns(const std::vector<uint32_t>& turns);
  std::vector<uint32_t> Turns(size_t count);
  // Copies the oldest box that waits, in reverse order the newest. Returns whether there was one.
  bool CopyPendingBox();
  void CopyNow(const PendingBox& box);
  // Changes a barrier by an arrival or by bytes, and ends its phase if nothing is missing.
  void Count(uint64_t* barrier, int arrivals, int64_t bytes);
  void Pause(State state);
  // Names what a thread waits for that cannot go on.
  std::string WaitOf(uint32_t thread) const;
  void Fail(const std::string& message);

  const TurnOrder order_;
  LaunchShape shape_;
  std::vector<uint32_t> blocks_;  // in the order of their turns
  std::function<void()> kernel_;  // the function of a kernel that has begun
  bool is_kernel_ = false;
  bool at_begin_ = false;  // threads stop where they wait for the kernel before
  Dim3 block_index_;
  std::unique_ptr<std::byte[]> shared_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  std::deque<PendingBox> boxes_;
  bool barriers_shown_ = false;  // to copies of boxes
  uint32_t current_ = 0;         // the thread that runs
  uint32_t at_block_barrier_ = 0;
  uint64_t num_shuffles_ = 0;
  std::string error_;
};

}  // namespace skein::cuda
