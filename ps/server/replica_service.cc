#include "ps/server/replica_service.h"

#include "core/graph/wire/wire.h"
#include "rpc/wire/layout_wire.h"

namespace cairn::ps {
namespace {

// How long the coordinator waits for news of backups in one call.
constexpr Duration kNewsPatience = std::chrono::seconds(10);

void write(wire::Shard::AwaitBackupsResults::Builder out, const ReplicaLog& log) {
  const std::vector<ReplicaLog::State> states = log.states();
  out.setVersion(log.version());
  auto backups = out.initBackups(static_cast<unsigned>(states.size()));
  for (unsigned i = 0; i < backups.size(); ++i) {
    const ReplicaLog::State& state = states[i];
    backups[i].setPs(state.backup.ps);
    backups[i].setEndpoint(state.backup.endpoint);
    backups[i].setProcess(state.backup.process.number);
    backups[i].setCaughtUp(state.caught_up);
    backups[i].setTrouble(state.trouble.c_str());
    backups[i].setBehind(state.behind);
    backups[i].setRowBytes(state.row_bytes);
  }
}

}  // namespace

kj::Promise<void> ReplicaService::record(RecordContext context) {
  return rpc::at_once([&] {
    connection_.allow({rpc::Role::kPs}, "Shard.record");
    host_->backup.take(context.getParams());
    context.releaseParams();
  });
}

kj::Promise<void> ReplicaService::setBackups(SetBackupsContext context) {
  return rpc::at_once([&] {
    from_coordinator("Shard.setBackups");
    std::vector<ShardReplica> backups;
    for (const auto backup :
         cairn::wire::bounded(context.getParams().getBackups(), kBackupsMax, "backups"))
      backups.push_back(cairn::wire::read(backup));
    host_->log.set_backups(host_->shard, backups,
                           context.getParams().getLeased() ? Lease::kLeased : Lease::kNone,
                           context.getParams().getShares() ? Shares::kCopied : Shares::kNotCopied);
  });
}

kj::Promise<void> ReplicaService::awaitBackups(AwaitBackupsContext context) {
  try {
    from_coordinator("Shard.awaitBackups");
    return connection_.guard(answer_with_news(host_, context));
  } catch (...) {
    return rpc::to_kj(std::current_exception());
  }
}

rpc::Task<void> ReplicaService::answer_with_news(std::shared_ptr<ShardHost> host,
                                                 AwaitBackupsContext context) {
  const std::uint64_t seen = context.getParams().getSeen();
  if (host->log.version() == seen) {
    kj::Promise<void> news = host->log.next_version();
    kj::Promise<void> either = news.exclusiveJoin(host->reactor.sleep(kNewsPatience));
    co_await kj::mv(either);
  }
  write(context.initResults(), host->log);
}

rpc::Task<void> ReplicaService::everywhere(std::shared_ptr<ShardHost> host) {
  if (host->log.must_wait()) co_await host->log.everywhere();
}

}  // namespace cairn::ps
