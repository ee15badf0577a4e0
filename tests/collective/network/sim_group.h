// A group of members in a simulated network, all on the test's thread.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "collective/network/peer_group.h"
#include "rpc/loop/error_wire.h"
#include "rpc/net/sim_network.h"

namespace cairn::testing {

using namespace std::chrono_literals;

// "" or "Unavailable: ... (raised by /job:worker/task:2)".
template <typename T>
kj::Promise<std::string> outcome_of(kj::Promise<T> promise) {
  return promise.then([](auto&&...) { return std::string(); },
                      [](kj::Exception&& error) { return rpc::describe(rpc::from_kj(error)); });
}

class SimGroup {
 public:
  explicit SimGroup(int size, std::uint64_t seed = 1, CommunicationOptions communication = {})
      : network(reactor, {.seed = seed}) {
    for (int i = 0; i < size; ++i)
      options.members.push_back(
          {"worker", static_cast<std::uint32_t>(i), "sim://m" + std::to_string(i)});
    options.communication = communication;
    members.resize(static_cast<std::size_t>(size));
  }
  ~SimGroup() {
    for (auto& member : members) member.reset();
  }

  static std::string host(int rank) { return "m" + std::to_string(rank); }
  NetworkGroupOptions options_of(int rank) {
    NetworkGroupOptions own = options;
    own.rank = rank;
    own.incarnation = ++incarnations;
    return own;
  }
  void start(int rank) { start(rank, options_of(rank)); }
  void start(int rank, const NetworkGroupOptions& own) {
    auto& place = members[static_cast<std::size_t>(rank)];
    place.reset();
    place = std::make_unique<PeerGroup>(reactor, network.host(host(rank)), own);
  }
  void start_all() {
    for (int rank = 0; rank < size(); ++rank) start(rank);
  }
  // The outcome of each member's forming.
  std::vector<std::string> form_all() {
    return all([](PeerGroup& member) { return outcome_of(member.form()); });
  }
  void start_and_form() {
    start_all();
    for (const auto& error : form_all()) ASSERT_EQ(error, "");
  }
  // The outcome of the promise of each member that is there.
  template <typename Ask>
  std::vector<std::string> all(Ask ask) {
    std::vector<kj::Promise<std::string>> asked;
    for (auto& member : members)
      if (member) asked.push_back(ask(*member).eagerlyEvaluate(nullptr));
    std::vector<std::string> outcomes;
    for (auto& each : asked) outcomes.push_back(reactor.wait(kj::mv(each)));
    return outcomes;
  }
  // The process is gone, as by SIGKILL.
  void kill(int rank) {
    network.crash(host(rank));
    members[static_cast<std::size_t>(rank)].reset();
  }
  int size() const { return static_cast<int>(members.size()); }
  PeerGroup& member(int rank) { return *members[static_cast<std::size_t>(rank)]; }

  rpc::SimReactor reactor;
  rpc::SimNetwork network;
  NetworkGroupOptions options;
  std::vector<std::unique_ptr<PeerGroup>> members;  // by rank; null: not there
  std::uint64_t incarnations = 0;
};

}  // namespace cairn::testing
