#include "coordinator/engine/standby.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/cluster/task_client.h"
#include "core/base/error.h"
#include "core/base/look_up.h"
#include "rpc/loop/task_group.h"
#include "rpc/net/hello.h"

namespace cairn {
namespace {

constexpr Duration kAskEvery = std::chrono::milliseconds(100);
constexpr Duration kPsDeadline = std::chrono::seconds(1);

// A ps, as far as it has answered.
struct Asked {
  std::string name, address;
  std::string owner;                   // for people; empty: no coordinator has joined
  std::optional<Duration> last_heard;  // of the first one; none: there is no recent answer
  std::string trouble = "it has not answered yet";
};

rpc::Hello hello_of(const StandbyOptions& options) {
  rpc::Hello hello;
  hello.cluster = options.cluster_id;
  hello.token = options.token;
  hello.role = rpc::Role::kTool;
  return hello;
}

// Asks one ps again and again, over one connection as long as it stands.
rpc::Task<void> keep_asking(rpc::Reactor* reactor, rpc::Network* network, rpc::Hello hello,
                            std::shared_ptr<Asked> ps) {
  const rpc::Address address = rpc::Address::parse(ps->address);
  std::unique_ptr<TaskClient> client;
  for (;;) {
    try {
      if (client == nullptr) {
        auto connection = co_await network->connect(*reactor, address, hello, kPsDeadline);
        client = std::make_unique<TaskClient>(std::move(connection));
      }
      const std::string what = "asking " + ps->name + " for its coordinator";
      const TaskClient::Owner owner =
          co_await reactor->with_deadline(client->owner(), kPsDeadline, what);
      ps->owner = owner.text;
      ps->last_heard = reactor->now() - owner.silent_for;
    } catch (const UnavailableError& error) {
      ps->trouble = error.what();
      ps->last_heard.reset();
      client.reset();
    } catch (const DeadlineExceededError& error) {
      ps->trouble = error.what();
      ps->last_heard.reset();
      client.reset();
    }
    co_await reactor->sleep(kAskEvery);
  }
}

// The part of the owner's text that stays the same while it is at work.
std::string whom(const std::string& owner) { return owner.substr(0, owner.rfind(", last heard")); }

// For whom the standby waits; empty: for nobody any more.
std::string waits_for(const std::vector<std::shared_ptr<Asked>>& all, Duration now,
                      Duration silence) {
  std::size_t answer = 0;
  std::string away;
  for (const auto& ps : all) {
    if (!ps->last_heard) {
      away += str(away.empty() ? "" : "; ", ps->name, " at ", ps->address, ": ", ps->trouble);
      continue;
    }
    ++answer;
    if (now - *ps->last_heard < silence)
      return str(ps->owner.empty() ? "a coordinator that may be about to begin" : whom(ps->owner),
                 ", as ", ps->name, " says");
  }
  if (2 * answer >= all.size() && answer > 0) return {};
  return str("half of the ps, to ask them: ", away);
}

}  // namespace

rpc::Task<void> wait_as_standby(rpc::Reactor& reactor, rpc::Network& network,
                                StandbyOptions options) {
  std::vector<std::shared_ptr<Asked>> all;
  for (const auto& [index, address] : options.cluster.tasks("ps"))
    all.push_back(std::make_shared<Asked>(
        Asked{rpc::task_name(rpc::Role::kPs, static_cast<std::uint32_t>(index)), address}));
  if (all.empty()) throw InvalidArgumentError("a standby asks the ps, and this cluster has none");
  std::optional<ErrorParts> failure;
  rpc::TaskGroup asking([&failure](const std::string&, const ErrorParts& error) {
    if (!failure) failure = error;
  });
  for (const auto& ps : all)
    asking.spawn("asking " + ps->name, keep_asking(&reactor, &network, hello_of(options), ps));
  std::string told;
  for (;;) {
    co_await reactor.sleep(kAskEvery);
    if (failure) throw_error(*failure);
    if (options.on_wait) options.on_wait();
    const std::string whom = waits_for(all, reactor.now(), options.silence);
    if (whom.empty()) co_return;
    if (whom != told && options.say) options.say("standby: waiting for " + whom);
    told = whom;
  }
}

void wait_as_standby(const StandbyOptions& options, rpc::Transport transport) {
  const auto reactor = rpc::make_reactor();
  const auto network = rpc::make_socket_network(transport);
  reactor->wait(wait_as_standby(*reactor, *network, options));
}

}  // namespace cairn
