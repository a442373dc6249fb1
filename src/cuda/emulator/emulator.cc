#include "cuda/emulator/emulator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "base/check.h"
#include "base/fp_mode.h"

namespace skein::cuda {
namespace {

thread_local Emulator* current_emulator = nullptr;

}  // namespace

Emulator& Emulator::Current() {
  SKEIN_CHECK(current_emulator != nullptr);
  return *current_emulator;
}

Status Emulator::Run(const LaunchShape& shape, const std::function<void()>& thread) {
  SKEIN_CHECK(shape.threads >= kWarpThreads && shape.threads <= kMaxBlockThreads);
  SKEIN_CHECK(shape.threads % kWarpThreads == 0 && current_emulator == nullptr);
  const ScopedFpMode fp_mode;  // a fiber begins in the mode of the thread that creates it
  shape_ = shape;
  error_.clear();
  while (threads_.size() < shape.threads) threads_.push_back(std::make_unique<Thread>());
  warps_.resize(threads_.size() / kWarpThreads);
  for (Warp& warp : warps_) warp.messages.resize(2 * kWarpThreads * kMaxMessageBytes);
  const Dim3 grid = shape.grid;
  current_emulator = this;
  Status status = Status::Ok();
  for (const uint32_t block : Turns(size_t{grid.x} * grid.y * grid.z)) {
    block_index_ = {block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y};
    status = RunBlock(thread);
    if (!status.ok()) break;
  }
  if (!status.ok()) threads_.clear();  // unwinds threads that wait
  current_emulator = nullptr;
  return status;
}

Status Emulator::RunKernel(const LaunchShape& shape, const std::function<void()>& thread) {
  is_kernel_ = true;
  const Status status = Run(shape, thread);
  is_kernel_ = false;
  return status;
}

Status Emulator::RunBlock(const std::function<void()>& thread) {
  shared_.reset(new std::byte[shape_.shared_bytes]);
  std::memset(shared_.get(), 0xff, shape_.shared_bytes);
  at_block_barrier_ = 0;
  for (uint32_t i = 0; i < shape_.threads; ++i) {
    threads_[i]->fiber.Start(&thread);
    threads_[i]->state = State::kReady;
    threads_[i]->copies.clear();
    threads_[i]->group = 0;
    threads_[i]->num_waits = 0;
  }
  for (Warp& warp : warps_) warp.operation = nullptr, warp.arrived = 0;
  while (TakeTurns(Turns(shape_.threads))) {
  }
  for (uint32_t i = 0; i < shape_.threads && error_.empty(); ++i) {
    const Thread& stuck = *threads_[i];
    if (stuck.state == State::kDone) continue;
    Fail("thread " + std::to_string(i) + " waits forever " +
         (stuck.state == State::kAtBlockBarrier
              ? std::string("at a barrier of its block")
              : std::string("in ") + warps_[i / kWarpThreads].operation));
  }
  for (uint32_t i = 0; i < shape_.threads && is_kernel_ && error_.empty(); ++i) {
    if (threads_[i]->num_waits == 1) continue;
    Fail("thread " + std::to_string(i) + " has waited " + std::to_string(threads_[i]->num_waits) +
         " times for the kernel before, not once");
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
