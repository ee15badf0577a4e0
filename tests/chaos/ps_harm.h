// Harm to the ps of a cluster whose shards have replicas.
#pragma once
#include <string>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/random.h"
#include "tests/chaos/cluster.h"

namespace cairn::chaos {

// Whether a coordinator's status says of each ps that it serves, and that all backups of its shards
// are in sync. A status that tells nothing of backups does not.
bool backups_in_sync(const Json& status);

// Asks the cluster's coordinator. One that gives no answer in time says nothing of the kind.
bool backups_in_sync(const Cluster& cluster);

// Strikes one ps at a time, and the next one only when the coordinator says that every backup is in
// sync again: so no group of a shard's replicas loses two at once, and no update may be lost.
//   Thread  one.
class PsHarm {
 public:
  PsHarm(Cluster& cluster, int ps, Random random) : cluster_(cluster), ps_(ps), random_(random) {}

  // Whether a ps may be struck.
  bool whole() const;
  // Kills a ps and starts it again, stops it, or cuts its connections off: all of them at once, one
  // way, or both ways. A stop or a partition lasts for 2 to 4 s. Returns what was done.
  std::string strike();
  // Ends a stop or a partition that has lasted long enough.
  void look();
  // Ends it now.
  void end();
  // The coordinator was killed or stood still: what it says of the backups may be out of date for a
  // moment.
  void disturb();

 private:
  std::int64_t between(std::int64_t least, std::int64_t most);
  void last(const std::string& ps, Link* partitioned);

  Cluster& cluster_;
  const int ps_;
  Random random_;
  std::string stopped_;          // a ps; empty: none
  Link* partitioned_ = nullptr;  // null: none
  TimePoint until_{};            // of what lasts
  TimePoint quiet_since_{};
};

}  // namespace cairn::chaos
