#include "core/base/offload.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace cairn {
namespace {

// One thread and its queue. A lane always goes to the same thread, which is all that its order
// needs: no lane has a lock or a queue of its own.
class WorkThread {
 public:
  WorkThread() : thread_([this] { loop(); }) {}
  ~WorkThread() {
    submit({});  // an empty job ends the loop, after all that came before it
    thread_.join();
  }
  void submit(std::function<void()> work) {
    {
      std::lock_guard hold(mutex_);
      jobs_.push_back(std::move(work));
    }
    // After the lock is released, so that the thread does not wake up only to wait for it.
    ready_.notify_one();
  }

 private:
  void loop() {
    for (;;) {
      std::unique_lock hold(mutex_);
      ready_.wait(hold, [this] { return !jobs_.empty(); });
      auto work = std::move(jobs_.front());
      jobs_.pop_front();
      // Work may take long, and may submit more to this very thread.
      hold.unlock();
      if (!work) return;
      work();
    }
  }
  std::mutex mutex_;  // guards jobs_
  std::condition_variable ready_;
  std::deque<std::function<void()>> jobs_;
  std::thread thread_;  // last: it uses all of the above
};

// The destructor joins one thread after the other, each when its queue is empty.
class ThreadOffload final : public Offload {
 public:
  explicit ThreadOffload(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<WorkThread>());
  }
  void submit(std::size_t lane, std::function<void()> work) override {
    threads_[lane % threads_.size()]->submit(std::move(work));
  }

 private:
  std::vector<std::unique_ptr<WorkThread>> threads_;
};

class InlineOffload final : public Offload {
 public:
  void submit(std::size_t, std::function<void()> work) override { work(); }
};

}  // namespace

std::unique_ptr<Offload> make_thread_offload(std::size_t threads) {
  return std::make_unique<ThreadOffload>(threads > 0 ? threads : 1);
}
std::unique_ptr<Offload> make_inline_offload() { return std::make_unique<InlineOffload>(); }

}  // namespace cairn
