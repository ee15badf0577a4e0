#include "serving/follow/row_stream.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <utility>

#include "core/base/error.h"
#include "rpc/loop/reactor_thread.h"
#include "serving/follow/row_subscriber.h"

namespace cairn {
namespace {

using serving::RowSubscriber;
using serving::ShardProgress;

std::uint64_t draw_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;
}

}  // namespace

struct RowStream::Impl {
  explicit Impl(RowStreamOptions options) {
    loop.run([&] {
      subscriber = std::make_unique<RowSubscriber>(loop.reactor(), *network, std::move(options),
                                                   draw_number(), [this] { note_news(); });
      known.left_over = subscriber->left_over();
    });
  }
  ~Impl() {
    loop.run([&] { subscriber.reset(); });
  }

  // On the loop's thread. The subscriber may still be being made.
  void note_news() {
    const std::lock_guard hold(mutex);
    if (subscriber != nullptr) {
      known.away = subscriber->away();
      known.left_over = subscriber->left_over();
      known.all = subscriber->all_known();
    }
    news = true;
    changed.notify_all();
  }

  // The next changes of what was taken; how far a shard is counts when its last ones are given.
  bool give(RowChanges& changes) {
    while (!taken.empty()) {
      RowSubscriber::Delivery& first = taken.front();
      const bool some = given < first.changes.size();
      if (some) changes = std::move(first.changes[given++]);
      if (given == first.changes.size()) {
        const std::lock_guard hold(mutex);
        if (progress.size() <= first.shard) progress.resize(first.shard + 1);
        progress[first.shard] = first.progress;
        given = 0;
        taken.pop_front();
      }
      if (some) return true;
    }
    return false;
  }

  void take() {
    loop.run([&] {
      subscriber->verify();
      for (auto& delivery : subscriber->take()) taken.push_back(std::move(delivery));
    });
  }

  const std::unique_ptr<rpc::Network> network = rpc::make_socket_network();
  rpc::ReactorThread loop{"row-stream"};
  std::unique_ptr<RowSubscriber> subscriber;
  // The thread that calls next() has these.
  std::deque<RowSubscriber::Delivery> taken;
  std::size_t given = 0;  // changes of the first of them

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool news = false;
  struct Known {
    std::vector<RowSubscriber::Away> away;
    std::vector<bool> left_over;  // by shard
    bool all = false;             // shards are known
  } known;
  std::vector<ShardProgress> progress;  // of what was given
};

RowStream::RowStream(RowStreamOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
RowStream::~RowStream() = default;

bool RowStream::next(RowChanges& changes, Duration patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (impl_->give(changes)) return true;
    {
      const std::lock_guard hold(impl_->mutex);
      impl_->news = false;
    }
    impl_->take();
    if (impl_->give(changes)) return true;
    std::unique_lock hold(impl_->mutex);
    if (!impl_->changed.wait_until(hold, until, [&] { return impl_->news; })) return false;
  }
}

RowStreamState RowStream::state() const {
  const std::lock_guard hold(impl_->mutex);
  const TimePoint now = system_clock().now();
  RowStreamState state;
  state.age = Duration(0);
  state.complete = impl_->known.all;
  bool ever = impl_->known.all;
  for (std::size_t i = 0; i < impl_->known.left_over.size(); ++i) {
    if (impl_->known.left_over[i]) continue;
    const ShardProgress shard = i < impl_->progress.size() ? impl_->progress[i] : ShardProgress();
    if (shard.seed != 0) state.seed = shard.seed;
    state.step = std::max(state.step, shard.step);
    state.complete = state.complete && shard.complete;
    ever = ever && shard.ever;
    state.age = std::max(state.age, now - shard.covered);
  }
  if (!ever) state.age = Duration::max();
  for (const RowSubscriber::Away& away : impl_->known.away)
    state.away.push_back(
        str(away.address, " has not answered for ",
            std::chrono::duration_cast<std::chrono::seconds>(now - away.since).count(),
            " s: ", away.why));
  return state;
}

}  // namespace cairn
