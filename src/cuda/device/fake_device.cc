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

std::byte* RowOf(const LayerRows& rows, int32_t layer) {
  const int64_t row = int64_t{layer} * rows.num_rows + rows.row;
  return static_cast<std::byte*>(rows.base) + row * static_cast<int64_t>(rows.row_bytes);
}

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

Result<void*> FakeDevice::AllocateHost(size_t bytes) {
  if (void* const memory = ::operator new(bytes, kAlignment, std::nothrow)) return memory;
  return Status(StatusCode::kResourceExhausted,
                "the host has no " + std::to_string(bytes) + " bytes");
}

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

void FakeDevice::CopyToDevice(const LayerRows& to, const void* from) {
  ++num_copies_;
  for (int32_t layer = 0; layer < to.num_layers; ++layer) {
    Add(Copy{RowOf(to, layer), static_cast<const std::byte*>(from) + layer * to.row_bytes,
             to.row_bytes});
  }
}

void FakeDevice::CopyToHost(void* to, const LayerRows& from) {
  ++num_copies_;
  for (int32_t layer = 0; layer < from.num_layers; ++layer) {
    Add(Copy{static_cast<std::byte*>(to) + layer * from.row_bytes, RowOf(from, layer),
             from.row_bytes});
  }
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
  for (const GraphCommand& of : graphs_.at(graph)) {
    if (std::holds_alternative<Launch>(of.command)) ++of.device->num_launches_;
  }
  Add(GraphRun{graph});
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

void FakeDevice::Add(Command&& command) {
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
  if (const auto* run = std::get_if<GraphRun>(&command)) return PlayGraph(graphs_.at(run->graph));
  const auto next = std::ranges::find_if(
      commands_, [](const Command& of) { return !std::holds_alternative<int64_t>(of); });
  RunLaunch(std::get<Launch>(command),
            next == commands_.end() ? nullptr : std::get_if<Launch>(&*next));
}

void FakeDevice::PlayGraph(const Graph& graph) {
  struct Part {
    std::deque<Command> commands;
    int64_t passed = 0;  // the last mark
  };
  std::map<FakeDevice*, Part> parts;
  for (const GraphCommand& of : graph) parts[of.device].commands.push_back(of.command);
  const auto run_next = [&](const auto& self, FakeDevice* device) -> void {
    Part& part = parts[device];
    const Command command = std::move(part.commands.front());
    part.commands.pop_front();
    if (const auto* mark = std::get_if<int64_t>(&command)) {
      part.passed = *mark;
    } else if (const auto* of_peer = std::get_if<PeerMark>(&command)) {
      while (parts[of_peer->peer].passed < of_peer->mark) self(self, of_peer->peer);
    } else {
      device->RunLaunch(
          std::get<Launch>(command),
          part.commands.empty() ? nullptr : std::get_if<Launch>(&part.commands.front()));
    }
  };
  for (const bool at_once : {true, false}) {
    for (auto& [device, part] : parts) {
      while (device->options_.at_once == at_once && !part.commands.empty()) {
        run_next(run_next, device);
      }
    }
  }
  for (const auto& [device, part] : parts) {
    if (status_.ok()) status_ = device->status_;
  }
}

void FakeDevice::RunLaunch(const Launch& launch, const Launch* next) {
  if (!status_.ok()) return;
  if (num_launches_done_ == launches_until_lost_) {
    status_ = Status(StatusCode::kUnavailable, "the device is lost");
    if (begun_) emulators_[turn_].DropKernel();
    begun_ = false;
    return;
  }
  ++num_launches_done_;
  const Status status = Emulate(launch, next);
  if (!status.ok())
    status_ = Status(StatusCode::kUnavailable, "a kernel failed: " + status.message());
}

Status FakeDevice::Emulate(const Launch& launch, const Launch* next) {
  Emulator& emulator = emulators_[turn_];
  if (!begun_) BeginEmulated(launch, emulator);
  turn_ = 1 - turn_;
  begun_ = next != nullptr;
  if (begun_) BeginEmulated(*next, emulators_[turn_]);
  Status status = emulator.FinishKernel();
  if (!status.ok() && begun_) {
    emulators_[turn_].DropKernel();
    begun_ = false;
  }
  return status;
}

}  // namespace skein::cuda
