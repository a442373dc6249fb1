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

// A GPU with one stream: commands run in the order they are given, while the caller goes on. The
// memory that a command names stays valid and unchanged until a mark behind the command has passed.
//
// A command that fails loses the device: every later command does nothing, and every Wait returns
// that error, kUnavailable. Thread rule: one thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& name() const = 0;
  virtual DeviceMemory Memory() = 0;

  // Memory of the device, 256-byte aligned, zeroed before later commands. kResourceExhausted: it
  // has no room.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Memory of the host that the device copies from and to.
  virtual Result<void*> AllocateHost(size_t bytes) = 0;
  virtual void FreeHost(void* memory) = 0;

  virtual void CopyToDevice(void* to, const void* from, size_t bytes) = 0;
  virtual void CopyToHost(void* to, const void* from, size_t bytes) = 0;
  virtual void Run(const Launch& launch) = 0;

  // Puts a mark behind all commands so far; marks count from 1.
  virtual int64_t Mark() = 0;
  // Waits until the mark has passed.
  virtual Status Wait(int64_t mark) = 0;
  Status WaitForAll() { return Wait(Mark()); }
};

// Memory of a device or of its host, freed with the buffer. The device outlives it.
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
