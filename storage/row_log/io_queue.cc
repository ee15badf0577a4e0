#include "storage/row_log/io_queue.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"

namespace cairn::storage {
namespace {

// A request that the system did in part goes on at such a boundary, as O_DIRECT wants it.
constexpr std::size_t kSectorBytes = 512;
// So often the system may ask for a repetition, or do a part only, before that is an error.
constexpr int kAttemptsMax = 64;

}  // namespace

IoQueue::IoQueue(const IoQueueOptions& options)
    : options_(options), eventfd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (eventfd_ < 0) throw ResourceExhaustedError(str("cannot make an eventfd: ", strerror(errno)));
  const std::size_t places = options_.depth + options_.behind_depth;
  if (options_.road == IoRoad::kUringOrThreads) {
    io_ = make_uring_io(places, eventfd_);
    if (!io_)
      log_warning("this system refuses io_uring: ", options_.threads,
                  " threads read cold rows instead, which takes twice the processor time");
  }
  if (!io_) io_ = make_thread_io(options_.threads, eventfd_);
  if (options_.wrap) io_ = options_.wrap(std::move(io_));
  places_.resize(places);
  for (std::size_t i = places; i-- > 0;) {
    const bool now = i < options_.depth;
    if (now) places_[i].buffer = make_aligned_buffer(options_.read_bytes);
    (now ? now_ : behind_).free.push_back(static_cast<std::uint32_t>(i));
  }
}

IoQueue::~IoQueue() {
  io_.reset();
  ::close(eventfd_);
}

void IoQueue::read(Owner owner, int descriptor, std::uint64_t offset, std::size_t bytes,
                   Urgency urgency, ReadDone done) {
  lane(urgency).pending.push_back(
      {owner, {FileAccess::kRead, descriptor, offset, nullptr, bytes}, urgency, std::move(done)});
}

void IoQueue::write(Owner owner, int descriptor, std::uint64_t offset, std::byte* data,
                    std::size_t bytes, WriteDone done) {
  behind_.pending.push_back({owner,
                             {FileAccess::kWrite, descriptor, offset, data, bytes},
                             Urgency::kBehind,
                             {},
                             std::move(done)});
}

void IoQueue::post(Owner owner, std::function<void()> work) {
  due_.push_back({owner, std::move(work)});
  ::eventfd_write(eventfd_, 1);
}

void IoQueue::start() {
  begin_pending(now_);
  begin_pending(behind_);
  if (beginning_.empty()) return;
  io_->begin(beginning_);
  beginning_.clear();
}

void IoQueue::begin_pending(Lane& lane) {
  while (!lane.pending.empty() && !lane.free.empty()) {
    const std::uint32_t number = lane.free.back();
    Place& place = places_[number];
    lane.free.pop_back();
    place.request = std::move(lane.pending.front());
    lane.pending.pop_front();
    place.taken = true;
    ++taken_;
    FileRequest& file = place.request.file;
    file.tag = number;
    if (file.access == FileAccess::kRead) {
      const bool fits = place.buffer && file.bytes <= options_.read_bytes;
      if (!fits) place.large_buffer = make_aligned_buffer(file.bytes);
      file.data = fits ? place.buffer.get() : place.large_buffer.get();
    }
    beginning_.push_back(file);
  }
}

void IoQueue::free_place(std::uint32_t number) {
  Place& place = places_[number];
  if (place.forgotten) --forgotten_;
  lane(place.request.urgency).free.push_back(number);
  place.request = {};
  place.large_buffer.reset();
  place.done = 0;
  place.attempts = 0;
  place.taken = place.forgotten = false;
  --taken_;
}

// The eventfd is emptied first: what ends afterwards makes it readable again.
void IoQueue::collect() {
  eventfd_t times = 0;
  ::eventfd_read(eventfd_, &times);
  results_.clear();
  io_->take(results_);
  for (const FileResult& result : results_) settle(result);
}

void IoQueue::settle(const FileResult& result) {
  const auto number = static_cast<std::uint32_t>(result.tag);
  Place& place = places_[number];
  if (place.forgotten) {
    free_place(number);
    return;
  }
  int error = 0;
  ++place.attempts;
  const bool repeat = result.result == -EINTR || result.result == -EAGAIN;
  if (result.result < 0 && !repeat) {
    error = static_cast<int>(-result.result);
  } else if (result.result == 0 || place.attempts > kAttemptsMax) {
    error = EIO;  // the file ends before what is wanted, or the system makes no headway
  } else if (!repeat) {
    place.done += static_cast<std::size_t>(result.result);
    if (place.done < place.request.file.bytes) place.done -= place.done % kSectorBytes;
  }
  if (error == 0 && place.done < place.request.file.bytes) {
    FileRequest rest = place.request.file;
    rest.offset += place.done;
    rest.data += place.done;
    rest.bytes -= place.done;
    beginning_.push_back(rest);
    return;
  }
  due_.push_back({place.request.owner, {}, number, error});
}

void IoQueue::call(Due due) {
  if (due.posted) {
    due.posted();
    return;
  }
  Request& request = places_[due.place].request;
  if (request.read_done) {
    const ReadDone done = std::move(request.read_done);
    done(due.error, request.file.data);
  } else {
    const WriteDone done = std::move(request.write_done);
    done(due.error);
  }
  free_place(due.place);
}

void IoQueue::poll() {
  collect();
  // A callback may post, which is for the next poll(), and may forget what is still due.
  for (std::size_t left = due_.size(); left > 0 && !due_.empty(); --left) {
    Due due = std::move(due_.front());
    due_.pop_front();
    call(std::move(due));
  }
  if (!due_.empty()) ::eventfd_write(eventfd_, 1);
  start();
}

void IoQueue::wait() {
  start();
  pollfd ready = {eventfd_, POLLIN, 0};
  while (::poll(&ready, 1, -1) < 0 && errno == EINTR) {
  }
  poll();
}

void IoQueue::forget(Owner owner) {
  for (Lane* lane : {&now_, &behind_})
    std::erase_if(lane->pending, [owner](const Request& each) { return each.owner == owner; });
  std::erase_if(due_, [this, owner](const Due& each) {
    if (each.owner != owner) return false;
    if (!each.posted) free_place(each.place);
    return true;
  });
  for (Place& place : places_) {
    if (!place.taken || place.request.owner != owner) continue;
    // Within this owner's own callback nothing of that place is under way any more.
    if (!place.request.read_done && !place.request.write_done) continue;
    place.forgotten = true;
    ++forgotten_;
  }
  start();  // the rests of requests that were done in part, which the loop below would wait for
  while (forgotten_ > 0) {
    pollfd ready = {eventfd_, POLLIN, 0};
    ::poll(&ready, 1, -1);
    collect();
    start();
  }
  if (!due_.empty()) ::eventfd_write(eventfd_, 1);
}

}  // namespace cairn::storage
