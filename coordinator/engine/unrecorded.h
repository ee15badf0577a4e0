// Unrecorded: the closures that shards have and the journal does not, since it lost its newest part
// when the power of its machine went.
//
// The earlier coordinator had sent them, and it is not known any more what they were. So they are
// not run again: each counts as an update, and where a ps lacks it as one that is lost there. A
// shard is asked while it is closed and all lanes of the earlier coordinator are fenced, so that no
// such closure can push any more.
//   Thread  the engine's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "coordinator/cluster/shard_client.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/journal/recorder.h"
#include "rpc/loop/task.h"

namespace cairn {

struct UnrecordedClosure {
  std::uint64_t sequence = 0;
  std::vector<std::size_t> lacking;  // the ps some shard of which does not have it
};

// An update of the run counts so many steps; whether some count more. The journal has every
// function, as it is synced before a closure that runs it is sent.
struct StepsOfUpdate {
  std::int64_t least = 1;
  bool differ = false;
};

// The closures that each shard of a ps has; none: the shard has no rows, so that nothing is pushed
// there.
using AppliedOnShards = std::vector<std::optional<AppliedClosures>>;

// The closures that some shard has and that are not `known`, ascending.
std::vector<UnrecordedClosure> find_unrecorded(const AppliedClosures& known,
                                               const std::vector<AppliedOnShards>& by_ps);

class Unrecorded {
 public:
  Unrecorded(Session& session, ClusterMembers& members, ShardTables& tables, Recorder& recorder)
      : session_(session), members_(members), tables_(tables), recorder_(recorder) {}

  // Asks the shards of a ps that is about to be opened. A later answer takes the place of an
  // earlier one. Nothing, if the program has taken over, or there is no run to go on with.
  //   Errors  DataLoss: a shard has closures that were never announced, so that the journal is not
  //           this run's newest. Those of the call.
  rpc::Task<void> ask(Ps* ps);
  // Ends once all ps have answered; what came of it.
  //   Errors  Unavailable: a ps was given up. Those of the journal, if it cannot be written.
  rpc::Task<std::vector<UnrecordedClosure>> all_asked();

  // As an update of the run counts; before that is known, one.
  StepsOfUpdate steps;

 private:
  void verify(const Ps& ps, ShardId shard, const AppliedClosures& applied) const;

  Session& session_;
  ClusterMembers& members_;
  ShardTables& tables_;
  Recorder& recorder_;
  std::vector<AppliedOnShards> answers_;  // by ps; empty: not asked yet
};

}  // namespace cairn
