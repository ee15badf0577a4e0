// StatsBook: the figures of a run. The engine's loop writes them, any thread reads them.
//
// Every change is one short critical section, so that a reader never sees half of one and never
// holds up the loop: what is written while the mutex is held only copies and adds.
//   Thread  any.
//   Cost    edit(): an uncontended lock; the scheduler pays it once for each update.
#pragma once
#include <mutex>
#include <utility>

#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/loss_ledger.h"

namespace cairn {

class StatsBook {
 public:
  // Calls `change(EngineStats&)` with the mutex held: it must neither wait nor call back.
  template <typename Change>
  void edit(Change&& change) {
    std::lock_guard hold(mutex_);
    std::forward<Change>(change)(stats_);
  }
  // Publishes the ledger's present losses. A part that changes the ledger calls this.
  void publish(const LossLedger& losses) {
    edit([&](EngineStats& stats) {
      stats.losses = losses.reports();
      stats.lost_updates = losses.lost_updates();
    });
  }
  EngineStats read() const {
    std::lock_guard hold(mutex_);
    return stats_;
  }

 private:
  mutable std::mutex mutex_;  // guards stats_
  EngineStats stats_;
};

}  // namespace cairn
