#include "collective/network_group.h"

#include <deque>
#include <future>
#include <utility>

#include "collective/peer_group.h"
#include "core/base/error.h"
#include "core/base/trace.h"
#include "rpc/reactor_thread.h"
#include "rpc/task_group.h"

namespace cairn {
namespace {

using Results = std::vector<Tensor>;

// What lives on the group's thread.
struct Live {
  Live(rpc::Reactor& reactor, const NetworkGroupOptions& options)
      : network(rpc::make_socket_network(options.transport)), group(reactor, *network, options) {}
  std::unique_ptr<rpc::Network> network;
  PeerGroup group;
  rpc::TaskGroup tasks;
};

template <typename T>
void set_error(std::promise<T>& outcome) {
  outcome.set_exception(std::current_exception());
}

rpc::Task<void> settle(kj::Promise<Results> call, std::shared_ptr<std::promise<Results>> outcome) {
  try {
    outcome->set_value(co_await kj::mv(call));
  } catch (const Error&) {
    set_error(*outcome);
  }
}

rpc::Task<void> settle(kj::Promise<void> call, std::shared_ptr<std::promise<void>> outcome) {
  try {
    co_await kj::mv(call);
    outcome->set_value();
  } catch (const Error&) {
    set_error(*outcome);
  }
}

class NetworkGroup final : public Collective {
 public:
  explicit NetworkGroup(const NetworkGroupOptions& options)
      : thread_("collective"),
        rank_(options.rank),
        size_(static_cast<int>(options.members.size())) {
    try {
      thread_.run([&] { live_ = std::make_shared<Live>(thread_.reactor(), options); });
      wait_for([](PeerGroup& group) { return group.form(); });
    } catch (...) {
      close();
      throw;
    }
  }
  ~NetworkGroup() override { close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket begin_all_reduce(std::vector<Reduction> reductions) override {
    const Ticket ticket = next_;
    begun_.emplace_back(ticket,
                        begin({.kind = CallKind::kAllReduce, .reductions = std::move(reductions)}));
    return ticket;
  }

  void wait(Ticket ticket) override {
    const TraceSpan span("all_reduce wait");
    CAIRN_CHECK(ticket < next_, "ticket ", ticket, " was not given out by this member");
    while (!begun_.empty() && begun_.front().first <= ticket) {
      begun_.front().second.get();
      begun_.pop_front();
    }
  }

  Tensor broadcast(const Tensor& value, int root) override {
    return begin({.kind = CallKind::kBroadcast, .root = root, .value = value}).get().at(0);
  }
  std::vector<Tensor> all_gather(const Tensor& value) override {
    return begin({.kind = CallKind::kAllGather, .value = value}).get();
  }
  Tensor reduce(ReduceOp op, const Tensor& value, int root) override {
    const Results sum =
        begin({.kind = CallKind::kReduce, .root = root, .op = op, .value = value}).get();
    return sum.empty() ? Tensor() : sum[0];
  }
  void barrier() override { begin({.kind = CallKind::kBarrier}).get(); }

  void abort(const ErrorParts& error) override {
    thread_.post([live = std::weak_ptr<Live>(live_), error] {
      if (const auto there = live.lock()) there->group.abort(error);
    });
  }

 private:
  // Calls of one member reach the group's thread in the order in which they are posted.
  std::shared_future<Results> begin(CollectiveCall call) {
    check_call(call, rank_, size_);
    ++next_;
    auto outcome = std::make_shared<std::promise<Results>>();
    std::shared_future<Results> result = outcome->get_future().share();
    thread_.post([live = live_.get(), call = std::move(call), outcome = std::move(outcome)] {
      try {
        live->tasks.spawn("a collective call", settle(live->group.run(call), outcome));
      } catch (const Error&) {
        set_error(*outcome);
      }
    });
    return result;
  }

  template <typename Ask>
  void wait_for(Ask ask) {
    auto outcome = std::make_shared<std::promise<void>>();
    auto result = outcome->get_future();
    thread_.post([live = live_.get(), ask, outcome] {
      live->tasks.spawn("a group's beginning or end", settle(ask(live->group), outcome));
    });
    result.get();
  }

  // The last thing that the thread does is to destroy what lives on it.
  void close() {
    if (live_ == nullptr) return;
    wait_for([](PeerGroup& group) { return group.leave(); });
    thread_.run([this] {
      live_->tasks.cancel_all();
      live_.reset();
    });
  }

  rpc::ReactorThread thread_;
  std::shared_ptr<Live> live_;  // made, used and destroyed on the thread
  const int rank_, size_;
  Ticket next_ = 0;
  std::deque<std::pair<Ticket, std::shared_future<Results>>> begun_;  // not waited for
};

}  // namespace

std::string GroupMember::task() const { return str("/job:", job, "/task:", index); }

std::unique_ptr<Collective> make_network_group(const NetworkGroupOptions& options) {
  return std::make_unique<NetworkGroup>(options);
}

}  // namespace cairn
