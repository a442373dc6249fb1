#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/device/launch.h"
#include "cuda/emulator/fiber.h"

namespace skein::cuda {

// The order in which the threads of a block, and the blocks of a grid, take turns. Hardware has
// none, so a kernel whose results depend on it lacks a barrier or a wait.
struct TurnOrder {
  enum class Kind : uint8_t { kForward, kReverse, kShuffled };
  Kind kind = Kind::kForward;
  uint64_t seed = 0;  // of kShuffled
  // When cp.async copies: at the wait that must see it, or at once. Both are allowed.
  bool early_copies = false;
};

// Runs the threads of a launch on the calling thread: a fiber each, block after block. A thread
// runs until it waits for others of its warp or block. Shared memory is filled with the bits of a
// NaN before each block, and has the size that the launch states, so that an address sanitizer sees
// accesses behind it. Arithmetic is in the engine's floating-point mode.
//
// Errors of the kernel are kInternal: threads that wait for each other forever, lanes of a warp
// that meet in different operations, a wait of a thread whose block has finished threads.
class Emulator {
 public:
  explicit Emulator(TurnOrder order = {}) : order_(order) {}

  // Runs `thread` once for each thread of the launch.
  Status Run(const LaunchShape& shape, const std::function<void()>& thread);

  // The rest is for the code inside the threads (device_emulator.h).

  // The emulator that runs the calling thread. REQUIRES: called inside Run.
  static Emulator& Current();

  const LaunchShape& shape() const { return shape_; }
  Dim3 block_index() const { return block_index_; }
  uint32_t thread_index() const { return current_; }
  std::byte* shared_memory(size_t bytes) const;

  void WaitForBlock();

  // The bytes that a lane tells the others of its warp in one operation.
  static constexpr size_t kMaxMessageBytes = 32;
  // Gives `message` to the warp and waits for its other lanes. `operation` names the operation,
  // which all lanes are in. Returns the messages of the 32 lanes, kMaxMessageBytes each, which stay
  // until the next but one meeting.
  const std::byte* MeetWarp(const char* operation, const void* message, size_t bytes);

  // cp.async: 16 bytes from `from`, or zeros where it is null; then groups of copies.
  void Copy16(void* to, const void* from);
  void CommitCopies();
  void WaitForCopies(int pending_groups);

 private:
  enum class State : uint8_t { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };
  struct PendingCopy {
    void* to = nullptr;
    const void* from = nullptr;
    int64_t group = 0;
  };
  struct Thread {
    Fiber fiber;
    State state = State::kDone;
    std::vector<PendingCopy> copies;
    int64_t group = 0;  // the one that takes copies
  };
  struct Warp {
    const char* operation = nullptr;  // null: no lane waits
    int arrived = 0;
    int64_t meeting = 0;
    std::vector<std::byte> messages;  // [2 meetings, 32 lanes, kMaxMessageBytes]
  };

  Status RunBlock(const std::function<void()>& thread);
  // Whether any thread could go on.
  bool TakeTurns(const std::vector<uint32_t>& turns);
  std::vector<uint32_t> Turns(size_t count);
  void Pause(State state);
  void Fail(const std::string& message);

  const TurnOrder order_;
  LaunchShape shape_;
  Dim3 block_index_;
  std::unique_ptr<std::byte[]> shared_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  uint32_t current_ = 0;  // the thread whose turn it is
  uint32_t at_block_barrier_ = 0;
  uint64_t num_shuffles_ = 0;
  std::string error_;
};

}  // namespace skein::cuda
