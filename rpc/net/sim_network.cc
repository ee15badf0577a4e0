#include "rpc/net/sim_network.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"
#include "rpc/net/sim_stream.h"

namespace cairn::rpc {
namespace {

using Pair = std::pair<std::string, std::string>;  // from, to

std::string host_of(const Address& address) {
  return address.host.substr(0, address.host.find('/'));
}

}  // namespace

// A listener's queue; dies with the Listener, or is closed by a crash.
struct SimDoor {
  std::deque<std::unique_ptr<Socket>> arrived;
  kj::Own<kj::PromiseFulfiller<void>> waiter;
  bool open = true;
  std::string host;

  void wake() {
    if (waiter.get() != nullptr) waiter->fulfill();
  }
};

struct SimNetwork::Impl : SimLinks, std::enable_shared_from_this<SimNetwork::Impl> {
  class HostNetwork;
  class DoorListener;

  Impl(SimReactor& reactor, SimNetworkOptions options)
      : reactor(reactor), options(options), random(options.seed) {}

  // SimLinks: what a stream asks of its network.
  // Between two slow hosts the slower one counts.
  Duration draw_delay(const std::string& from, const std::string& to) override {
    auto span = static_cast<std::uint64_t>((options.delay_max - options.delay_min).count());
    const Duration delay = options.delay_min + Duration(random.below(span + 1));
    return slow.empty() ? delay : delay * std::max(times_slower(from), times_slower(to));
  }
  int times_slower(const std::string& host) const {
    const auto found = slow.find(host);
    return found == slow.end() ? 1 : found->second;
  }
  bool held(const std::string& from, const std::string& to) const override {
    return held_under_way(from, to) || stopped.contains(from);
  }
  bool held_under_way(const std::string& from, const std::string& to) const override {
    return partitions.contains({from, to}) || stopped.contains(to);
  }
  bool take_drop(const std::string& from, const std::string& to) override {
    return drops.erase({from, to}) > 0;
  }
  // Each delivery is hashed together with the fingerprint before it, so the order counts too.
  void delivered(const std::string& from, const std::string& to, std::size_t bytes) override {
    ++deliveries;
    auto note = str(reactor.now().count(), ' ', from, ' ', to, ' ', bytes);
    fingerprint = random_key(fingerprint, note);
  }

  // The two ends of a new connection; the network remembers them until they are gone.
  std::pair<std::shared_ptr<SimEnd>, std::shared_ptr<SimEnd>> connect(const std::string& from,
                                                                      const std::string& to);
  void break_if(const std::function<bool(const SimEnd&)>& wanted);
  void release(const Pair& direction);
  void resume_if(const std::function<bool(const SimEnd&)>& wanted);

  SimReactor& reactor;
  SimNetworkOptions options;
  Random random;
  std::map<std::string, std::unique_ptr<HostNetwork>> hosts;
  std::map<std::string, std::shared_ptr<SimDoor>> doors;  // by the address's name
  // in order of creation: faults strike in that order
  std::vector<std::weak_ptr<SimEnd>> ends;
  std::set<Pair> cuts, partitions, drops;
  std::set<std::string> stopped;    // hosts that stand still
  std::map<std::string, int> slow;  // hosts, and how many times slower they are
  std::uint64_t fingerprint = 0;
  std::uint64_t deliveries = 0;
};

std::pair<std::shared_ptr<SimEnd>, std::shared_ptr<SimEnd>> SimNetwork::Impl::connect(
    const std::string& from, const std::string& to) {
  auto near = std::make_shared<SimEnd>(reactor, shared_from_this(), from, to);
  auto far = std::make_shared<SimEnd>(reactor, shared_from_this(), to, from);
  near->join(far);
  far->join(near);
  std::erase_if(ends, [](auto& end) { return end.expired(); });
  ends.push_back(near);
  ends.push_back(far);
  return {near, far};
}

void SimNetwork::Impl::break_if(const std::function<bool(const SimEnd&)>& wanted) {
  auto all = ends;
  for (auto& weak : all)
    if (auto end = weak.lock(); end && wanted(*end)) end->break_now();
}

// Bytes that are still held for another reason are held again.
void SimNetwork::Impl::resume_if(const std::function<bool(const SimEnd&)>& wanted) {
  auto all = ends;
  for (auto& weak : all)
    if (auto end = weak.lock(); end && wanted(*end)) end->resume();
}

void SimNetwork::Impl::release(const Pair& direction) {
  if (partitions.erase(direction) == 0) return;
  resume_if([&](const SimEnd& end) {
    return end.host() == direction.first && end.peer_host() == direction.second;
  });
}

class SimNetwork::Impl::DoorListener final : public Listener {
 public:
  DoorListener(std::shared_ptr<Impl> net, std::shared_ptr<SimDoor> door, Address address)
      : net_(std::move(net)), door_(std::move(door)), address_(std::move(address)) {}
  // After a crash another listener may have taken the name: only the own door is removed.
  ~DoorListener() override {
    door_->open = false;
    auto known = net_->doors.find(address_.host);
    if (known != net_->doors.end() && known->second == door_) net_->doors.erase(known);
  }
  kj::Promise<std::unique_ptr<Socket>> accept() override { return accept_next(); }
  const Address& address() const override { return address_; }
  bool exposed() const override { return false; }

 private:
  Task<std::unique_ptr<Socket>> accept_next() {
    while (door_->arrived.empty()) {
      if (!door_->open) throw UnavailableError(str(address_.str(), " no longer listens"));
      auto pair = kj::newPromiseAndFulfiller<void>();
      door_->waiter = kj::mv(pair.fulfiller);
      co_await kj::mv(pair.promise);
    }
    auto socket = std::move(door_->arrived.front());
    door_->arrived.pop_front();
    co_return socket;
  }
  std::shared_ptr<Impl> net_;
  std::shared_ptr<SimDoor> door_;
  Address address_;
};

class SimNetwork::Impl::HostNetwork final : public Network {
 public:
  HostNetwork(Impl& net, std::string name) : net_(net), name_(std::move(name)) {}

  std::unique_ptr<Listener> listen(Reactor&, const Address& address) override {
    check(address);
    if (host_of(address) != name_)
      throw InvalidArgumentError(str(address.str(), " does not belong to host ", name_));
    auto& door = net_.doors[address.host];
    if (door && door->open)
      throw UnavailableError(str("cannot listen at ", address.str(), ": it is taken"));
    door = std::make_shared<SimDoor>();
    door->host = name_;
    return std::make_unique<DoorListener>(net_.shared_from_this(), door, address);
  }

  kj::Promise<std::unique_ptr<Socket>> dial(Reactor&, const Address& address) override {
    check(address);
    return dial_host(net_.shared_from_this(), name_, address);
  }

 private:
  static void check(const Address& address) {
    if (address.scheme != Address::Scheme::kSim)
      throw InvalidArgumentError(str(address.str(), " is no simulated address"));
  }
  // Static, with a share in the network: it may go on when the object that was asked has gone.
  static Task<std::unique_ptr<Socket>> dial_host(std::shared_ptr<Impl> net, std::string from,
                                                 Address address) {
    auto to = host_of(address);
    co_await net->reactor.sleep(net->draw_delay(from, to));
    // A partition swallows the request or its answer, and a host that stands still does not dial:
    // the dialler's deadline ends this. A host that stands still can be dialled: its kernel takes
    // the connection.
    if (net->partitions.contains({from, to}) || net->partitions.contains({to, from}) ||
        net->stopped.contains(from))
      co_await kj::Promise<void>(kj::NEVER_DONE);
    auto door = net->doors.find(address.host);
    bool refused =
        door == net->doors.end() || !door->second->open || net->cuts.contains({from, to});
    if (refused) throw UnavailableError(str("cannot connect to ", address.str(), ": refused"));
    auto [near, far] = net->connect(from, to);
    door->second->arrived.push_back(make_sim_socket(far, str("sim://", from)));
    if (!net->stopped.contains(to)) door->second->wake();
    co_return make_sim_socket(near, address.str());
  }
  Impl& net_;
  std::string name_;
};

SimNetwork::SimNetwork(SimReactor& reactor, SimNetworkOptions options)
    : impl_(std::make_shared<Impl>(reactor, options)) {}
SimNetwork::~SimNetwork() {
  impl_->break_if([](const SimEnd&) { return true; });
}

Network& SimNetwork::host(const std::string& name) {
  auto& host = impl_->hosts[name];
  if (!host) host = std::make_unique<Impl::HostNetwork>(*impl_, name);
  return *host;
}

// Breaking one end breaks the other, so one direction is enough.
void SimNetwork::cut(const std::string& a, const std::string& b) {
  impl_->cuts.insert({a, b});
  impl_->cuts.insert({b, a});
  impl_->break_if([&](const SimEnd& end) { return end.host() == a && end.peer_host() == b; });
}

void SimNetwork::partition(const std::string& from, const std::string& to) {
  impl_->partitions.insert({from, to});
}

void SimNetwork::partition_both(const std::string& a, const std::string& b) {
  partition(a, b);
  partition(b, a);
}

void SimNetwork::heal(const std::string& a, const std::string& b) {
  for (const auto& direction : {Pair{a, b}, Pair{b, a}}) {
    impl_->cuts.erase(direction);
    impl_->release(direction);
  }
}

void SimNetwork::heal_all() {
  impl_->cuts.clear();
  auto held = impl_->partitions;
  for (const auto& direction : held) impl_->release(direction);
}

void SimNetwork::slow(const std::string& host, int times) {
  if (times > 1)
    impl_->slow[host] = times;
  else
    impl_->slow.erase(host);
}

void SimNetwork::stop(const std::string& host) { impl_->stopped.insert(host); }

void SimNetwork::go_on(const std::string& host) {
  if (impl_->stopped.erase(host) == 0) return;
  for (auto& [address, door] : impl_->doors)
    if (door->host == host) door->wake();
  impl_->resume_if(
      [&](const SimEnd& end) { return end.host() == host || end.peer_host() == host; });
}

void SimNetwork::drop_next(const std::string& from, const std::string& to) {
  impl_->drops.insert({from, to});
}

void SimNetwork::keep_next(const std::string& from, const std::string& to) {
  impl_->drops.erase({from, to});
}

// Streams that were dialled and not yet accepted end with the door. The name is free at once.
void SimNetwork::crash(const std::string& name) {
  go_on(name);
  for (auto& [address, door] : impl_->doors) {
    if (door->host != name) continue;
    door->open = false;
    door->arrived.clear();
    door->wake();
  }
  auto all = impl_->ends;
  for (auto& weak : all)
    if (auto end = weak.lock(); end && end->host() == name) end->die();
}

std::uint64_t SimNetwork::fingerprint() const { return impl_->fingerprint; }
std::uint64_t SimNetwork::deliveries() const { return impl_->deliveries; }

}  // namespace cairn::rpc
