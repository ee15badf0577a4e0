// The events of a coordinator's journal: what a successor has to know of what happened.
//
// A journal is records of events, in the order in which they happened (record_log.h). The first
// events of a file say who writes it and how the run stands; JournalState applies those that
// follow.
//   Thread  values; any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/progress/pipelines.h"
#include "coordinator/restore/restore_options.h"
#include "core/base/incarnation.h"
#include "core/rows/layout.h"
#include "core/tensor/element.h"

namespace cairn::journal {

// A coordinator begins a file.
struct Opened {
  std::string cluster;
  std::uint64_t session = 0;
  Term term;
  std::string holder;            // for people
  std::string consistency = {};  // as Consistency::text()
};

// A function has its number.
struct FunctionMade {
  std::uint32_t id = 0;
  std::string name;
  std::vector<std::byte> graph;
  bool takes_worker_index = false;
  int replicas = 1;
};

// A variable is made, or got another rule.
struct VariableMade {
  VariableLayout variable;
};

struct DatasetMade {
  std::string name;
  std::uint64_t first_pipeline = 0;
  std::vector<std::vector<std::byte>> descriptions;
  ElementSpec spec;
  bool shared = false;
  std::vector<PipelinePosition> positions;  // where its pipelines begin
};

// These processes are to answer for the shards, by the layout of this version. One that is new has
// no rows before PsRebuilt.
struct ShardsPlaced {
  std::uint64_t layout_version = 0;
  std::uint64_t seed = 0;
  std::vector<ShardLayout> shards;
};

// A closure that updates, or takes elements, is about to be sent for the first time, or with other
// elements than before.
struct ClosureSent {
  std::uint64_t sequence = 0;
  std::uint32_t function = 0;
  std::uint64_t oldest_layout = 0;
  std::int64_t global_step = -1;
  std::vector<Tensor> arguments;
  std::vector<std::shared_ptr<const std::vector<Tensor>>> per_worker;  // as Closure's
  std::vector<std::uint64_t> datasets;                                 // their first pipelines
  std::vector<TakeRecord> takes;
};

struct ClosureEnded {
  std::uint64_t sequence = 0;
  bool updated = false;    // its update is committed
  std::int64_t steps = 0;  // that were committed with it
  std::uint64_t sent_layout = 0;
  // Beside its takes, where the iterators stood afterwards; empty bytes: not known.
  struct State {
    std::uint64_t ordinal = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<State> states;
};

// Shards may be asked to apply this round as the sum of these members' shares, in their order. It
// counts until its members have ended, or another round is named: if no shard could apply it, the
// members run again in other rounds, and shards refuse it however often they are asked.
struct RoundNamed {
  std::uint64_t round = 0;
  std::int64_t step = -1;  // all members'
  struct Member {
    std::int32_t number = 0;
    std::uint64_t sequence = 0;  // the closure's
    std::uint64_t sent_layout = 0;
    friend bool operator==(const Member&, const Member&) = default;
  };
  std::vector<Member> members;  // by their numbers; at least one
};

// Shards may be told that there are closures below the one number, and that those below the other
// have ended. Neither goes back.
struct Announced {
  std::uint64_t closures_below = 0, settled_below = 0;
};

// Closures that are told of elsewhere: in an earlier file, say. All below `settled_below` are, and
// these ranges.
struct Known {
  std::uint64_t settled_below = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> closures;
};

// A ps has other rows than it had (LossLedger::rebuilt()).
struct PsRebuilt {
  std::uint32_t ps = 0;
  std::uint64_t layout_version = 0;
  LossLedger::Holdings from;
  std::shared_ptr<const AppliedClosures> applied;  // of this session, by the checkpoint; null: none
  // That have the rows from now on, by the ps's shards; none: that shard's process had them before.
  std::vector<ProcessIncarnation> processes;
};

// How the run stands, but for what is made (functions, variables, datasets) and what is open.
struct Standing {
  std::int64_t global_step = 0;
  std::uint64_t closures_below = 0;
  LossLedger::State losses;
  struct Pipeline {
    PipelinePosition position;
    bool ended = false;
  };
  std::vector<Pipeline> pipelines;  // by their numbers
};

// Where rows come from that no shard has, as RowSources.
struct SourcesAre {
  struct Source {
    std::string folder;  // of the checkpoint
    RestoreOptions options = {};
    bool partial = false;
    LossLedger::Holdings holdings = {};
  };
  std::optional<Source> restored, newest;
  bool restoring = false;  // some shards may not have the rows of `restored` yet
};

// The program leaves this text for a successor; an empty text removes the note of that name.
struct NoteMade {
  std::string name, text;
};

using Event = std::variant<Opened, FunctionMade, VariableMade, DatasetMade, ShardsPlaced,
                           ClosureSent, ClosureEnded, Announced, PsRebuilt, Standing, SourcesAre,
                           RoundNamed, Known, NoteMade>;

// The format of records: an older release refuses what a newer one has written.
inline constexpr std::uint32_t kEventFormat = 2;

std::string to_record(std::span<const Event> events);
//   Errors  DataLoss: it is none, naming `where`. FailedPrecondition: a newer release wrote it.
std::vector<Event> read_record(std::string_view record, const std::string& where);

}  // namespace cairn::journal
