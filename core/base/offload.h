// The seam through which a loop hands blocking work (files, decompression, prefetching) to another
// thread. The simulation runs it on its own loop, after a delay drawn from the seed, so that orders
// which threads seldom produce are tried too.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>

namespace cairn {

// Runs blocking work elsewhere. There is no completion signal: the work reports its own end, mostly
// by posting to the loop of its caller.
class Offload {
 public:
  virtual ~Offload() = default;
  // Runs `work` once, on another thread or within the call; `work` must not throw. Work submitted
  // under one `lane` runs in order, never two pieces at a time, so that state which one lane's work
  // alone touches needs no lock.
  //   Thread  any.
  //   Cost  a lock and a wake-up. The queue has no bound: callers bound what they submit.
  virtual void submit(std::size_t lane, std::function<void()> work) = 0;
};

// An Offload of `threads` threads (at least one); a lane belongs to thread lane % threads. Its
// destructor finishes what was submitted.
std::unique_ptr<Offload> make_thread_offload(std::size_t threads);
// Runs the work inside submit(): for tests, tools and the simulation.
std::unique_ptr<Offload> make_inline_offload();

}  // namespace cairn
