// CUDA graphs of steps, and their times.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "bench/gpu/embedding_job.h"
#include "core/kernels/cuda/embedding/launch.h"

namespace cairn::bench {

// A stream that ends. `ahead`: its kernels go before those of other streams.
class OwnStream {
 public:
  enum class Order { kUsual, kAhead };
  explicit OwnStream(Order order = Order::kUsual) {
    int least = 0, greatest = 0;
    cuda::check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    cuda::check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                                  order == Order::kAhead ? greatest : least),
                     "making a stream");
  }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  enum class Use { kOrder, kTime };
  explicit Event(Use use) {
    cuda::check_cuda(cudaEventCreateWithFlags(
                         &event_, use == Use::kTime ? cudaEventDefault : cudaEventDisableTiming),
                     "making an event");
  }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(other.event_) { other.event_ = nullptr; }
  Event& operator=(Event&&) = delete;
  void record(cudaStream_t stream) const {
    cuda::check_cuda(cudaEventRecord(event_, stream), "recording an event");
  }
  void wait(cudaStream_t stream) const {
    cuda::check_cuda(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
  }
  double ms_since(const Event& begin) const {
    float ms = 0;
    cuda::check_cuda(cudaEventElapsedTime(&ms, begin.event_, event_), "reading a time");
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Captures what `work` enqueues on `stream` as a CUDA graph, which can be launched many times.
class Graph {
 public:
  template <typename Work>
  Graph(cudaStream_t stream, const Work& work) {
    cudaGraph_t graph = nullptr;
    cuda::check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                     "beginning a capture");
    work();
    cuda::check_cuda(cudaStreamEndCapture(stream, &graph), "ending a capture");
    const cudaError_t made = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    cuda::check_cuda(made, "making a graph");
  }
  ~Graph() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
  }
  Graph(Graph&& other) noexcept : exec_(other.exec_) { other.exec_ = nullptr; }
  Graph& operator=(Graph&&) = delete;
  void launch(cudaStream_t stream) const {
    cuda::check_cuda(cudaGraphLaunch(exec_, stream), "launching a graph");
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

// Replays the graphs in turn. `before`, if not empty, holds what must run before each and is not
// measured. The first few replays warm up.
inline Measured time_graphs(const std::string& name, const std::vector<Graph>& graphs,
                            const std::vector<Graph>& before, int replays, cudaStream_t stream) {
  std::vector<Event> begins, ends;
  for (int i = 0; i < replays; ++i) {
    begins.emplace_back(Event::Use::kTime);
    ends.emplace_back(Event::Use::kTime);
  }
  const int warm_up = 2 * static_cast<int>(graphs.size());
  for (int i = -warm_up; i < replays; ++i) {
    const std::size_t which = static_cast<std::size_t>(i + warm_up) % graphs.size();
    if (!before.empty()) before[which].launch(stream);
    if (i >= 0) begins[static_cast<std::size_t>(i)].record(stream);
    graphs[which].launch(stream);
    if (i >= 0) ends[static_cast<std::size_t>(i)].record(stream);
  }
  cuda::check_cuda(cudaStreamSynchronize(stream), "running steps");
  std::vector<double> times;
  for (std::size_t i = 0; i < begins.size(); ++i) times.push_back(ends[i].ms_since(begins[i]));
  std::sort(times.begin(), times.end());
  return {name, times[times.size() / 2], times.front(), times.back(), 0};
}

}  // namespace cairn::bench
