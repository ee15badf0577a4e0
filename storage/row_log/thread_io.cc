// Threads of pread and pwrite, for where the kernel refuses io_uring.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "storage/row_log/file_io.h"

namespace cairn::storage {
namespace {

class ThreadIo final : public FileIo {
 public:
  ThreadIo(std::size_t threads, int eventfd) : eventfd_(eventfd) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ThreadIo() override {
    {
      std::lock_guard hold(mutex_);
      ending_ = true;
    }
    ready_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void begin(std::span<const FileRequest> requests) override {
    {
      std::lock_guard hold(mutex_);
      requests_.insert(requests_.end(), requests.begin(), requests.end());
    }
    if (requests.size() == 1)
      ready_.notify_one();
    else
      ready_.notify_all();
  }

  void take(std::vector<FileResult>& results) override {
    std::lock_guard hold(mutex_);
    results.insert(results.end(), results_.begin(), results_.end());
    results_.clear();
  }

  std::string_view name() const override { return "threads"; }

 private:
  static FileResult carry_out(const FileRequest& request) {
    const auto offset = static_cast<off_t>(request.offset);
    const ssize_t bytes = request.access == FileAccess::kRead
                              ? ::pread(request.descriptor, request.data, request.bytes, offset)
                              : ::pwrite(request.descriptor, request.data, request.bytes, offset);
    return {request.tag, bytes < 0 ? -errno : bytes};
  }
  void work() {
    std::unique_lock hold(mutex_);
    for (;;) {
      ready_.wait(hold, [this] { return ending_ || !requests_.empty(); });
      if (requests_.empty()) return;
      const FileRequest request = requests_.front();
      requests_.pop_front();
      hold.unlock();
      const FileResult result = carry_out(request);
      hold.lock();
      results_.push_back(result);
      // One signal until take() has come is enough. It is given under the lock, since the eventfd
      // may go when take() has given back the last result.
      if (results_.size() == 1) ::eventfd_write(eventfd_, 1);
    }
  }

  int eventfd_;
  std::mutex mutex_;  // guards the four below
  std::condition_variable ready_;
  std::deque<FileRequest> requests_;
  std::vector<FileResult> results_;
  bool ending_ = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace

std::unique_ptr<FileIo> make_thread_io(std::size_t threads, int eventfd) {
  return std::make_unique<ThreadIo>(threads > 0 ? threads : 1, eventfd);
}

}  // namespace cairn::storage
