// IoQueue: the reads and writes of a thread's row logs, told on that thread.
//
//   A loop waits until descriptor() is readable and then calls poll(), which calls back for each
//   request that has ended:
//
//     boost::asio::posix::stream_descriptor ready(context, ::dup(queue.descriptor()));
//     ready.async_wait(stream_descriptor::wait_read, [&](auto) { queue.poll(); /* wait again */ });
//
//   By io_uring there is no thread but the kernel's; where the kernel refuses it, threads make the
//   requests. Random reads (Urgency::kNow) and large requests (kBehind) have places of their own,
//   so that neither waits for the other in this queue.
//   Thread  one, which makes it, calls it, and destroys it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "storage/row_log/aligned_buffer.h"
#include "storage/row_log/file_io.h"

namespace cairn::storage {

// io_uring where the kernel has it, or threads whatever it has.
enum class IoRoad : std::uint8_t { kUringOrThreads, kThreads };

struct IoQueueOptions {
  IoRoad road = IoRoad::kUringOrThreads;
  std::size_t depth = 128;        // random reads that are under way at once
  std::size_t behind_depth = 8;   // large requests
  std::size_t threads = 16;       // where there is no io_uring
  std::size_t read_bytes = 4096;  // of the buffer that each of `depth` has; larger reads allocate
  // For tests: goes between the queue and the system.
  std::function<std::unique_ptr<FileIo>(std::unique_ptr<FileIo>)> wrap;
};

enum class Urgency : std::uint8_t { kNow, kBehind };

class IoQueue {
 public:
  // Requests belong to an owner, which forgets them before it goes.
  using Owner = const void*;
  // `error` is 0 or an errno. `data` are the bytes that were read, until the call returns. It must
  // not throw.
  using ReadDone = std::function<void(int error, const std::byte* data)>;
  using WriteDone = std::function<void(int error)>;

  //   Errors  ResourceExhausted: this process can open no more files.
  explicit IoQueue(const IoQueueOptions& options);
  // All owners have gone.
  ~IoQueue();
  IoQueue(const IoQueue&) = delete;
  IoQueue& operator=(const IoQueue&) = delete;

  // Reads or writes all of these bytes, or ends with an error: what the system did in part is
  // continued. Under O_DIRECT offset, bytes and data must be aligned as the file wants it. `data`
  // must stay until the write has ended. Requests begin with the next start() or poll().
  void read(Owner owner, int descriptor, std::uint64_t offset, std::size_t bytes, Urgency urgency,
            ReadDone done);
  void write(Owner owner, int descriptor, std::uint64_t offset, std::byte* data, std::size_t bytes,
             WriteDone done);
  // Has the next poll() call `work`.
  void post(Owner owner, std::function<void()> work);
  void start();

  // An eventfd, readable when poll() has something to do. Never read it.
  int descriptor() const { return eventfd_; }
  // Calls back for what has ended, and begins what waits for a place. Never blocks. Callbacks may
  // call the queue, but for poll() and wait().
  void poll();
  // Blocks until something has ended, then calls poll().
  void wait();
  // None of the owner's callbacks is called from now on, and none of its buffers is in use when
  // this returns: it blocks for those requests that are under way.
  void forget(Owner owner);

  std::string_view road() const { return io_->name(); }  // "io_uring" or "threads"
  // Requests that have not ended.
  std::size_t under_way() const { return now_.waiting() + behind_.waiting() + taken_; }

 private:
  struct Request {
    Owner owner = nullptr;
    FileRequest file;
    Urgency urgency = Urgency::kNow;
    ReadDone read_done;
    WriteDone write_done;
  };
  struct Place {
    Request request;
    AlignedBuffer buffer;        // of a place for random reads
    AlignedBuffer large_buffer;  // of a read that is larger
    std::size_t done = 0;        // bytes
    int attempts = 0;
    bool taken = false, forgotten = false;
  };
  struct Lane {
    std::deque<Request> pending;
    std::vector<std::uint32_t> free;  // places
    std::size_t waiting() const { return pending.size(); }
  };
  // A callback that is due: of a place, or posted.
  struct Due {
    Owner owner;
    std::function<void()> posted;
    std::uint32_t place = 0;
    int error = 0;
  };

  Lane& lane(Urgency urgency) { return urgency == Urgency::kNow ? now_ : behind_; }
  void begin_pending(Lane& lane);
  void collect();
  void settle(const FileResult& result);
  void call(Due due);
  void free_place(std::uint32_t number);

  IoQueueOptions options_;
  int eventfd_;
  std::unique_ptr<FileIo> io_;
  std::vector<Place> places_;
  Lane now_, behind_;
  std::size_t taken_ = 0;      // places
  std::size_t forgotten_ = 0;  // of these
  std::deque<Due> due_;
  std::vector<FileRequest> beginning_;
  std::vector<FileResult> results_;
};

}  // namespace cairn::storage
