// LossLedger: what the loss of each task cost. It knows which committed updates a ps does without,
// so that each of them is reported lost exactly once.
//
// An update is a closure that pushed and was committed. A ps that lost its process is rebuilt from
// a checkpoint, and then lacks every update that was committed after the checkpoint's cut, and
// those that it already lacked at that cut. Two things make this more than a subtraction:
//   - A ps that is rebuilt twice from the same checkpoint loses again only what was committed
//     since.
//   - A closure that was sent before the rebuild and is committed after it had pushed to the
//     process that is gone. It is lost too, unless the checkpoint holds it: the new process refuses
//     what was sent under an older layout.
//   Thread  one; pure: it waits for nothing and logs nothing.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster/engine_options.h"

namespace cairn {

struct AppliedClosures;  // coordinator/cluster/shard_client.h

class LossLedger {
 public:
  using Absence = std::optional<std::size_t>;  // number of a report; none: the task was not lost

  // The part of this session's updates that a checkpoint holds.
  struct Holdings {
    std::uint64_t covers = 0;            // so many, the first ones that were committed,
    std::vector<std::uint64_t> missing;  // less those that each ps lacked at its cut; by ps
  };
  struct Rebuilt {
    std::uint64_t layout_version = 0;  // of the layout that named the new process
    Holdings from;                     // of its checkpoint; empty: rebuilt from initial values
    // The closures of this session that the checkpoint has; null: none.
    std::shared_ptr<const AppliedClosures> has = nullptr;
    Absence absence = {};  // its report lists the lost updates
  };
  struct Ps {
    std::uint64_t missing = 0;  // committed updates that it lacks; all of them are reported
    Rebuilt rebuilt = {};       // the last time
  };
  // All that a ledger knows, but for its reports.
  struct State {
    std::uint64_t committed = 0;
    std::uint64_t lost = 0;         // in this session
    std::uint64_t lost_before = 0;  // on the way to what the program restored
    std::uint64_t lost_undone = 0;  // of this session, before the program restored it away
    std::vector<Ps> ps;
  };

  explicit LossLedger(std::size_t ps = 0) : state_{.ps = std::vector<Ps>(ps)} {}
  // One that goes on from there.
  explicit LossLedger(State state) : state_(std::move(state)) {
    for (Ps& ps : state_.ps) ps.rebuilt.absence.reset();  // it is told in the other's reports
  }
  const State& state() const { return state_; }

  // ---- tasks; times in seconds since the engine started ----
  Absence lost(std::string task, std::string reason, double at);
  void back(Absence absence, double after);
  // It was not away; what is lost there is known by other means.
  void told(const std::string& task, std::string reason, double at, std::uint64_t lost_updates);
  // The first update since then went through the task, which ends the absence. False: there is
  // none.
  bool first_push(Absence& absence, double at);

  // ---- updates ----
  // A closure was committed that had been sent under this layout. True: some ps lacks it.
  bool commit(std::uint64_t sequence, std::uint64_t sent_layout);
  // How many updates that loses which were not lost before.
  std::uint64_t rebuilt(std::size_t ps, Rebuilt how);
  // Counts `updates` more as committed; `lacking` says, by ps, how many of them that ps lacks.
  void adopt(std::uint64_t updates, const std::vector<std::uint64_t>& lacking);
  // The program restored a checkpoint on whose way `lost_updates` were lost; all ps are made of it.
  void restored(std::uint64_t lost_updates);

  // The holdings of a cut made now: every committed update, less those that each ps lacks.
  Holdings holdings() const;
  // The updates lost on the way to the present state, in this session and in those it goes on from.
  std::uint64_t lost_on_the_way() const {
    return state_.lost_before + state_.lost - state_.lost_undone;
  }
  std::uint64_t lost_updates() const { return state_.lost; }  // in this session
  const std::vector<LossReport>& reports() const { return reports_; }

 private:
  void add(const Ps& ps, std::uint64_t updates);

  State state_;
  std::vector<LossReport> reports_;
};

}  // namespace cairn
