// The seam through which a loop hands blocking work (files, decompression, prefetch) to another
// thread.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>

namespace cairn {

class Offload {
 public:
  virtual ~Offload() = default;
  // Runs `work` once, elsewhere or at once; work must not throw. Work submitted under one `lane`
  // runs in order, never two at a time. Thread: any.
  virtual void submit(std::size_t lane, std::function<void()> work) = 0;
};

// `threads` threads; a lane belongs to thread lane % threads. Its destructor finishes what was
// submitted.
std::unique_ptr<Offload> make_thread_offload(std::size_t threads);
// Runs work inside submit(): for tests, tools and the simulation.
std::unique_ptr<Offload> make_inline_offload();

}  // namespace cairn
