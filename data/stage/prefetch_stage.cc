// prefetch(): reads ahead on an Offload lane.
//
// The stages below belong to the job while it runs and to nothing else; the queue is where the two
// threads meet. Each item carries the state below from after it, so what has been read ahead but
// not handed out is not part of save().
//
// A job ends when the queue is full, and next() submits another when there is room again: a job
// that waited for room would hold its lane's thread. Only one runs at a time (`running`), so
// elements keep their order.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "data/dataset/stage.h"

namespace cairn {
namespace {

constexpr std::int64_t kRowsAnItem = kExamplesAheadAtOnce;
// kAutotune: what it begins with, what it goes up to, and what it may hold.
constexpr std::int64_t kFewBatches = 2, kManyBatches = 64;
constexpr std::int64_t kFewExamples = 2 * kRowsAnItem, kManyExamples = 64 * kRowsAnItem;
constexpr std::int64_t kTunedBytesMax = std::int64_t{256} << 20;

struct Item {
  Block block;               // empty: the end of the data
  std::exception_ptr error;  // instead of a block
  std::vector<std::byte> after;
  std::int64_t skipped = 0;
};

struct Shared {
  std::mutex mutex;  // guards all but `input`
  std::condition_variable changed;
  std::deque<Item> queue;
  std::int64_t queued = 0;  // elements in it
  bool running = false;     // a job is submitted or at work: `input` is its own
  bool abandoned = false;   // stop soon
  bool ended = false;       // the last item of the queue is an end or an error
  std::unique_ptr<Stage> input;
};

Item read_item(Stage& input, std::int64_t most) {
  Item item;
  try {
    item.block = input.next(most);
  } catch (...) {
    item.error = std::current_exception();
  }
  StateWriter after;
  if (!item.error) input.save(after);
  item.after = after.take();
  item.skipped = input.skipped();
  return item;
}

void read_ahead(const std::shared_ptr<Shared>& shared, std::int64_t depth, std::int64_t most) {
  std::unique_lock hold(shared->mutex);
  while (!shared->abandoned && !shared->ended && shared->queued < depth) {
    std::int64_t room = std::min(most, depth - shared->queued);
    hold.unlock();
    Item item = read_item(*shared->input, room);
    hold.lock();
    shared->queued += item.block.size();
    shared->ended = item.block.empty();
    shared->queue.push_back(std::move(item));
    shared->changed.notify_all();
  }
  shared->running = false;
  shared->changed.notify_all();
}

class PrefetchStage final : public Stage {
 public:
  PrefetchStage(StagePtr input, std::int64_t depth, bool batched, const OpenOptions& options)
      : shared_(std::make_shared<Shared>()),
        depth_(depth == kAutotune ? (batched ? kFewBatches : kFewExamples) : depth),
        depth_max_(depth == kAutotune ? (batched ? kManyBatches : kManyExamples) : depth),
        most_(batched ? 1 : kRowsAnItem),
        options_(options) {
    shared_->input = std::move(input);
    remember();
  }
  ~PrefetchStage() override {
    std::lock_guard hold(shared_->mutex);
    // a job still at work keeps what it needs, and ends after its element
    shared_->abandoned = true;
  }

  Block next(std::int64_t most) override {
    if (place_ == current_.block.size() && !take()) return {};
    std::int64_t end = std::min(place_ + most, current_.block.size());
    Block block = current_.block.slice(place_, end);
    place_ = end;
    if (place_ == current_.block.size()) {
      before_ = std::move(current_.after);
      current_ = {};
      place_ = 0;
    }
    return block;
  }
  void restart(std::uint64_t epoch) override {
    stop();
    shared_->input->restart(epoch);
    remember();
  }
  void save(StateWriter& out) const override {
    out.blob(before_);
    out.number(static_cast<std::uint64_t>(place_));
  }
  void load(StateReader& in) override {
    stop();
    load_ahead(*shared_->input, in);
    remember();
  }
  std::int64_t skipped() const override { return skipped_; }

 private:
  // Takes the next item; false: the end. An error stays at the front of the queue and is thrown at
  // every call, until load() puts the stages back.
  bool take() {
    std::unique_lock hold(shared_->mutex);
    if (shared_->queue.empty() && shared_->running) grow();
    keep_reading(hold);
    bool came = shared_->changed.wait_for(hold, options_.prefetch_deadline,
                                          [this] { return !shared_->queue.empty(); });
    if (!came)
      throw DeadlineExceededError(str("prefetch: nothing was read within ",
                                      options_.prefetch_deadline.count(),
                                      " ms; is the offload thread or the file system stuck?"));
    Item& front = shared_->queue.front();
    if (front.error) std::rethrow_exception(front.error);
    skipped_ = front.skipped;
    if (front.block.empty()) return false;
    shared_->queued -= front.block.size();
    element_bytes_ = static_cast<std::int64_t>(front.block.bytes()) / front.block.size() + 1;
    current_ = std::move(front);
    shared_->queue.pop_front();
    keep_reading(hold);
    return true;
  }
  // The reader has come before the elements.
  void grow() {
    const std::int64_t more = std::min(2 * depth_, depth_max_);
    if (element_bytes_ > 0 && more <= kTunedBytesMax / element_bytes_) depth_ = more;
  }
  // Has more read if there is room. An inline Offload works inside submit(), so the lock is
  // released meanwhile.
  void keep_reading(std::unique_lock<std::mutex>& hold) {
    if (shared_->running || shared_->ended || shared_->queued >= depth_) return;
    shared_->running = true;
    hold.unlock();
    options_.offload->submit(options_.lane, [shared = shared_, depth = depth_, most = most_] {
      read_ahead(shared, depth, most);
    });
    hold.lock();
  }
  // Waits until the stages below are this thread's again, and drops what was read ahead. A job sees
  // `abandoned` after its current item at the latest.
  void stop() {
    std::unique_lock hold(shared_->mutex);
    shared_->abandoned = true;
    if (!shared_->changed.wait_for(hold, options_.prefetch_deadline,
                                   [this] { return !shared_->running; }))
      throw DeadlineExceededError(
          str("prefetch: reading did not stop within ", options_.prefetch_deadline.count(), " ms"));
    shared_->abandoned = shared_->ended = false;
    shared_->queue.clear();
    shared_->queued = 0;
    current_ = {};
    place_ = 0;
  }
  void remember() {
    StateWriter state;
    shared_->input->save(state);
    before_ = state.take();
    skipped_ = shared_->input->skipped();
  }

  std::shared_ptr<Shared> shared_;
  std::int64_t depth_, depth_max_, most_;
  std::int64_t element_bytes_ = 0;  // of the last item; 0: there was none yet
  OpenOptions options_;
  Item current_;
  std::int64_t place_ = 0;         // elements of current_ handed out
  std::vector<std::byte> before_;  // the state below from before current_
  std::int64_t skipped_ = 0;
};

class NothingAheadStage final : public StageOver {
 public:
  using StageOver::StageOver;
  Block next(std::int64_t most) override { return input_->next(most); }
  std::int64_t skip(std::int64_t count) override { return input_->skip(count); }
  void save(StateWriter& out) const override {
    StateWriter below;
    input_->save(below);
    out.blob(below.bytes());
    out.number(0);
  }
  void load(StateReader& in) override { load_ahead(*input_, in); }
};

}  // namespace

void load_ahead(Stage& input, StateReader& in) {
  StateReader below(in.blob());
  input.load(below);
  below.expect_end();
  std::int64_t place = in.number_up_to(kExamplesAheadAtOnce, "the place in what was read ahead");
  if (input.skip(place) != place)
    throw InvalidArgumentError("the iterator state is of other data: it stands beyond the end");
}

StagePtr make_nothing_ahead_stage(StagePtr input) {
  return std::make_unique<NothingAheadStage>(std::move(input));
}

StagePtr make_prefetch_stage(StagePtr input, const PrefetchSpec& spec, bool batched,
                             const OpenOptions& options) {
  if (options.offload == nullptr) return make_nothing_ahead_stage(std::move(input));
  return std::make_unique<PrefetchStage>(std::move(input), spec.n, batched, options);
}

}  // namespace cairn
