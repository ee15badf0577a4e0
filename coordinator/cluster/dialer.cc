#include "coordinator/cluster/dialer.h"

#include "core/base/log.h"
#include "core/base/machine.h"

namespace cairn {
namespace {

// To one endpoint, the greeting included.
constexpr Duration kConnectDeadline = std::chrono::seconds(5);
constexpr Duration kJoinDeadline = std::chrono::seconds(5);
constexpr Duration kAskAgain = std::chrono::milliseconds(100);

std::string owned(const ClusterMember& member, const std::string& owner) {
  return str(member.name, " at ", member.address, " works for another coordinator: ", owner,
             ". End that one, or take its place with --take-over (C++: EngineOptions::take_over)");
}

}  // namespace

kj::Promise<std::unique_ptr<rpc::Connection>> Dialer::connect(const rpc::Address& address,
                                                              std::uint32_t endpoint) {
  return session_.parts.network.connect(session_.parts.reactor, address, hello(endpoint),
                                        kConnectDeadline);
}

rpc::Task<std::unique_ptr<TaskClient>> Dialer::dial(ClusterMember* member) {
  const rpc::Address address = rpc::Address::parse(member->address);
  auto connection = co_await connect(address, rpc::kControlEndpoint);
  auto client = std::make_unique<TaskClient>(std::move(connection));
  // A process that serves as two tasks would be configured for one of them after the other, for
  // ever.
  if (const std::string found = client->connection().peer().name(); found != member->name)
    throw FailedPreconditionError(
        str(member->name, ": at ", member->address, " there is ", found,
            "; correct the cluster's addresses, or the --index that it was started with"));
  co_await join(client.get(), member);
  co_return client;
}

rpc::Task<void> Dialer::join(TaskClient* client, ClusterMember* member) {
  const Duration silence =
      session_.options.heartbeats.interval * session_.options.heartbeats.missed_max;
  // At the start the owner may be a predecessor that has just been killed: its claim lapses by its
  // silence, and is waited for twice as long. Once this engine has started, an owner is a
  // coordinator that took the task from it, and no wait mends that.
  const TimePoint patience =
      session_.parts.clock.now() + (session_.started ? Duration(0) : 2 * silence);
  for (bool told = false;; told = true) {
    const std::string what = str("joining ", member->name);
    const rpc::Claim claim{session_.number, process_text(), silence, session_.options.take_over};
    const rpc::ClaimAnswer answer =
        co_await session_.parts.reactor.with_deadline(client->join(claim), kJoinDeadline, what);
    if (answer.newest_term > session_.term)
      session_.give_way(
          str("a successor of this coordinator goes on with the session: ", answer.owner));
    // This process was part of our session. If it was configured for another session since, it has
    // forgotten ours, with all rows, and to go on would mean to train on a mixture.
    const bool ours = member->served == client->connection().peer().incarnation;
    if (ours && answer.configured != session_.number)
      session_.give_way(str("another coordinator has taken over this cluster: ",
                            answer.granted ? str("session ", answer.configured) : answer.owner,
                            ". What this one trained since its last checkpoint is gone"));
    if (answer.granted) {
      if (!answer.owner.empty()) log_warning(member->name, ": taken over from ", answer.owner);
      co_return;
    }
    if (session_.parts.clock.now() >= patience)
      throw FailedPreconditionError(owned(*member, answer.owner));
    if (!told)
      log_info(owned(*member, answer.owner), "; waiting ",
               fixed(std::chrono::duration<double>(2 * silence).count(), 1), " s for it to end");
    co_await session_.parts.reactor.sleep(kAskAgain);
  }
}

rpc::Hello Dialer::hello(std::uint32_t endpoint) const {
  rpc::Hello hello;
  hello.cluster = session_.options.cluster_id;
  hello.session = session_.number;
  hello.term = session_.term;
  hello.role = rpc::Role::kCoordinator;
  hello.endpoint = endpoint;
  hello.token = session_.options.token;
  return hello;
}

}  // namespace cairn
