// A closure on its way: what the user scheduled, where it stands, and what became of it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/graph/function.h"
#include "core/tensor/tensor.h"

namespace cairn {

class PerWorkerDataset;

// How a user's thread waits for the engine. The simulation lets virtual time pass instead of
// sleeping.
class Waiting {
 public:
  virtual ~Waiting() = default;
  // Until `ready()` (called with `hold` locked) or `limit` has passed; false: the limit.
  virtual bool wait(std::unique_lock<std::mutex>& hold, std::condition_variable& changed,
                    Duration limit, const std::function<bool()>& ready) = 0;
  // A fetch begins to wait, or has ended: its answer, or the caller's next closure, is due.
  virtual void fetch_begins() {}
  virtual void fetch_ended() {}
};
// Waits by sleeping. `busy(d)` is called when the engine will be needed within `d`.
std::unique_ptr<Waiting> make_thread_waiting(std::function<void(Duration)> busy = nullptr);

inline constexpr Duration kForever = std::chrono::hours(24 * 365);

// A function as the workers know it.
struct RegisteredFunction {
  std::uint32_t id = 0;
  // For people: the name of the first function that is this graph.
  std::string name;
  std::shared_ptr<const ConcreteFunction> concrete;
  // Whether it pushes: such a closure counts steps, and a cut has to know how it ended.
  bool updates = false;
  // A function without variables runs even while ps are away.
  bool uses_variables = false;
  bool assigns = false;  // Graph::assigns()
  // How many elements one run takes from each iterator argument.
  std::vector<std::int64_t> elements;
  // How many steps one run counts: the elements of the first iterator, or 1 without any.
  std::int64_t steps = 1;
};

// `count` elements from `ordinal` of pipeline `pipeline`: fixed when the closure is first sent,
// kept on retry. No element: that pipeline has ended, and others are to be taken instead.
struct TakeRecord {
  std::uint64_t pipeline = 0;
  std::uint64_t ordinal = 0;
  std::uint32_t count = 0;
};

// The mutex under which closures' outcomes and the queue live, and the condition that says "look
// again".
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  // Called, without the mutex, when the program begins to wait; set before the first closure is
  // put. Null: the engine does not want to know.
  std::function<void()> waiting_begins;
};

// The fields are in three groups, by who may touch them: those that are fixed once the closure is
// queued, those of the engine's thread, and those under the board's mutex, by which user and engine
// meet.
struct Closure {
  // Given by the queue as the closure is put, from 1 upwards. Shards know the closure by this
  // number.
  std::uint64_t sequence = 0;
  std::shared_ptr<const RegisteredFunction> function;
  std::vector<Tensor> arguments;
  // beside arguments; where set, the lane's own value is sent
  std::vector<std::shared_ptr<const std::vector<Tensor>>> per_worker;
  std::vector<std::shared_ptr<const PerWorkerDataset>> datasets;  // one an iterator argument
  std::uint64_t oldest_layout = 0;  // that holds all its variables: it can be sent by no older one

  // The engine's thread only.
  std::vector<TakeRecord> takes;
  // Given as the closure first leaves the queue, and kept for as often as it runs; -1: not yet, or
  // it updates nothing. One that was left out of its round is given that of the next.
  std::int64_t global_step = -1;
  std::uint32_t attempts = 0;
  // The layout by which its last attempt was sent.
  std::uint64_t sent_layout = 0;
  // Under synchronous(b) and HybridStrategy.
  struct Share {
    std::uint64_t round = 0;  // the last one that it was a member of (RoundsPolicy); 0: of none
    std::int32_t member = 0;  // its number there
    // Under HybridStrategy: of its lane, and the round after which copies of what is mirrored are
    // as the ps have it; 0: no copy is.
    std::uint64_t group = 0;
    std::uint64_t base = 0;
    bool ahead = false;  // the ps have not applied that round yet
  };
  Share share;
  // It was sent to a worker or met a ps that was lost: some shards may have its push and others
  // not.
  bool maybe_torn = false;

  // Guarded by the board's mutex.
  enum class Outcome : std::uint8_t { kPending, kReady, kFailed };
  Outcome outcome = Outcome::kPending;
  std::vector<Tensor> outputs;
  std::exception_ptr error;
  std::exception_ptr cause;  // of one that was cancelled: the error for which it was
  // A thread waits for this closure, or has asked whether it is done, and is woken as it ends.
  bool awaited = false;
  std::uint64_t generation = 0;  // of the queue when it was scheduled
  // It was sent once and came back, so that it holds elements of its datasets.
  bool returned = false;
  // Some shards may have its push already: it is run to its end, whatever else fails.
  bool must_finish = false;
};

// A closure's future outputs. Copies mean the same value. Thread: any.
class RemoteValue {
 public:
  RemoteValue() = default;
  RemoteValue(std::shared_ptr<Closure> closure, std::shared_ptr<Board> board,
              std::shared_ptr<Waiting> waiting)
      : closure_(std::move(closure)), board_(std::move(board)), waiting_(std::move(waiting)) {}

  // Waits for the closure and gives its outputs. Errors: the closure's own, as often as asked;
  // Cancelled: it was in the queue when another failed, whose error the message names;
  // DeadlineExceeded.
  std::vector<Tensor> get_all(Duration limit = kForever) const;
  // the only (or first) output
  Tensor get(Duration limit = kForever) const;
  Tensor get(const std::string& name, Duration limit = kForever) const;  // by name
  // The names of the outputs, in their order; known at once.
  std::shared_ptr<const std::vector<std::string>> output_names() const;
  bool ready() const;  // it would not wait
  // The first error, for which the closure was cancelled; none: it was not, or the program itself
  // cancelled it.
  std::exception_ptr cause() const;
  bool defined() const { return closure_ != nullptr; }

 private:
  std::shared_ptr<Closure> closure_;
  std::shared_ptr<Board> board_;
  std::shared_ptr<Waiting> waiting_;
};

}  // namespace cairn
