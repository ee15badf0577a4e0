#include "collective/network/network_group.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <utility>

#include "collective/network/peer_group.h"
#include "core/base/error.h"
#include "core/base/look_up.h"
#include "core/disk/trace.h"
#include "rpc/loop/reactor_thread.h"
#include "rpc/loop/task_group.h"

namespace cairn {
namespace {

using Results = std::vector<Tensor>;

// Objects that live on the group's thread.
struct Live {
  Live(rpc::Reactor& reactor, const NetworkGroupOptions& options)
      : network(rpc::make_socket_network(options.transport)), group(reactor, *network, options) {}
  std::unique_ptr<rpc::Network> network;
  PeerGroup group;
  rpc::TaskGroup tasks;
};

// The results of a call, or its error. An error crosses as values, so that each thread throws an
// exception of its own.
struct Outcome {
  Results results;
  std::optional<ErrorParts> error;

  Results take() const {
    if (error) throw_error(*error);
    return results;
  }
};
using Promised = std::shared_ptr<std::promise<Outcome>>;

// Runs `request` on the group, and passes its outcome to the thread that waits for it.
template <typename Request>
rpc::Task<void> settle(PeerGroup& group, Request request, Promised promised) {
  Outcome outcome;
  try {
    outcome.results = co_await request(group);
  } catch (...) {
    outcome.error = error_parts(std::current_exception());
  }
  promised->set_value(std::move(outcome));
}

rpc::Task<void> tell_of_failure(PeerGroup& group, std::function<void()> act) {
  try {
    co_await group.failure();
  } catch (const Error&) {
    act();
  }
}

kj::Promise<Results> without_results(kj::Promise<void> promise) {
  return promise.then([] { return Results(); });
}

class NetworkGroup final : public Collective {
 public:
  explicit NetworkGroup(const NetworkGroupOptions& options)
      : thread_("collective"),
        rank_(options.rank),
        size_(static_cast<int>(options.members.size())) {
    try {
      thread_.run([&] { live_ = std::make_shared<Live>(thread_.reactor(), options); });
      // Others may come much later, and the options say when it is too late.
      auto formed = ask([](PeerGroup& group) { return without_results(group.form()); });
      while (formed.wait_for(kLookUpEvery) != std::future_status::ready) look_up();
      formed.get().take();
    } catch (...) {
      close();
      throw;
    }
  }
  ~NetworkGroup() override { close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket begin_all_reduce(std::vector<AllReduceBuffer> reductions) override {
    const Ticket ticket = next_;
    begun_.emplace_back(ticket,
                        begin({.kind = CallKind::kAllReduce, .reductions = std::move(reductions)}));
    return ticket;
  }

  void wait(Ticket ticket) override {
    const TraceSpan span("all_reduce wait");
    CAIRN_CHECK(ticket < next_, "ticket ", ticket, " was not given out by this member");
    while (!begun_.empty() && begun_.front().first <= ticket) {
      end(begun_.front().second);
      begun_.pop_front();
    }
  }

  Tensor broadcast(const Tensor& value, int root) override {
    return end(begin({.kind = CallKind::kBroadcast, .root = root, .value = value})).at(0);
  }
  std::vector<Tensor> all_gather(const Tensor& value) override {
    return end(begin({.kind = CallKind::kAllGather, .value = value}));
  }
  Tensor reduce(ReduceOp op, const Tensor& value, int root) override {
    const Results sum =
        end(begin({.kind = CallKind::kReduce, .root = root, .op = op, .value = value}));
    return sum.empty() ? Tensor() : sum[0];
  }
  void barrier() override { end(begin({.kind = CallKind::kBarrier})); }
  CollectiveCounts counts() const override { return counts_; }

  void when_failed(std::function<void()> act) override {
    thread_.post([live = live_.get(), act = std::move(act)]() mutable {
      live->tasks.spawn("telling of a failure", tell_of_failure(live->group, std::move(act)));
    });
  }

  void require_well() override {
    ask([](PeerGroup& group) -> kj::Promise<Results> {
      if (group.error()) throw_error(*group.error());
      return Results();
    })
        .get()
        .take();
  }

  // The work may reach the group's thread only after close(): it does nothing then.
  void abort(const ErrorParts& error) override {
    thread_.post([live = std::weak_ptr<Live>(live_), error] {
      if (const auto there = live.lock()) there->group.abort(error);
    });
  }

 private:
  struct Begun {
    std::shared_future<Outcome> outcome;
    std::shared_ptr<const CallTimes> times;
  };
  // Calls of one member reach the group's thread in the order in which they are posted.
  Begun begin(CollectiveCall call) {
    check_call(call, rank_, size_);
    ++next_;
    counts_.bytes += own_bytes(call, rank_);
    const auto times = call.times = std::make_shared<CallTimes>();
    return {ask([call = std::move(call)](PeerGroup& group) mutable {
              return group.run(std::move(call));
            }),
            times};
  }
  // Waits for a call. How it met the others may be known from before this thread came to wait.
  Results end(const Begun& begun) {
    using Steady = std::chrono::steady_clock;
    const TimePoint came = Steady::now();
    Results results = begun.outcome.get().take();
    const TimePoint ended = Steady::now(), met = std::clamp(begun.times->met, came, ended);
    ++counts_.calls;
    counts_.held_seconds += std::chrono::duration<double>(ended - came).count();
    counts_.waited_seconds += std::chrono::duration<double>(met - came).count();
    if (tracing() && met > came) record_span("wait for another worker", came, met, 0);
    return results;
  }

  // Has the group's thread await what `request` makes there of the group.
  template <typename Request>
  std::shared_future<Outcome> ask(Request request) {
    auto promised = std::make_shared<std::promise<Outcome>>();
    std::shared_future<Outcome> outcome = promised->get_future().share();
    thread_.post([live = live_.get(), request = std::move(request), promised]() mutable {
      live->tasks.spawn("a collective call", settle(live->group, std::move(request), promised));
    });
    return outcome;
  }

  // The last thing that the thread does is to destroy what lives on it.
  void close() {
    if (live_ == nullptr) return;
    ask([](PeerGroup& group) { return without_results(group.leave()); }).get();
    thread_.run([this] {
      live_->tasks.cancel_all();
      live_.reset();
    });
  }

  rpc::ReactorThread thread_;
  std::shared_ptr<Live> live_;  // made, used and destroyed on the thread
  const int rank_, size_;
  Ticket next_ = 0;
  std::deque<std::pair<Ticket, Begun>> begun_;  // not waited for
  CollectiveCounts counts_;
};

}  // namespace

std::string GroupMember::task() const { return str("/job:", job, "/task:", index); }

std::unique_ptr<Collective> make_network_group(const NetworkGroupOptions& options) {
  return std::make_unique<NetworkGroup>(options);
}

}  // namespace cairn
