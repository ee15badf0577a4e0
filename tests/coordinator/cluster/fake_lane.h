// The far end of a lane, played by a test: notes the closures it is sent, and answers on request.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/cluster_members.h"
#include "rpc/cairn.capnp.h"
#include "rpc/loop/error_wire.h"
#include "rpc/net/connection.h"
#include "rpc/server/server.h"
#include "tests/coordinator/cluster/call_script.h"
#include "tests/coordinator/cluster/simulated_session.h"

namespace cairn {

class FakeLane {
 public:
  struct Received {
    std::uint64_t sequence = 0;
    std::int64_t step = 0;
    std::vector<std::uint64_t> ordinals;  // of the elements that it is to take
    bool operator==(const Received&) const = default;
  };

  // A lane of a FakeWorker, which listens for it.
  explicit FakeLane(SimulatedSession& ground) : ground_(ground) {}
  // A lane that listens at sim://`name` by itself.
  FakeLane(SimulatedSession& ground, const std::string& name)
      : ground_(ground), address_("sim://" + name) {
    rpc::AcceptorOptions door;
    door.cluster = "cairn";
    door.role = rpc::Role::kWorker;
    acceptor_ =
        std::make_unique<rpc::Acceptor>(ground.network.host(name), rpc::Address::parse(address_),
                                        door, std::vector<rpc::Endpoint>{endpoint()});
  }

  rpc::Endpoint endpoint() {
    return {&ground_.reactor, [this](const rpc::PeerInfo&, rpc::Connection&) {
              waiting_.clear();
              ended_.clear();
              answered_ = 0;
              holds_pushes = false;
              return wire::Lane::Client(kj::heap<Server>(*this));
            }};
  }
  // As Workers::connect does it.
  std::unique_ptr<LaneClient> connect() {
    rpc::Hello hello;
    hello.cluster = "cairn";
    hello.role = rpc::Role::kCoordinator;
    hello.session = ground_.session.number;
    return std::make_unique<LaneClient>(ground_.reactor.wait(ground_.network.host("chief").connect(
        ground_.reactor, rpc::Address::parse(address_), hello, std::chrono::seconds(5))));
  }

  void succeed(std::uint64_t sequence) { answer(sequence, ""); }
  template <typename E>
  void fail(std::uint64_t sequence, const std::string& message) {
    answer(sequence, rpc::error_text(std::make_exception_ptr(E(message))));
  }

  struct Share {
    std::uint64_t round = 0;
    int member = 0;
    bool operator==(const Share&) const = default;
  };

  std::vector<Received> received;
  std::vector<Share> shares;                // beside `received`
  std::vector<std::uint64_t> groups;        // that it was told to join
  std::vector<std::size_t> messages;        // closures in each call that brought some
  std::vector<std::string> prepared;        // "layout", "function 3", ...
  std::vector<std::uint64_t> incarnations;  // that it was configured with, one per connection
  std::uint64_t session = 0;                // for which it was configured last
  bool deterministic = false;               // as it was configured last
  wire::Arithmetic arithmetic{};            // likewise
  bool holds_pushes = false;
  CallScript script;  // "configure", "hold pushes"

 private:
  struct Ended {
    std::uint64_t sequence = 0;
    std::string error;
  };
  struct Server final : wire::Lane::Server {
    explicit Server(FakeLane& lane) : lane(lane) {}
    kj::Promise<void> configure(ConfigureContext context) override {
      lane.incarnations.push_back(context.getParams().getIncarnation());
      lane.session = context.getParams().getSession();
      lane.deterministic = context.getParams().getDeterministic();
      lane.arithmetic = context.getParams().getArithmetic();
      return lane.script.meet("configure");
    }
    kj::Promise<void> setLayout(SetLayoutContext) override {
      lane.prepared.push_back("layout");
      return kj::READY_NOW;
    }
    kj::Promise<void> register_(RegisterContext context) override {
      lane.prepared.push_back(str("function ", context.getParams().getFunction()));
      return kj::READY_NOW;
    }
    kj::Promise<void> openPipeline(OpenPipelineContext context) override {
      lane.prepared.push_back(str("pipeline ", context.getParams().getPipeline()));
      return kj::READY_NOW;
    }
    kj::Promise<void> run(RunContext context) override {
      auto closures = context.getParams().getClosures();
      if (closures.size() > 0) lane.messages.push_back(closures.size());
      for (auto closure : closures) {
        Received received{closure.getSequence(), closure.getGlobalStep(), {}};
        for (auto take : closure.getTakes()) received.ordinals.push_back(take.getOrdinal());
        lane.received.push_back(received);
        lane.shares.push_back({closure.getRound(), closure.getMember()});
      }
      auto paf = kj::newPromiseAndFulfiller<void>();
      lane.waiting_.push_back(kj::mv(paf.fulfiller));
      auto* fake = &lane;
      return paf.promise.then([fake, context]() mutable {
        auto ended = std::exchange(fake->ended_, {});
        auto results = context.getResults().initResults(static_cast<unsigned>(ended.size()));
        for (unsigned i = 0; i < results.size(); ++i) {
          results[i].setSequence(ended[i].sequence);
          results[i].setUpdated(true);
          if (!ended[i].error.empty()) results[i].setError(ended[i].error.c_str());
        }
      });
    }
    kj::Promise<void> joinGroup(JoinGroupContext context) override {
      lane.groups.push_back(context.getParams().getGroup());
      return kj::READY_NOW;
    }
    kj::Promise<void> holdPushes(HoldPushesContext context) override {
      lane.holds_pushes = true;
      context.getResults().setEnded(lane.answered_);
      return lane.script.meet("hold pushes");
    }
    kj::Promise<void> releasePushes(ReleasePushesContext) override {
      lane.holds_pushes = false;
      return kj::READY_NOW;
    }
    FakeLane& lane;
  };

  // To the call that waits longest.
  void answer(std::uint64_t sequence, const std::string& error) {
    ASSERT_FALSE(waiting_.empty()) << "no call waits for results";
    ended_.push_back({sequence, error});
    ++answered_;
    auto call = kj::mv(waiting_.front());
    waiting_.erase(waiting_.begin());
    call->fulfill();
  }

  SimulatedSession& ground_;
  std::string address_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
  std::vector<Ended> ended_;
  std::uint64_t answered_ = 0;
  std::unique_ptr<rpc::Acceptor> acceptor_;
};

}  // namespace cairn
