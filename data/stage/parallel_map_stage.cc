// map() with several calls of its function at once.
//
// Only the thread that calls next() reads the stage below. It cuts what it reads into items, which
// are processed by whichever thread is free first: another lane of the Offload, or the reading
// thread itself when it would otherwise have to wait. So it never waits for a job that a busy lane
// has not started, and the stage works below a prefetch() and with any number of threads. Jobs
// touch nothing but items, so the stage can drop them, to go back or when it is destroyed, without
// waiting for a job.
//
// Each item carries the state that the stage below had after it, as in prefetch().
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "core/base/processors.h"
#include "data/dataset/stage.h"
#include "data/stage/map_function.h"

namespace cairn {
namespace {

constexpr std::int64_t kTunedCallsMax = 16;

struct MapItem {
  Block input;                   // never empty
  std::vector<std::byte> after;  // the state below from after `input`
  Mapped made;                   // once `done`
  std::int64_t begin = 0;        // the element of `input` that `made` begins with
  bool done = false;             // guarded by the mutex of what is shared
};
using MapItemPtr = std::shared_ptr<MapItem>;

// Shared by the stage and its jobs.
struct MapCalls {
  MapCalls(const StageSpec& spec, std::size_t lanes) : function(spec), at_work(lanes) {}
  const MapFunction function;
  std::mutex mutex;                                    // guards what follows
  std::condition_variable changed;                     // an item is done
  std::deque<MapItemPtr> waiting;                      // items that no thread has taken, in order
  std::vector<std::unique_ptr<Workspace>> workspaces;  // those that no call uses
  std::vector<bool> at_work;                           // lane by lane: it has a job
};

// Runs the function on the first item that no thread has taken; false: there is none.
bool run_one(MapCalls& calls, std::unique_lock<std::mutex>& hold) {
  if (calls.waiting.empty()) return false;
  const MapItemPtr item = std::move(calls.waiting.front());
  calls.waiting.pop_front();
  std::unique_ptr<Workspace> workspace;
  if (!calls.workspaces.empty()) {
    workspace = std::move(calls.workspaces.back());
    calls.workspaces.pop_back();
  }
  hold.unlock();
  if (!workspace) workspace = std::make_unique<Workspace>();
  item->made = calls.function.run(item->input, *workspace);
  hold.lock();
  calls.workspaces.push_back(std::move(workspace));
  item->done = true;
  calls.changed.notify_all();
  return true;
}

// A lane's job. It ends after `items` items, so that other lanes get its thread too.
void run_some(MapCalls& calls, std::size_t lane, std::size_t items) {
  std::unique_lock hold(calls.mutex);
  while (items-- > 0 && run_one(calls, hold)) {
  }
  calls.at_work[lane] = false;
}

std::int64_t calls_of(const MapSpec& spec) {
  if (spec.calls != kAutotune) return spec.calls;
  const auto processors = static_cast<std::int64_t>(usable_processors());
  return std::clamp<std::int64_t>(processors, 1, kTunedCallsMax);
}

class ParallelMapStage final : public StageOver {
 public:
  ParallelMapStage(StagePtr input, const StageSpec& spec, const OpenOptions& options)
      : StageOver(std::move(input)),
        calls_(calls_of(std::get<MapSpec>(spec.kind))),
        shared_(std::make_shared<MapCalls>(spec, static_cast<std::size_t>(calls_ - 1))),
        options_(options) {
    remember();
  }
  ~ParallelMapStage() override { drop_items(); }

  Block next(std::int64_t most) override {
    read_ahead(most);
    if (items_.empty()) {
      if (read_error_) std::rethrow_exception(read_error_);
      return {};
    }
    const MapItemPtr front = items_.front();
    wait_for(*front);
    if (place_ > front->begin + front->made.block.size()) run_from_place(*front);
    const Mapped& made = front->made;
    const std::int64_t from = place_ - front->begin;
    if (from == made.block.size()) std::rethrow_exception(made.error);
    Block block = made.block.slice(from, std::min(from + most, made.block.size()));
    pass(block.size());
    return block;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count && !items_.empty()) {
      const std::int64_t step = std::min(count - gone, items_.front()->input.size() - place_);
      pass(step);
      gone += step;
    }
    if (gone == count) return gone;
    if (read_error_) go_back();
    gone += input_->skip(count - gone);
    remember();
    return gone;
  }
  void restart(std::uint64_t epoch) override {
    drop_items();
    epoch_ = epoch;
    most_ = 1;
    one_by_one_ = false;
    input_->restart(epoch);
    remember();
  }
  void save(StateWriter& out) const override {
    out.blob(before_);
    out.number(static_cast<std::uint64_t>(place_));
  }
  void load(StateReader& in) override {
    load_ahead(*input_, in);
    remember();
  }

 private:
  std::size_t items_max() const { return static_cast<std::size_t>(2 * calls_); }

  // Divides the requested examples evenly among the calls. With larger items, a single example of
  // a costly function would have to wait for hundreds that were not requested.
  void read_ahead(std::int64_t most) {
    const std::int64_t share = (most - 1) / calls_ + 1;
    most_ = std::max(most_, std::min(share, shared_->function.at_once()));
    while (!ended_ && !read_error_ && items_.size() < items_max()) {
      try {
        read_item();
      } catch (...) {
        if (one_by_one_ || most_ == 1) {
          read_error_ = std::current_exception();
        } else {
          go_back();
          one_by_one_ = true;
        }
      }
    }
  }
  void read_item() {
    const auto item = std::make_shared<MapItem>();
    item->input = input_->next(one_by_one_ ? 1 : most_);
    ended_ = item->input.empty();
    if (ended_) return;
    StateWriter after;
    input_->save(after);
    item->after = after.take();
    items_.push_back(item);
    give_out(item);
  }
  // Lets the stage below stand after the last item again, where an error has left it anywhere. The
  // elements before the bad one are then read one by one, so that the error comes at its place.
  void go_back() {
    const std::vector<std::byte>& state = items_.empty() ? before_ : items_.back()->after;
    input_->restart(epoch_);
    StateReader in(state);
    input_->load(in);
    read_error_ = nullptr;
  }
  // An inline Offload works inside submit(), so the lock is released meanwhile.
  void give_out(const MapItemPtr& item) {
    std::unique_lock hold(shared_->mutex);
    shared_->waiting.push_back(item);
    const auto idle = std::find(shared_->at_work.begin(), shared_->at_work.end(), false);
    if (idle == shared_->at_work.end()) return;
    *idle = true;
    const auto lane = static_cast<std::size_t>(idle - shared_->at_work.begin());
    hold.unlock();
    options_.offload->submit(
        options_.lane + 1 + lane,
        [shared = shared_, lane, items = items_max()] { run_some(*shared, lane, items); });
  }
  void wait_for(const MapItem& item) {
    std::unique_lock hold(shared_->mutex);
    while (!item.done) {
      if (run_one(*shared_, hold)) continue;
      if (!shared_->changed.wait_for(hold, options_.prefetch_deadline, [&] { return item.done; }))
        throw DeadlineExceededError(
            str("map: a call of the function took more than ", options_.prefetch_deadline.count(),
                " ms; give it smaller batches, or raise OpenOptions::prefetch_deadline"));
    }
  }
  // An element was skipped at which the function throws: those after it are still to be made.
  void run_from_place(MapItem& item) {
    item.made = shared_->function.run(item.input.slice(place_, item.input.size()), workspace_);
    item.begin = place_;
  }
  // Elements of the first item are gone.
  void pass(std::int64_t elements) {
    place_ += elements;
    const MapItemPtr front = items_.front();
    if (place_ < front->input.size()) return;
    before_ = std::move(front->after);
    place_ = 0;
    items_.pop_front();
    std::lock_guard hold(shared_->mutex);
    if (!shared_->waiting.empty() && shared_->waiting.front() == front)
      shared_->waiting.pop_front();
  }
  void drop_items() {
    std::lock_guard hold(shared_->mutex);
    shared_->waiting.clear();
    items_.clear();
    place_ = 0;
    ended_ = false;
    read_error_ = nullptr;
  }
  void remember() {
    StateWriter state;
    input_->save(state);
    before_ = state.take();
  }

  const std::int64_t calls_;
  const std::shared_ptr<MapCalls> shared_;
  const OpenOptions options_;
  std::deque<MapItemPtr> items_;   // read, and not handed out; in order
  std::int64_t place_ = 0;         // elements of the first one handed out
  std::vector<std::byte> before_;  // the state below from before the first one
  std::int64_t most_ = 1;          // elements of an item, at most
  bool one_by_one_ = false;        // an error is near
  bool ended_ = false;             // nothing follows the items,
  std::exception_ptr read_error_;  // or this does
  std::uint64_t epoch_ = 0;
  Workspace workspace_;
};

}  // namespace

StagePtr make_parallel_map_stage(StagePtr input, const StageSpec& spec,
                                 const OpenOptions& options) {
  return std::make_unique<ParallelMapStage>(std::move(input), spec, options);
}

}  // namespace cairn
