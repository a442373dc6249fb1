#include "cuda/device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/cuda_maps.h"
#include "cuda/kernels/device_kernels.h"

namespace skein::cuda {
namespace {

Status ErrorOf(const char* call, cudaError_t error) {
  return Status(StatusCode::kUnavailable, std::string(call) + ": " + cudaGetErrorName(error) +
                                              ", " + cudaGetErrorString(error));
}

// The matrices of `rows`, as the driver describes memory.
cudaPitchedPtr MatricesOf(const LayerRows& rows) {
  return {.ptr = rows.base,
          .pitch = rows.row_bytes,
          .xsize = rows.row_bytes,
          .ysize = static_cast<size_t>(rows.num_rows)};
}

class CudaDevice final : public Device {
 public:
  ~CudaDevice() override {
    for (const Event& event : events_) cudaEventDestroy(event.event);
    for (const cudaEvent_t event : free_events_) cudaEventDestroy(event);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  Status Open(int index) {
    int count = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
      status_ = Status(StatusCode::kUnavailable,
                       std::string("there is no NVIDIA GPU here, or no driver for it: ") +
                           cudaGetErrorString(error));
      return status_;
    }
    if (index >= count) {
      return Status(StatusCode::kUnavailable, "there is no GPU " + std::to_string(index) +
                                                  "; this machine has " + std::to_string(count));
    }
    cudaDeviceProp properties = {};
    index_ = index;
    Use();
    Check("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, index));
    Check("cudaStreamCreate", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    name_ = properties.name;
    const int32_t max_shared = static_cast<int32_t>(properties.sharedMemPerBlockOptin);
    shared_bytes_ = max_shared;
    processors_ = properties.multiProcessorCount;
    maps_.Open();
    // Without this setting, a kernel may use at most 48 KiB of shared memory.
    for (int id = 0; id < kNumKernels && status_.ok(); ++id) {
      const void* kernel = DeviceKernel(static_cast<KernelId>(id));
      cudaFuncAttributes attributes = {};
      Check("cudaFuncGetAttributes", cudaFuncGetAttributes(&attributes, kernel));
      // Kernels compiled for older architectures, by the driver too, do not wait for each other.
      kernels_overlap_ = kernels_overlap_ && attributes.ptxVersion >= kFirstPtxThatWaits;
      Check("cudaFuncSetAttribute",
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 max_shared - static_cast<int32_t>(attributes.sharedSizeBytes)));
    }
    return status_;
  }

  const std::string& name() const override { return name_; }
  int64_t shared_bytes() const override { return shared_bytes_; }
  bool has_phases() const override { return kernels_overlap_; }
  int64_t persistent_blocks() const override {
    return kernels_overlap_ && maps_.is_open() ? processors_ : 0;
  }

  DeviceMemory Memory() override {
    Use();
    size_t free_bytes = 0, total_bytes = 0;
    Check("cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total_bytes));
    return {static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes)};
  }

  Result<void*> Allocate(size_t bytes) override {
    Use();
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // clears the error, which does not affect later calls
      const DeviceMemory left = Memory();
      return Status(StatusCode::kResourceExhausted,
                    "the device has " + std::to_string(left.free_bytes) + " of " +
                        std::to_string(left.total_bytes) + " bytes free; " + std::to_string(bytes) +
                        " are needed");
    }
    Check("cudaMalloc", error);
    Check("cudaMemsetAsync", cudaMemsetAsync(memory, 0, bytes, stream_));
    if (!status_.ok()) return status_;
    return memory;
  }
  void Free(void* memory) override {
    Use();
    cudaFree(memory);
  }

  Result<void*> AllocateHost(size_t bytes) override {
    Use();
    void* memory = nullptr;
    Check("cudaMallocHost", cudaMallocHost(&memory, bytes));
    if (!status_.ok()) return status_;
    return memory;
  }
  void FreeHost(void* memory) override {
    cudaStreamSynchronize(stream_);
    cudaFreeHost(memory);
  }

  void CopyToDevice(void* to, const void* from, size_t bytes) override {
    if (!status_.ok()) return;
    Use();
    Check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  }
  void CopyToHost(void* to, const void* from, size_t bytes) override {
    if (!status_.ok()) return;
    Use();
    Check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
  }
  void CopyToDevice(const LayerRows& to, const void* from) override {
    cudaMemcpy3DParms copy = {};
    copy.srcPtr =
        MatricesOf({.base = const_cast<void*>(from), .row_bytes = to.row_bytes, .num_rows = 1});
    copy.dstPtr = MatricesOf(to);
    copy.dstPos.y = static_cast<size_t>(to.row);
    copy.kind = cudaMemcpyHostToDevice;
    CopyLayers(to, copy);
  }
  void CopyToHost(void* to, const LayerRows& from) override {
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = MatricesOf(from);
    copy.srcPos.y = static_cast<size_t>(from.row);
    copy.dstPtr = MatricesOf({.base = to, .row_bytes = from.row_bytes, .num_rows = 1});
    copy.kind = cudaMemcpyDeviceToHost;
    CopyLayers(from, copy);
  }

  void Run(const Launch& launch) override {
    if (!status_.ok()) return;
    Use();
    if (launch.num_maps > 0) {
      Launch encoded = launch;
      if (const Status status = maps_.Encode(encoded); !status.ok()) {
        status_ = status;
        return;
      }
      return RunEncoded(encoded);
    }
    RunEncoded(launch);
  }

  void BeginGraph() override {
    if (!status_.ok()) return;
    Use();
    Check("cudaStreamBeginCapture",
          cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    graph_of_ = this;
    in_graph_ = {this};
  }
  Result<int32_t> EndGraph() override {
    if (graph_of_ == nullptr) return status_;  // BeginGraph has failed
    for (size_t i = 1; i < in_graph_.size(); ++i) WaitForPeer(*in_graph_[i], in_graph_[i]->Mark());
    cudaGraph_t recorded = nullptr;
    cudaGraphExec_t graph = nullptr;
    Use();
    Check("cudaStreamEndCapture", cudaStreamEndCapture(stream_, &recorded));
    if (status_.ok()) Check("cudaGraphInstantiate", cudaGraphInstantiate(&graph, recorded, 0));
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    for (CudaDevice* const device : in_graph_) device->LeaveGraph();
    if (!status_.ok()) return status_;
    graphs_.emplace(++last_graph_, graph);
    return last_graph_;
  }
  void RunGraph(int32_t graph) override {
    if (!status_.ok()) return;
    Use();
    Check("cudaGraphLaunch", cudaGraphLaunch(graphs_.at(graph), stream_));
    follows_peer_ = false;
  }
  void FreeGraph(int32_t graph) override {
    cudaGraphExecDestroy(graphs_.at(graph));
    graphs_.erase(graph);
  }

  int64_t Mark() override {
    Use();
    cudaEvent_t event = nullptr;
    if (!free_events_.empty()) {
      event = free_events_.back();
      free_events_.pop_back();
    } else {
      Check("cudaEventCreate", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    if (status_.ok()) Check("cudaEventRecord", cudaEventRecord(event, stream_));
    // The host cannot wait for a mark in a graph.
    (graph_of_ == nullptr ? events_ : graph_events_).push_back({++num_marks_, event});
    return num_marks_;
  }

  Status Wait(int64_t mark) override {
    cudaEvent_t last = nullptr;
    for (; !events_.empty() && events_.front().mark <= mark; events_.pop_front()) {
      if (events_.front().event == nullptr) continue;
      last = events_.front().event;
      free_events_.push_back(last);
    }
    // The driver spins here while the machine has more processors than GPU contexts.
    if (status_.ok() && last != nullptr) {
      Check("cudaEventSynchronize", cudaEventSynchronize(last));
    }
    return status_;
  }

  Status Connect(Device& peer) override {
    const auto& other = static_cast<const CudaDevice&>(peer);
    if (other.index_ == index_) return status_;  // two streams of one GPU
    Use();
    int can_access = 0;
    Check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can_access, index_, other.index_));
    if (status_.ok() && can_access == 0) {
      return Status(StatusCode::kUnavailable,
                    "GPU " + std::to_string(index_) + " cannot write to the memory of GPU " +
                        std::to_string(other.index_) +
                        "; --tp needs GPUs that can, --tp 1 does not",
                    "tp");
    }
    const cudaError_t error = cudaDeviceEnablePeerAccess(other.index_, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();  // clears the error, which does not affect later calls
    } else {
      Check("cudaDeviceEnablePeerAccess", error);
    }
    return status_;
  }

  void WaitForPeer(Device& peer, int64_t mark) override {
    auto& other = static_cast<CudaDevice&>(peer);
    if (status_.ok()) status_ = other.status_;
    if (!status_.ok()) return;
    Use();
    if (graph_of_ == nullptr && other.graph_of_ != nullptr) {
      graph_of_ = other.graph_of_;
      graph_of_->in_graph_.push_back(this);
    }
    // A mark that the host has waited for has no event any more.
    const std::deque<Event>& events = graph_of_ == nullptr ? other.events_ : other.graph_events_;
    const auto found = std::find_if(events.rbegin(), events.rend(),
                                    [mark](const Event& event) { return event.mark == mark; });
    if (found != events.rend()) {
      Check("cudaStreamWaitEvent", cudaStreamWaitEvent(stream_, found->event, 0));
    }
    follows_peer_ = true;
  }

 private:
  static constexpr int kFirstPtxThatWaits = 90;  // WaitForPreviousKernel (dialect.h)
  struct Event {
    int64_t mark = 0;
    cudaEvent_t event = nullptr;
  };

  // `copy` has all but the extent.
  void CopyLayers(const LayerRows& rows, cudaMemcpy3DParms& copy) {
    if (!status_.ok()) return;
    Use();
    copy.extent = {
        .width = rows.row_bytes, .height = 1, .depth = static_cast<size_t>(rows.num_layers)};
    Check("cudaMemcpy3DAsync", cudaMemcpy3DAsync(&copy, stream_));
  }

  // A launch whose maps have the driver's form.
  void RunEncoded(const Launch& launch) {
    void* args[] = {const_cast<std::byte*>(launch.args.data())};
    const Dim3& grid = launch.shape.grid;
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(grid.x, grid.y, grid.z);
    config.blockDim = dim3(launch.shape.threads);
    config.dynamicSmemBytes = launch.shape.shared_bytes;
    config.stream = stream_;
    config.attrs = &overlap;
    // A kernel that waits for a peer begins when all of the stream ahead of it has ended.
    config.numAttrs = kernels_overlap_ && !follows_peer_ ? 1 : 0;
    follows_peer_ = false;
    Check("cudaLaunchKernelExC", cudaLaunchKernelExC(&config, DeviceKernel(launch.kernel), args));
  }

  void LeaveGraph() {
    for (const Event& event : graph_events_) free_events_.push_back(event.event);
    graph_events_.clear();
    graph_of_ = nullptr;
  }

  // Makes this GPU the one that the thread's calls are for.
  void Use() { Check("cudaSetDevice", cudaSetDevice(index_)); }

  void Check(const char* call, cudaError_t error) {
    if (error != cudaSuccess && status_.ok()) status_ = ErrorOf(call, error);
  }

  int index_ = 0;
  std::string name_;
  int64_t shared_bytes_ = 0, processors_ = 0;
  cudaStream_t stream_ = nullptr;
  CudaMaps maps_;
  bool kernels_overlap_ = true;  // a kernel may start while the one before it runs
  bool follows_peer_ = false;    // the last command waits for a peer
  std::map<int32_t, cudaGraphExec_t> graphs_;
  int32_t last_graph_ = 0;
  CudaDevice* graph_of_ = nullptr;     // whose BeginGraph records this device's commands
  std::vector<CudaDevice*> in_graph_;  // that this device's BeginGraph records; itself first
  std::deque<Event> events_;
  std::deque<Event> graph_events_;  // of the graph at hand
  std::vector<cudaEvent_t> free_events_;
  int64_t num_marks_ = 0;
  Status status_;
};

}  // namespace

Result<std::unique_ptr<Device>> OpenCudaDevice(int index) {
  auto device = std::make_unique<CudaDevice>();
  SKEIN_RETURN_IF_ERROR(device->Open(index));
  return std::unique_ptr<Device>(std::move(device));
}

int32_t NumCudaDevices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

}  // namespace skein::cuda
