#include "cuda/emulator/emulator.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/fp_mode.h"

namespace skein::cuda {
namespace {

thread_local Emulator* current_emulator = nullptr;

// An mbarrier. Hardware has another layout of the same size.
struct PhaseBarrier {
  uint8_t arrivals = 0;  // that end a phase
  uint8_t missing = 0;   // in the present phase
  uint16_t parity = 0;   // of the present phase
  int32_t bytes = 0;     // missing in the present phase
};
static_assert(sizeof(PhaseBarrier) == sizeof(uint64_t));

}  // namespace

Emulator& Emulator::Current() {
  SKEIN_CHECK(current_emulator != nullptr);
  return *current_emulator;
}

Status Emulator::Run(const LaunchShape& shape, const std::function<void()>& thread) {
  Prepare(shape);
  return RunBlocks(thread, false);
}

void Emulator::BeginKernel(const LaunchShape& shape, std::function<void()> thread) {
  SKEIN_CHECK(!is_kernel_);
  Prepare(shape);
  kernel_ = std::move(thread);
  is_kernel_ = at_begin_ = true;
  const ScopedFpMode fp_mode;  // a fiber begins in the mode of the thread that creates it
  current_emulator = this;
  StartBlock(blocks_[0], kernel_);
  while (TakeTurns(Turns(shape_.threads))) {
  }
  current_emulator = nullptr;
  at_begin_ = false;
}

Status Emulator::FinishKernel() {
  SKEIN_CHECK(is_kernel_ && current_emulator == nullptr);
  for (uint32_t i = 0; i < shape_.threads; ++i) {
    if (threads_[i]->state == State::kAtPreviousKernel) threads_[i]->state = State::kReady;
  }
  const Status status = RunBlocks(kernel_, true);
  is_kernel_ = false;
  return status;
}

void Emulator::DropKernel() {
  SKEIN_CHECK(is_kernel_);
  threads_.clear();  // unwinds threads that wait
  is_kernel_ = false;
}

void Emulator::Prepare(const LaunchShape& shape) {
  SKEIN_CHECK(shape.threads >= kWarpThreads && shape.threads <= kMaxBlockThreads);
  SKEIN_CHECK(shape.threads % kWarpThreads == 0 && current_emulator == nullptr);
  shape_ = shape;
  error_.clear();
  while (threads_.size() < shape.threads) threads_.push_back(std::make_unique<Thread>());
  warps_.resize(threads_.size() / kWarpThreads);
  for (Warp& warp : warps_) warp.messages.resize(2 * kWarpThreads * kMaxMessageBytes);
  blocks_ = Turns(size_t{shape.grid.x} * shape.grid.y * shape.grid.z);
}

Status Emulator::RunBlocks(const std::function<void()>& thread, bool begun) {
  const ScopedFpMode fp_mode;  // a fiber begins in the mode of the thread that creates it
  current_emulator = this;
  Status status = Status::Ok();
  for (size_t i = 0; i < blocks_.size() && status.ok(); ++i) {
    if (i > 0 || !begun) StartBlock(blocks_[i], thread);
    status = FinishBlock();
  }
  if (!status.ok()) threads_.clear();  // unwinds threads that wait
  current_emulator = nullptr;
  return status;
}

void Emulator::StartBlock(uint32_t block, const std::function<void()>& thread) {
  const Dim3 grid = shape_.grid;
  block_index_ = {block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y};
  shared_.reset(new std::byte[shape_.shared_bytes]);
  std::memset(shared_.get(), 0xff, shape_.shared_bytes);
  at_block_barrier_ = 0;
  boxes_.clear();
  for (uint32_t i = 0; i < shape_.threads; ++i) {
    threads_[i]->fiber.Start(&thread);
    threads_[i]->state = State::kReady;
    threads_[i]->copies.clear();
    threads_[i]->group = 0;
    threads_[i]->num_waits = 0;
  }
  for (Warp& warp : warps_) warp.operation = nullptr, warp.arrived = 0;
}

Status Emulator::FinishBlock() {
  while (error_.empty() && (TakeTurns(Turns(shape_.threads)) || CopyPendingBox())) {
  }
  for (uint32_t i = 0; i < shape_.threads && error_.empty(); ++i) {
    const Thread& thread = *threads_[i];
    const std::string name = "thread " + std::to_string(i);
    if (thread.state != State::kDone) {
      Fail(name + " waits forever " + WaitOf(i));
    } else if (is_kernel_ && thread.num_waits != 1) {
      Fail(name + " has waited " + std::to_string(thread.num_waits) +
           " times for the kernel before, not once");
    }
  }
  return error_.empty() ? Status::Ok() : Status(StatusCode::kInternal, error_);
}

bool Emulator::TakeTurns(const std::vector<uint32_t>& turns) {
  bool ran = false;
  for (const uint32_t i : turns) {
    Thread& thread = *threads_[i];
    if (thread.state != State::kReady) continue;
    ran = true;
    current_ = i;
    if (thread.fiber.Resume()) thread.state = State::kDone;
    if (!error_.empty()) return false;
  }
  return ran;
}

std::vector<uint32_t> Emulator::Turns(size_t count) {
  std::vector<uint32_t> turns(count);
  std::iota(turns.begin(), turns.end(), 0u);
  if (order_.kind == TurnOrder::Kind::kReverse) std::ranges::reverse(turns);
  if (order_.kind == TurnOrder::Kind::kShuffled) {
    std::mt19937_64 random(order_.seed + num_shuffles_++);
    std::ranges::shuffle(turns, random);
  }
  return turns;
}

void Emulator::Pause(State state) {
  Thread& thread = *threads_[current_];
  thread.state = state;
  thread.fiber.Pause();
}

std::string Emulator::WaitOf(uint32_t thread) const {
  const State state = threads_[thread]->state;
  if (state == State::kAtBlockBarrier) return "at a barrier of its block";
  if (state == State::kAtPhase) return "for a phase of a barrier in shared memory";
  return std::string("in ") + warps_[thread / kWarpThreads].operation;
}

void Emulator::Fail(const std::string& message) {
  if (!error_.empty()) return;
  error_ = "block (" + std::to_string(block_index_.x) + ", " + std::to_string(block_index_.y) +
           ", " + std::to_string(block_index_.z) + "): " + message;
}

std::byte* Emulator::shared_memory(size_t bytes) const {
  SKEIN_CHECK(bytes <= shape_.shared_bytes);
  return shared_.get();
}

void Emulator::WaitForBlock() {
  if (++at_block_barrier_ < shape_.threads) return Pause(State::kAtBlockBarrier);
  at_block_barrier_ = 0;
  for (uint32_t i = 0; i < shape_.threads; ++i) threads_[i]->state = State::kReady;
}

void Emulator::WaitForPreviousKernel() {
  ++threads_[current_]->num_waits;
  if (at_begin_) Pause(State::kAtPreviousKernel);
}

void Emulator::InitBarrier(uint64_t* barrier, uint32_t arrivals) {
  SKEIN_CHECK(arrivals >= 1 && arrivals <= 255);
  barriers_shown_ = false;
  const auto count = static_cast<uint8_t>(arrivals);
  *barrier = std::bit_cast<uint64_t>(PhaseBarrier{count, count, 0, 0});
}

void Emulator::Arrive(uint64_t* barrier) { Count(barrier, 1, 0); }

void Emulator::ArriveWithBytes(uint64_t* barrier, uint32_t bytes) {
  Count(barrier, 0, bytes);
  Count(barrier, 1, 0);
}

void Emulator::Count(uint64_t* barrier, int arrivals, int64_t bytes) {
  auto state = std::bit_cast<PhaseBarrier>(*barrier);
  SKEIN_CHECK(arrivals <= state.missing);
  state.missing = static_cast<uint8_t>(state.missing - arrivals);
  state.bytes = static_cast<int32_t>(state.bytes + bytes);
  if (state.missing == 0 && state.bytes == 0) {
    state.missing = state.arrivals;
    state.parity = 1 - state.parity;
    for (uint32_t i = 0; i < shape_.threads; ++i) {
      Thread& thread = *threads_[i];
      if (thread.state == State::kAtPhase && thread.barrier == barrier) {
        thread.state = State::kReady;
      }
    }
  }
  *barrier = std::bit_cast<uint64_t>(state);
}

void Emulator::WaitForPhase(const uint64_t* barrier, uint32_t parity) {
  if (std::bit_cast<PhaseBarrier>(*barrier).parity != parity) return;
  threads_[current_]->barrier = barrier;
  Pause(State::kAtPhase);
}

void Emulator::CopyBox(void* to, const TensorMap& map, int32_t x, int32_t y, int32_t z,
                       uint64_t* barrier) {
  const PendingBox box = {static_cast<std::byte*>(to), map, {x, y, z}, barrier};
  if (!barriers_shown_) return Fail("a box has a barrier that was not shown to copies");
  order_.early_copies ? CopyNow(box) : boxes_.push_back(box);
}

bool Emulator::CopyPendingBox() {
  if (boxes_.empty()) return false;
  if (order_.kind == TurnOrder::Kind::kReverse) {
    CopyNow(boxes_.back());
    boxes_.pop_back();
  } else {
    CopyNow(boxes_.front());
    boxes_.pop_front();
  }
  return true;
}

void Emulator::CopyNow(const PendingBox& box) {
  constexpr int kRowBytes = TensorMap::kRowWords * 4, kSwizzledRows = 8;
  const TensorMap& map = box.map;
  SKEIN_CHECK((box.to - shared_.get()) % (kRowBytes * kSwizzledRows) == 0);
  const int64_t num_rows = int64_t{map.rows} * map.matrices;
  SKEIN_CHECK(box.to + num_rows * kRowBytes <= shared_.get() + shape_.shared_bytes);
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t y = box.first[1] + row % map.rows, z = box.first[2] + row / map.rows;
    const auto* from =
        static_cast<const std::byte*>(map.base) + y * map.strides[0] + z * map.strides[1];
    for (int64_t word = 0; word < TensorMap::kRowWords; ++word) {
      const int64_t x = box.first[0] + word;
      const bool exists = x < map.sizes[0] && y < map.sizes[1] && z < map.sizes[2];
      std::byte* const to =
          box.to + row * kRowBytes + ((word / 4) ^ (row % kSwizzledRows)) * 16 + word % 4 * 4;
      exists ? std::memcpy(to, from + x * 4, 4) : std::memset(to, 0, 4);
    }
  }
  Count(box.barrier, 0, -num_rows * kRowBytes);
}

const std::byte* Emulator::MeetWarp(const char* operation, const void* message, size_t bytes) {
  SKEIN_CHECK(bytes <= kMaxMessageBytes);
  const uint32_t lane = current_ % kWarpThreads, first = current_ - lane;
  Warp& warp = warps_[current_ / kWarpThreads];
  if (warp.operation != nullptr && std::strcmp(warp.operation, operation) != 0) {
    Fail("lanes of a warp meet in " + std::string(warp.operation) + " and " + operation);
    Pause(State::kAtWarpBarrier);
  }
  warp.operation = operation;
  const int64_t meeting = warp.meeting;
  std::byte* const messages = warp.messages.data() + meeting % 2 * kWarpThreads * kMaxMessageBytes;
  std::memcpy(messages + lane * kMaxMessageBytes, message, bytes);
  if (++warp.arrived < kWarpThreads) {
    Pause(State::kAtWarpBarrier);
  } else {
    warp.operation = nullptr;
    warp.arrived = 0;
    ++warp.meeting;
    for (uint32_t i = first; i < first + kWarpThreads; ++i) threads_[i]->state = State::kReady;
  }
  return messages;
}

void Emulator::Copy16(void* to, const void* from) {
  constexpr size_t kBytes = 16;
  SKEIN_CHECK(reinterpret_cast<uintptr_t>(to) % kBytes == 0);
  SKEIN_CHECK(reinterpret_cast<uintptr_t>(from) % kBytes == 0);
  Thread& thread = *threads_[current_];
  if (!order_.early_copies) {
    thread.copies.push_back({to, from, thread.group});
  } else if (from == nullptr) {
    std::memset(to, 0, kBytes);
  } else {
    std::memcpy(to, from, kBytes);
  }
}

void Emulator::CommitCopies() { ++threads_[current_]->group; }

void Emulator::WaitForCopies(int pending_groups) {
  constexpr size_t kBytes = 16;
  Thread& thread = *threads_[current_];
  auto copy = thread.copies.begin();
  for (; copy != thread.copies.end() && copy->group < thread.group - pending_groups; ++copy) {
    if (copy->from == nullptr) {
      std::memset(copy->to, 0, kBytes);
    } else {
      std::memcpy(copy->to, copy->from, kBytes);
    }
  }
  thread.copies.erase(thread.copies.begin(), copy);
}

}  // namespace skein::cuda
