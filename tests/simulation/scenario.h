// A scenario: a small job on a simulated cluster, and what goes wrong on the way. All of it follows
// from one seed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/cluster/consistency.h"
#include "core/base/clock.h"

namespace cairn::simulation {

// The state of a cluster in which a fault strikes.
enum class Phase : std::uint8_t {
  kAny,
  kIdle,      // every closure that was scheduled has ended
  kPush,      // a shard has applied a closure's push, and the closure has not ended
  kCut,       // a shard has marked for a checkpoint, and its rows are not all saved
  kRound,     // a shard has applied a round's sum, and its closures have not ended
  kCatchUp,   // a backup has a shard's tables, and is not in sync
  kTakeOver,  // the process that a shard's layout names is gone, or does not answer yet
  kJournal,   // events of the journal are not on the disk
  kRebuild,   // that process is there, and does not answer yet
};

struct Fault {
  enum class Kind : std::uint8_t {
    kKillWorker,
    kKillPs,
    // what ps `a` sends to the others does not arrive, workers lose it for a moment, and then it is
    // killed
    kKillUnheard,
    kKillChief,  // `a`: which; it is started again after `lasts`
    // the coordinator's machine: of what its journal has not synced, `a` of 100 bytes stay
    kPowerLoss,
    // the next coordinator that starts dies at its step `a` on the disk; if the scenario has
    // kPowerLoss, with its machine's power
    kChiefDiesStarting,
    // connections between hosts `from` and `to` end and cannot be made
    kCut,
    kPartition,  // messages from `from` to `to` do not arrive
    kPartitionBoth,
    // a request or its answer is lost, and the connection with it
    kDropNext,
    kDiskFull,
    kDiskDown,
    kDiskSlow,  // kDiskDown: power goes in the middle of the next write
    kWallJump,
    // worker `a` is taken for dead; what it had sent to ps `to` comes late, before what others send
    // there
    kZombie,
    kStop,  // ps `from` stands still, and goes on
    kSlow,  // messages to and from `from` take `a` times as long
  };
  Kind kind = Kind::kKillWorker;
  int a = 0;
  std::string from, to;
  std::int64_t at_closure = 0;  // once so many closures are finished, in all
  Duration then{0};             // and this much time has passed
  Duration lasts{0};
  // Not kAny: once the phase is seen, and still there after `then`. But for kCatchUp, kTakeOver and
  // kRebuild all copies are in sync.
  Phase phase = Phase::kAny;
  std::string str() const;
};

enum class Job : std::uint8_t {
  kNumbers,  // element n of the data is row n mod rows
  // elements are batches of the flights of 2013; a flight's row is a hash of what names it
  kFlights,
  kInStep,  // workers in step, without ps or coordinator: group.h
  // two consumers of one job of the data service under DYNAMIC, whose elements the closures are
  kDataService,
  // a ps or all workers come and go (flapping.h)
  kFlapping,
  kTurnover,  // shards of which rows come and go for good, without a network: turnover.h
};

inline constexpr std::int64_t kFlights = 336'776, kFlightBatch = 256, kFlightRows = 1 << 20,
                              kFlightClosures = (kFlights + kFlightBatch - 1) / kFlightBatch,
                              kBeyondTheEnd = 40;  // more closures than the epoch has batches

// Which rows of each table a closure adds one to.
enum class Spread : std::uint8_t {
  kOneRow,  // one of all: most shards have no row of it
  // one of each shard's: then the rows of each shard tell how many closures it has applied
  kEveryShard,
};

// How a closure adds one.
enum class Updates : std::uint8_t {
  kAssigned,  // by assignments: such a closure has its lane to itself, and pulls nothing
  // by an optimizer's rule, having pulled its hashed rows: closures overlap as deep as the pipeline
  // is
  kByRule,
};

struct Scenario {
  std::uint64_t seed = 1;
  Job job = Job::kNumbers;
  int ps = 2, workers = 2;
  std::uint32_t shards = 1, lanes = 1;
  struct Sending {
    std::uint32_t depth = 1, window = 16;  // EngineOptions::pipeline_depth and send_window
  };
  Sending sending;
  Consistency consistency;  // under hybrid, v, w and wide are mirrored
  std::int64_t closures = 100;
  std::int64_t rows = 50;  // of the dense table
  struct Hashed {
    std::int64_t dim = 1;        // elements per row of the hashed table
    std::int64_t in_memory = 0;  // its rows on a shard; the others are elsewhere. 0: all
  };
  Hashed hashed;
  Spread spread = Spread::kOneRow;
  Updates updates = Updates::kAssigned;
  // elements of a variable that is large here, as messages are small; 0: there is none. The only
  // one of workers in step, of whom `closures` are the steps
  std::int64_t wide = 0;
  struct Saves {
    std::int64_t every = 0;                             // steps; 0: none
    std::size_t full_every = 1, consolidate_after = 0;  // CheckpointPolicy
    // of a ps, in bytes; 1: no row may be copied aside, and pushes wait for saves. 0: the default
    std::size_t memory = 0;
    bool slow = false;  // records are written one by one, and pushes come between them
    // Rows of a restore, also of a ps that was lost, come while closures run, a block at a time.
    bool on_demand = false;
    bool journal = false;  // a coordinator goes on with the run of the one before it
  };
  Saves saves;
  struct Delays {  // at most
    Duration network{0}, disk{0};
  };
  Delays delays;
  struct Copies {
    std::uint32_t replicas = 1;  // of each shard's rows, on so many ps
    // Faults may take all copies of a shard at once. False: a ps is struck only while all copies on
    // the others are in sync.
    bool all_at_once = false;
    bool any() const { return replicas > 1; }
    bool none_lost() const { return any() && !all_at_once; }
    bool some_lost() const { return any() && all_at_once; }
  };
  Copies copies;
  int late_variables = 0;  // that the program makes, and assigns to, while closures run
  bool followed = false;   // a subscriber keeps a copy of the rows: follower.h, part_follower.h
  std::vector<Fault> faults;
  // The journal may lose its newest part: then elements are given out again.
  bool loses_power() const;
  std::string str() const;  // a few lines for people
};

// The kind of scenarios that the numbers are drawn for.
enum class Mix : std::uint8_t {
  kEverything,  // small jobs, every kind of fault
  // 10,000 closures on 4 workers at depth 1 (odd seeds) or 4, 1,000 rows over 2 ps; workers and
  // connections fail
  kExactlyOnce,
  kFlights,  // an epoch of flights.csv on 3 workers, which are killed
  // kEverything with a dense variable that is updated in slices, and the rest in pieces
  kSlices,
  // kEverything under bounded(k), with workers that are slow for a while
  kBounded,
  // the same under synchronous(b), sometimes with an update in slices
  kSynchronous,
  // the same under HybridStrategy
  kHybrid,
  // workers in step: deaths, partitions, lost messages, slow hosts
  kGroups,
  // the data service: data workers and the dispatcher die, connections fail (data_service.h)
  kDataService,
  // a ps or all workers come and go, over and over (flapping.h)
  kFlapping,
  // checkpoints and deltas of rows that come and go for good (turnover.h)
  kTurnover,
  // kEverything with a journal, asynchronous or bounded(k): coordinators die over and over, by
  // themselves or, under odd seeds, with the power of their machine, and as they start
  kSuccessor,
  // ps with copies of each other's rows die, stand still and are cut off (replicated.h)
  kReplicated,
  // one of two: kEverything or kTurnover, with a subscriber that keeps a copy of the rows
  kFollowed,
};
Scenario make_scenario(std::uint64_t seed, Mix mix = Mix::kEverything);

}  // namespace cairn::simulation
