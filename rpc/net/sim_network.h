// SimNetwork: a network inside one thread, whose delays and faults come from a seed.
//
// Streams keep their order; two streams do not keep theirs. Times are virtual (SimReactor).
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "rpc/loop/sim_reactor.h"
#include "rpc/net/network.h"

namespace cairn::rpc {

struct SimNetworkOptions {
  std::uint64_t seed = 1;
  // of each piece written, uniform in [min, max]
  Duration delay_min = std::chrono::microseconds(50);
  Duration delay_max = std::chrono::microseconds(500);
};

class SimNetwork {
 public:
  SimNetwork(SimReactor& reactor, SimNetworkOptions options = {});
  ~SimNetwork();

  // The network as host `name` sees it; listens at sim://name and sim://name/anything. Valid as
  // long as this object.
  Network& host(const std::string& name);

  // Streams between `a` and `b` break, both ends see it; dialling is refused. Until heal().
  void cut(const std::string& a, const std::string& b);
  // Holds back bytes from `from` to `to`; no end sees an error. Until heal(), which delivers them.
  void partition(const std::string& from, const std::string& to);
  void partition_both(const std::string& a, const std::string& b);
  void heal(const std::string& a, const std::string& b);
  void heal_all();
  // Whatever `host` sends and is sent takes so many times as long from now on; 1: as long as ever.
  void slow(const std::string& host, int times);
  // As after SIGSTOP and SIGCONT: bytes to `host` wait until it goes on, and so do those that it
  // would have written meanwhile. Those that were under way from it arrive. It can be dialled, and
  // answers later. heal() and heal_all() leave it as it is.
  void stop(const std::string& host);
  void go_on(const std::string& host);
  // The next bytes that `from` writes to `to` vanish and that stream breaks: a request that was
  // served, its reply lost.
  void drop_next(const std::string& from, const std::string& to);
  // Takes that back, if nothing was written since.
  void keep_next(const std::string& from, const std::string& to);
  // As after SIGKILL: `name`'s streams and listeners end, what it had sent still arrives. It may
  // listen again at once.
  void crash(const std::string& name);

  // A fingerprint of every delivery so far (when, between whom, how many bytes): equal for equal
  // runs.
  std::uint64_t fingerprint() const;
  std::uint64_t deliveries() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace cairn::rpc
