// The calls about replicas, as a coordinator makes them.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "ps/replica/replica_log.h"
#include "rpc/wire/layout_wire.h"
#include "tests/ps/server/server_fixture.h"

namespace cairn::ps {

inline void set_backups(ShardClient& primary, const std::vector<ShardReplica>& backups,
                        Lease lease = Lease::kNone) {
  auto request = primary.ruled.setBackupsRequest();
  request.setSession(ShardHarness::kSession);
  request.setLeased(lease == Lease::kLeased);
  auto out = request.initBackups(static_cast<unsigned>(backups.size()));
  for (unsigned i = 0; i < out.size(); ++i) wire::write(out[i], backups[i]);
  primary.wait(request.send().ignoreResult());
}

struct BackupNews {
  std::uint64_t version = 0;
  std::vector<bool> caught_up;
  std::vector<std::string> troubles;
  std::vector<std::uint64_t> behind;  // records
};
inline BackupNews news_of_backups(ShardClient& primary, std::uint64_t seen) {
  auto request = primary.ruled.awaitBackupsRequest();
  request.setSession(ShardHarness::kSession);
  request.setSeen(seen);
  kj::Promise<capnp::Response<wire::Shard::AwaitBackupsResults>> sent = request.send();
  const auto answer = primary.wait(kj::mv(sent));
  BackupNews news{answer.getVersion(), {}, {}, {}};
  for (const auto backup : answer.getBackups()) {
    news.caught_up.push_back(backup.getCaughtUp());
    news.troubles.push_back(backup.getTrouble());
    news.behind.push_back(backup.getBehind());
  }
  return news;
}
inline void until_caught_up(ShardClient& primary) {
  for (BackupNews now = news_of_backups(primary, 0);; now = news_of_backups(primary, now.version))
    if (std::ranges::all_of(now.caught_up, [](bool one) { return one; })) return;
}

// The backup answers for the rows from now on, in epoch 2. These are those of variable 0, part 0.
inline Floats promoted_rows(ShardClient& backup) {
  auto request = backup.ruled.configureRequest();
  request.setSession(ShardHarness::kSession);
  request.setLayoutVersion(2);
  request.setSeed(42);
  request.setEpoch(2);
  backup.wait(request.send().ignoreResult());
  backup.open();
  auto pull = backup.shard.pullRequest();
  pull.initStep().setSession(ShardHarness::kSession);
  pull.getStep().setIncarnation(1);
  pull.getStep().setEpoch(2);
  pull.initHeaders(1)[0].setWhole(true);
  kj::Promise<capnp::Response<wire::Shard::PullResults>> sent = pull.send();
  const auto answer = backup.wait(kj::mv(sent));
  Floats rows(answer.getValues().size() / sizeof(float));
  std::copy_n(answer.getValues().begin(), answer.getValues().size(),
              reinterpret_cast<kj::byte*>(rows.data()));
  return rows;
}

}  // namespace cairn::ps
