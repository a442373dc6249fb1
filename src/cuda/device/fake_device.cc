#include "cuda/device/fake_device.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <utility>

#include "base/check.h"
#include "cuda/kernels/emulated_kernels.h"

namespace skein::cuda {
namespace {

constexpr std::align_val_t kAlignment{256};

}  // namespace

FakeDevice::~FakeDevice() { SKEIN_CHECK(allocated_.empty() && graphs_.empty()); }

DeviceMemory FakeDevice::Memory() {
  return {options_.memory_bytes - bytes_in_use_, options_.memory_bytes};
}

Result<void*> FakeDevice::Allocate(size_t bytes) {
  const int64_t free_bytes = Memory().free_bytes;
  if (static_cast<int64_t>(bytes) > free_bytes) {
    return Status(StatusCode::kResourceExhausted,
                  "the device has " + std::to_string(free_bytes) + " of " +
                      std::to_string(options_.memory_bytes) + " bytes free; " +
                      std::to_string(bytes) + " are needed");
  }
  void* memory = ::operator new(bytes, kAlignment);
  std::memset(memory, 0, bytes);
  allocated_.emplace(memory, bytes);
  bytes_in_use_ += static_cast<int64_t>(bytes);
  return memory;
}

void FakeDevice::Free(void* memory) {
  while (!commands_.empty()) RunNext();  // as a driver does at the end
  const auto found = allocated_.find(memory);
  SKEIN_CHECK(found != allocated_.end());
  bytes_in_use_ -= static_cast<int64_t>(found->second);
  allocated_.erase(found);
  ::operator delete(memory, kAlignment);
}

Result<void*> FakeDevice::AllocateHost(size_t bytes) { return ::operator new(bytes, kAlignment); }

void FakeDevice::FreeHost(void* memory) {
  while (!commands_.empty()) RunNext();
  ::operator delete(memory, kAlignment);
}

void FakeDevice::CopyToDevice(void* to, const void* from, size_t bytes) {
  ++num_copies_;
  Add(Copy{to, from, bytes});
}

void FakeDevice::CopyToHost(void* to, const void* from, size_t bytes) {
  ++num_copies_;
  Add(Copy{to, from, bytes});
}

void FakeDevice::Run(const Launch& launch) {
  SKEIN_CHECK(launch.shape.shared_bytes <= options_.shared_bytes);
  if (recording_ == nullptr) ++num_launches_;
  Add(launch);
}

void FakeDevice::BeginGraph() {
  SKEIN_CHECK(recording_ == nullptr);
  recording_ = std::make_shared<Graph>();
}

Result<int32_t> FakeDevice::EndGraph() {
  const std::shared_ptr<Graph> graph = recording_;
  std::set<FakeDevice*> devices;
  for (const GraphCommand& command : *graph) devices.insert(command.device);
  for (FakeDevice* const device : devices) {
    if (device != this) WaitForPeer(*device, device->Mark());
  }
  recording_ = nullptr;
  for (FakeDevice* const device : devices) device->recording_ = nullptr;
  for (const FakeDevice* const device : devices) SKEIN_RETURN_IF_ERROR(device->status_);
  graphs_.emplace(++last_graph_, *graph);
  return last_graph_;
}

void FakeDevice::RunGraph(int32_t graph) {
  ++num_graph_runs_;
  std::map<std::pair<FakeDevice*, int64_t>, int64_t> marks;  // of this run, by those recorded
  for (const auto& [device, command] : graphs_.at(graph)) {
    if (const auto* mark = std::get_if<int64_t>(&command)) {
      marks[{device, *mark}] = device->Mark();
    } else if (const auto* of_peer = std::get_if<PeerMark>(&command)) {
      device->WaitForPeer(*of_peer->peer, marks.at({of_peer->peer, of_peer->mark}));
    } else {
      device->Run(std::get<Launch>(command));
    }
  }
}

void FakeDevice::FreeGraph(int32_t graph) { SKEIN_CHECK(graphs_.erase(graph) == 1); }

int64_t FakeDevice::Mark() {
  Add(++num_marks_);
  return num_marks_;
}

Status FakeDevice::Wait(int64_t mark) {
  SKEIN_CHECK(mark <= num_marks_);
  while (num_marks_passed_ < mark) RunNext();
  return status_;
}

void FakeDevice::WaitForPeer(Device& peer, int64_t mark) {
  if (recording_ == nullptr) recording_ = static_cast<FakeDevice&>(peer).recording_;
  Add(PeerMark{&static_cast<FakeDevice&>(peer), mark});
}

void FakeDevice::Add(Command command) {
  if (recording_ != nullptr) return recording_->push_back({this, std::move(command)});
  commands_.push_back(std::move(command));
  while (options_.at_once && !commands_.empty()) RunNext();
}

void FakeDevice::RunNext() {
  const Command command = std::move(commands_.front());
  commands_.pop_front();
  if (const auto* mark = std::get_if<int64_t>(&command)) {
    num_marks_passed_ = *mark;
    return;
  }
  if (!status_.ok()) return;
  if (const auto* copy = std::get_if<Copy>(&command)) {
    std::memcpy(copy->to, copy->from, copy->bytes);
    return;
  }
  if (const auto* of_peer = std::get_if<PeerMark>(&command)) {
    status_ = of_peer->peer->Wait(of_peer->mark);
    return;
  }
  if (num_launches_done_ == launches_until_lost_) {
    status_ = Status(StatusCode::kUnavailable, "the device is lost");
    if (begun_) emulators_[turn_].DropKernel();
    begun_ = false;
    return;
  }
  ++num_launches_done_;
  const Status status = RunLaunch(std::get<Launch>(command));
  if (!status.ok())
    status_ = Status(StatusCode::kUnavailable, "a kernel failed: " + status.message());
}

Status FakeDevice::RunLaunch(const Launch& launch) {
  Emulator& emulator = emulators_[turn_];
  if (!begun_) BeginEmulated(launch, emulator);
  turn_ = 1 - turn_;
  const auto next = std::ranges::find_if(
      commands_, [](const Command& command) { return !std::holds_alternative<int64_t>(command); });
  begun_ = next != commands_.end() && std::holds_alternative<Launch>(*next);
  if (begun_) BeginEmulated(std::get<Launch>(*next), emulators_[turn_]);
  Status status = emulator.FinishKernel();
  if (!status.ok() && begun_) {
    emulators_[turn_].DropKernel();
    begun_ = false;
  }
  return status;
}

}  // namespace skein::cuda
