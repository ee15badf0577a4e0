// ClosureQueue: the bounded FIFO between the user's threads and the engine, and the rule for
// errors.
//
// The first error of a generation is kept and logged; queued closures are cancelled at once, with
// the reason, and running ones go on. The next schedule, join or done waits (bounded) for these,
// raises the error once, and a new generation begins: closures of the old one that still run have
// errors of their own and end no other generation. A closure that came back half pushed counts as
// running: it is completed, so that no error leaves half a closure on the shards.
//   Thread  user calls from any; engine calls from the engine's. No call holds the mutex across
//   anything slow.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "coordinator/cluster/closure.h"

namespace cairn {

struct QueueCounts {
  std::size_t queued = 0, inflight = 0;
  std::uint64_t scheduled = 0, finished = 0, retried = 0, cancelled = 0;
};

class ClosureQueue {
 public:
  static constexpr std::size_t kCapacity = 256 * 1024;

  // `wake` is called (any thread) when the engine should look at the queue. Capacity 0: no bound.
  ClosureQueue(std::size_t capacity, std::shared_ptr<Waiting> waiting, std::function<void()> wake);

  // ---- users ---- Blocks while the queue is full. Errors: the generation's first error; then the
  // closure is not queued.
  void put(std::shared_ptr<Closure> closure);
  // Until nothing is queued or running. Errors: the first error; DeadlineExceeded after `limit`,
  // naming what is left.
  void join(Duration limit);
  // The caller has it from the closure that it waited for: it is not raised once more, if it is the
  // one that would be.
  void told(const std::exception_ptr& error);
  bool done();    // would join() return at once? Raises as it does
  void cancel();  // cancels queued closures, without an error; running ones go on
  QueueCounts counts() const;
  const std::shared_ptr<Board>& board() const { return board_; }
  const std::shared_ptr<Waiting>& waiting() const { return waiting_; }

  // ---- engine ----
  // nullptr: nothing to send (or an error is pending)
  std::shared_ptr<Closure> pop();
  // engine's thread: what pop() would give, unless it is cancelled meanwhile
  std::shared_ptr<const Closure> front() const;
  std::size_t size() const;  // as of now
  // The first of those that came back and are `wanted` goes to the front. False: there is none.
  bool bring_forward(const std::function<bool(const Closure&)>& wanted);
  // An earlier coordinator's closures, by their numbers, which are run to their end whatever fails.
  // They are queued, but for those of the numbers `running`, which count as having left the queue.
  // The program counts as waiting until all have ended. New ones are numbered from `next_sequence`
  // on. Before the first closure is put.
  void resume(const std::vector<std::shared_ptr<Closure>>& open, std::uint64_t next_sequence,
              const std::set<std::uint64_t>& running = {});
  // The engine is woken whenever the program begins to wait. Before the first closure is put.
  void watch_waits() { board_->waiting_begins = wake_; }
  // Whether the program waits for one of these closures (get, ready), or for all (join, done), with
  // nothing scheduled since; or for those that an earlier coordinator had sent, before which it is
  // given no strategy; or an error is to be raised to it.
  bool program_waits(const std::vector<const Closure*>& closures) const;
  // To the front, keeping the order of sequence numbers; cancelled if its generation has failed,
  // unless it is half pushed.
  void put_back(std::shared_ptr<Closure> closure);
  void finish(Closure& closure, std::vector<Tensor> outputs);
  void fail(Closure& closure, std::exception_ptr error);  // the user's error: ends the generation
  // An error that belongs to no closure (a ps is lost for good, no worker came back): cancels what
  // is half pushed, too.
  void fail_all(std::exception_ptr error);
  // The sequence numbers below this are settled.
  std::uint64_t low_watermark() const;
  // Cancelled since the last call, of those that had been sent once: their elements are to be
  // spent.
  std::vector<std::shared_ptr<Closure>> take_cancelled();

 private:
  static std::exception_ptr cancelled_by(const std::exception_ptr& cause);
  void begin_failing(std::exception_ptr error);
  void cancel_queued();
  void cancel_one(const std::shared_ptr<Closure>& closure);
  bool running() const;
  std::exception_ptr take_error(std::unique_lock<std::mutex>& hold);
  void raise_if_failed(std::unique_lock<std::mutex>& hold);
  void settle(std::uint64_t sequence);

  const std::size_t capacity_;
  std::shared_ptr<Waiting> waiting_;
  std::function<void()> wake_;
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  // All below is guarded by board_->mutex.
  std::deque<std::shared_ptr<Closure>> queue_;
  std::deque<bool> settled_;  // of sequence numbers watermark_, watermark_ + 1, ...
  std::uint64_t watermark_ = 1;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t resumed_below_ = 0;  // numbers below this are an earlier coordinator's
  std::size_t inflight_ = 0;
  std::size_t joins_ = 0;    // under way
  bool done_asked_ = false;  // since the last closure was put
  std::uint64_t generation_ = 0;
  std::exception_ptr error_;  // of this generation
  // Given to closures that are cancelled now: the error of the newest generation that failed, and a
  // Cancelled that names it.
  std::exception_ptr cause_, cancellation_ = cancelled_by(nullptr);
  // it is one of the cluster's: nothing that is half pushed can be finished
  bool hopeless_ = false;
  std::vector<std::shared_ptr<Closure>> cancelled_;  // that had been sent
  QueueCounts counts_;
};

}  // namespace cairn
