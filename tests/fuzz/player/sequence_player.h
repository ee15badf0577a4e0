// SequencePlayer: peers that mean no good, in a row of calls: an input says which calls, on which
// of several connections, with which fields changed, which bytes on the wire changed, and where
// calls and connections are dropped.
//
// The player greets with the right token, in any role. A byte that changes nothing stands for an
// honest peer's call, so that most of a sequence gets far; after its end an input counts as honest
// from there on.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/rows/layout.h"
#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "rpc/net/network.h"
#include "tests/fuzz/mutating_stream.h"
#include "tests/fuzz/targets.h"

namespace cairn::fuzz {

// The processes that are attacked, and what a peer has to know to get in.
struct Attacked {
  rpc::Address ps, worker;
  std::uint64_t ps_incarnation = 0;
  rpc::Address chief;  // has no host: there is none
  std::string cluster = "test", token = "secret";
  std::uint64_t session = 7;
  std::string checkpoints = "/checkpoints";
};

// The bytes of an input, as choices.
class Script {
 public:
  explicit Script(Bytes bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  unsigned byte();  // 0 at the end
  unsigned below(unsigned bound) { return byte() % bound; }
  std::uint64_t number(std::uint64_t honest);  // mostly that one
  bool lies() { return byte() >= kLie; }
  std::string name(std::string honest);

 private:
  static constexpr unsigned kLie = 236;
  Bytes rest_;
};

class SequencePlayer {
 public:
  SequencePlayer(rpc::Reactor& reactor, rpc::Network& network, Attacked attacked, Bytes script);
  ~SequencePlayer();

  // Begins as an honest cluster does: a session on the ps and the worker, with its tables and
  // functions.
  void begin();
  // One thing of the script. False: it has ended.
  bool step();
  void drop_all();  // connections and calls
  std::size_t connections() const { return connections_; }

 private:
  enum class Kind : std::uint8_t { kShard, kLane, kPs, kWorker, kChief };
  struct Line {
    Kind kind;
    std::shared_ptr<Changes> changes;
    std::unique_ptr<rpc::Connection> connection;
  };

  void connect(Kind kind, rpc::Role role, std::uint32_t endpoint, bool shares);
  void do_something(unsigned what);
  Line* line(Kind kind);  // one of this kind; null: there is none
  template <typename Service>
  typename Service::Client service(Line& line) {
    return line.connection->bootstrap<Service>();
  }
  template <typename Sent>
  void keep(Sent sent) {
    auto ended = sent.ignoreResult().catch_([](kj::Exception&&) {});
    calls_.push_back(ended.eagerlyEvaluate(nullptr));
  }
  void pass_time();
  void settle();  // calls that were begun have their chance to end

  void configure_shard(wire::Shard::Client shard, std::uint32_t index);
  void open_shard(wire::Shard::Client shard);
  void announce(wire::Shard::Client shard);
  void fence(wire::Shard::Client shard);
  void pull(Line& line);
  void push(Line& line);
  void checkpoint(wire::Shard::Client shard);
  void write_step(wire::Step::Builder out);
  void write_place(wire::Place::Builder out, std::uint64_t bytes);

  void configure_lane(wire::Lane::Client lane);
  void set_layout(wire::Lane::Client lane);
  void add_function(wire::Lane::Client lane, std::uint32_t id);
  void open_pipeline(wire::Lane::Client lane);
  void run(wire::Lane::Client lane);
  void hold(wire::Lane::Client lane);
  void claim(wire::TaskControl::Client control);
  void control(Line& line);

  rpc::Reactor& reactor_;
  rpc::Network& network_;
  const Attacked attacked_;
  Script script_;
  std::vector<Line> lines_;
  std::vector<kj::Promise<void>> calls_;
  std::uint64_t closure_ = 0, incarnation_ = 1, mark_ = 0, layout_ = 1, epoch_ = 1;
  std::size_t connections_ = 0;
  unsigned variables_ = 0;  // how many there are
};

}  // namespace cairn::fuzz
