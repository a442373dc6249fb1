#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "cuda/device/launch.h"

namespace skein::cuda {

struct DeviceMemory {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

// Row number `row` of each of num_layers matrices [num_rows, row_bytes] of a device, which lie one
// behind another from `base` on.
struct LayerRows {
  void* base = nullptr;
  size_t row_bytes = 0;
  int32_t num_rows = 0;
  int32_t row = 0;
  int32_t num_layers = 0;
};

// A GPU with one stream: commands run in the order in which they are given, while the caller goes
// on. The memory that a command uses must stay valid and unchanged until a mark after the command
// has passed.
//
// If a command fails, the device is lost: every later command does nothing, and every Wait returns
// the command's error, kUnavailable. Thread rule: one thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& name() const = 0;
  virtual DeviceMemory Memory() = 0;
  // The most shared memory of a block, in bytes.
  virtual int64_t shared_bytes() const = 0;
  // Whether its kernels have barriers with phases (dialect.h).
  virtual bool has_phases() const = 0;
  // The blocks of a kernel that runs one on each multiprocessor (gemm_persistent.h). 0: the device
  // has no phases or no tensor maps, which such kernels need.
  virtual int64_t persistent_blocks() const = 0;

  // Allocates memory of the device, 256-byte aligned, which is zeroed before later commands.
  // kResourceExhausted if the device has not enough memory.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Allocates memory of the host from which and to which the device can copy.
  virtual Result<void*> AllocateHost(size_t bytes) = 0;
  virtual void FreeHost(void* memory) = 0;

  virtual void CopyToDevice(void* to, const void* from, size_t bytes) = 0;
  virtual void CopyToHost(void* to, const void* from, size_t bytes) = 0;
  // The same for rows of layers, in one command. The host's memory is that of AllocateHost,
  // [num_layers, row_bytes].
  virtual void CopyToDevice(const LayerRows& to, const void* from) = 0;
  virtual void CopyToHost(void* to, const LayerRows& from) = 0;
  virtual void Run(const Launch& launch) = 0;

  // Commands between BeginGraph and EndGraph do not run: launches, marks and waits for peers, none
  // of them for a mark ahead of BeginGraph, and no copies. RunGraph gives them to the device at
  // once, as often as it is called. A peer that waits for a mark of the graph belongs to it from
  // there on, and the graph ends when the commands of all have. kUnavailable: a device is lost.
  virtual void BeginGraph() = 0;
  virtual Result<int32_t> EndGraph() = 0;
  virtual void RunGraph(int32_t graph) = 0;
  virtual void FreeGraph(int32_t graph) = 0;

  // Puts a mark behind all commands so far; marks count from 1.
  virtual int64_t Mark() = 0;
  // Waits until the mark has passed.
  virtual Status Wait(int64_t mark) = 0;

  Status WaitForAll() { return Wait(Mark()); }

  // A peer is another device of the same kind. Connect lets kernels of this device write to the
  // peer's memory. kUnavailable if there is no link between the two.
  virtual Status Connect(Device& peer) = 0;
  // Later commands wait until the peer's mark has passed. If the peer is lost, so is this device.
  virtual void WaitForPeer(Device& peer, int64_t mark) = 0;
};

// Memory of a device or of its host. The destructor frees it. The device outlives the buffer.
class Buffer {
 public:
  enum class Place : uint8_t { kDevice, kHost };

  Buffer() = default;
  ~Buffer() { Release(); }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Release();
    device_ = std::exchange(other.device_, nullptr);
    place_ = other.place_;
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  static Result<Buffer> Make(Device* device, Place place, size_t bytes) {
    Buffer buffer;
    if (bytes == 0) return buffer;
    SKEIN_ASSIGN_OR_RETURN(buffer.data_, place == Place::kDevice ? device->Allocate(bytes)
                                                                 : device->AllocateHost(bytes));
    buffer.device_ = device;
    buffer.place_ = place;
    buffer.bytes_ = bytes;
    return buffer;
  }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void Release() {
    if (device_ == nullptr) return;
    place_ == Place::kDevice ? device_->Free(data_) : device_->FreeHost(data_);
    device_ = nullptr;
  }

  Device* device_ = nullptr;
  Place place_ = Place::kDevice;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace skein::cuda
