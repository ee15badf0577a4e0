// The options of an engine, and the figures of a run that it reports.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/cluster_spec.h"
#include "coordinator/cluster/consistency.h"
#include "coordinator/cluster/staleness.h"
#include "coordinator/cluster/variable_registry.h"
#include "core/base/arithmetic.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "storage/row_encoding.h"

namespace cairn {

class ConfigStore;
namespace journal {
class Journal;
}
namespace storage {
struct FolderLock;
}

// When to save, where, and what to keep. With steps and seconds both, a save is due at whichever
// comes first.
struct CheckpointPolicy {
  // The coordinator and every ps see the folder under this name, unless there is a `local_folder`.
  std::string folder;
  // 0: not by steps.
  std::int64_t every_steps = 0;
  // 0: not by time.
  double every_seconds = 0;
  // Older checkpoints of this run are removed once a new one is whole. At least one is kept.
  std::size_t keep_last = 5;
  // On the folder, if a program of one process has taken it already (storage/folder_lock.h).
  std::shared_ptr<const storage::FolderLock> folder_lock = nullptr;
  // False: the caller takes what it wants from the checkpoint and removes it. So it does not count
  // as the newest, and a ps that is lost is not rebuilt from it.
  bool lasting = true;
  // One of so many checkpoints in a row holds all rows, and each of the others, a delta, those that
  // changed since the one before it; beside them it has the files of that one, by hard links, so
  // that no checkpoint needs another. 1: each holds all. Under parameter servers alone, where a ps
  // that was lost writes all of its rows once.
  std::size_t full_every = 1;
  // Once a checkpoint is so many deltas beyond a full one, the coordinator's process makes it, or a
  // later one that goes back to it, hold all rows itself (storage/consolidation.h): of what the
  // disk has, beside the training, so that the ps need not write all rows for that. 0: never. On a
  // file system, with `full_every` above it, and rows that lose nothing by being written again (no
  // int8, no dropped slots).
  std::size_t consolidate_after = 0;
  // Beside the newest `keep_last`, those stay whose number (of "ckpt-00000040": 40) is a multiple
  // of this. By number and not by step: checkpoints that are saved by time or on request lie at any
  // step, so that few would be a multiple of anything. 0: none stay.
  std::size_t keep_every = 0;
  // How rows lie in the files. Another one than the last checkpoint's makes the next one full.
  storage::RowEncoding encoding = {};
  // For machines that share no file system: each ps writes its rows below this folder of its own
  // machine, into ps-INDEX. Only the coordinator needs to see `folder`, whose manifests say where
  // the rows are (storage/database_place.h). Each ps then restores its own rows, so that
  // it must be on its machine, and as many must be there as before; `cairn ckpt copy` makes a
  // checkpoint for any number. An absolute path. Empty: all is in `folder`. Under parameter servers
  // alone, and for checkpoints that last.
  std::string local_folder = {};
  // No other run saves into the folder: for a store that could not tell (Disk::write_new()).
  bool single_writer = false;
};

// When a task that may be only busy counts as lost: once `missed_max` heartbeats in a row, one each
// `interval`, went unanswered.
struct Heartbeats {
  Duration interval = std::chrono::milliseconds(150);
  int missed_max = 5;
};

// When the engine writes to the log what it waits for.
struct WaitReports {
  // A closure that makes no progress for so long is named in the log, with what it waits for.
  Duration stuck_after = std::chrono::seconds(60);
  // On this signal, SIGUSR1 say, the engine logs all that it waits for; 0: on none.
  int signal = 0;
};

// A task that the engine's start waits for.
struct MissingTask {
  std::string name;     // "/job:ps/task:0"
  std::string address;  // "host:port"
  std::string trouble;  // why there is no connection to it
  std::string text() const { return str(name, " at ", address, ": ", trouble); }
};

// How the engine's start waits for the cluster's tasks.
struct StartWait {
  Duration timeout = std::chrono::seconds(60);  // for all tasks together
  // Called by start_engine_thread() some ten times a second while it waits for tasks, with those
  // that are still missing. What it throws ends the waiting.
  std::function<void(const std::vector<MissingTask>& missing)> on_wait = {};
};

// How lanes compute, on whatever device their worker has.
struct LaneComputing {
  Arithmetic products = Arithmetic::kFloat32;  // the arithmetic of matrix products
  // It repeats bit for bit on the same GPU (PlanOptions). A worker that was started so does that
  // for every program.
  bool deterministic = false;
};

// A ps that is lost is waited for, and rebuilt, unless this is false.
struct PsRecovery {
  PsRecovery(bool wanted = true) : on(wanted) {}
  explicit operator bool() const { return on; }

  bool on;
  // Every restore, the program's own too, is one with RestoreOptions::on_demand.
  bool on_demand = false;
  // On so many ps each row lies. All that one of them, the primary, answers the others have, its
  // backups, so that one of these goes on with the rows, at the update where they stand, if the
  // primary is lost. 1: there are none, and rows come back as of the newest checkpoint.
  std::uint32_t replicas = 1;
};

// A journal: if the coordinator dies, the next one that is started with the same journal goes on
// with rows, step and data as they stand. Closures that had not ended are gone on with under the
// consistency that they were sent under; a bound, or a number of backup workers, may differ.
struct JournalOptions {
  // On a file system; one coordinator at a time has it. Empty: there is no journal, and a
  // coordinator that is started later begins a session of its own.
  std::string folder = {};
  // Synced at most so long after it was written; zero: before anything is sent. The death of the
  // process loses nothing either way. If the machine's power goes, the journal may lack what the
  // coordinator did within that time. The next one asks the shards for closures of which the
  // journal does not know (ResumedRun::unrecorded). Each counts as an update, and as lost on every
  // ps that lacks it; its elements are given out again, and so are used twice. The members
  // of a round are synced before it is applied, and under HybridStrategy every closure is synced
  // before it is sent, whatever this says.
  Duration sync_after = std::chrono::milliseconds(50);
};

// The session that a coordinator begins, or goes on with.
struct SessionChoice {
  SessionChoice(std::uint64_t wanted = 0) : number(wanted) {}

  // Another one for each session; 0: it is drawn. Simulations give one, so that a run can be
  // replayed.
  std::uint64_t number;
  // Where it is kept who the coordinator is, and which process answers for each shard. The caller
  // has seen to it that no other coordinator is at work with it: one that starts later gets a later
  // term, and is the coordinator from then on. Null: nowhere; then nobody can go on with a session.
  std::shared_ptr<ConfigStore> config_store = nullptr;
  // The coordinator writes into this journal, and goes on with the run that the journal tells of,
  // if any. Then `config_store` is the journal's, and `number` that of the run's session.
  // Null: nothing is written, and no later coordinator can go on.
  std::shared_ptr<journal::Journal> journal = nullptr;
};

struct EngineOptions {
  ClusterSpec cluster;
  // Tasks of another cluster are refused at the greeting, so that a wrong address is found at once.
  std::string cluster_id = "cairn";
  std::string token;
  SessionChoice session;
  // Instead of `session`, which then follows from it.
  JournalOptions journal;
  // Whether to serve the chief's address to other hosts without a token.
  bool insecure = false;
  RegistryOptions variables;
  // How far lanes may run ahead of one another.
  Consistency consistency;
  // At most so many closures of a lane are between the start of their pull and the end of their
  // push; 1: strict order of read, compute and write.
  std::uint32_t pipeline_depth = 2;
  // At most so many closures are sent to a lane and not answered (send_window.h); fewer with a
  // bound on staleness (consistency.h).
  std::uint32_t send_window = 256;
  // schedule() waits while so many closures are queued.
  std::size_t queue_capacity = 256 * 1024;
  // Rows and gradients travel as bfloat16, at half the bytes; the ps keep float32.
  bool bfloat16_wire = false;
  LaneComputing computing;
  // If another coordinator is at work at a task of the cluster, or has the journal, this start is
  // not refused: the other one's session is ended or, with a journal, gone on with.
  bool take_over = false;
  // false: a ps that is lost is an error at once.
  PsRecovery recovery;
  Heartbeats heartbeats;
  StartWait start;
  // How long a lost ps may take to come back before the program gets an error.
  Duration ps_wait = std::chrono::minutes(10);
  // How long the program goes on without any worker before it gets an error.
  Duration worker_wait = std::chrono::minutes(10);
  WaitReports waits;
};

// The run that a coordinator goes on with, as its journal told it.
struct ResumedRun {
  std::int64_t global_step = 0;  // once the open closures had ended
  std::uint64_t term = 0;        // of this coordinator
  std::size_t open = 0;          // closures that had been sent and not ended: they have, by now
  // Closures that shards had and the journal did not, since it lost its newest part with the
  // power of its machine. They count as updates.
  std::size_t unrecorded = 0;
  // The notes of earlier programs of the run (ClusterCoordinator::note()), by name.
  std::map<std::string, std::string> notes = {};
};

// A task that was lost, and what it cost.
struct LossReport {
  std::string task;  // "/job:ps/task:1"
  // Also that the journal had lost closures which this ps lacks: then it was not away.
  std::string reason;
  double at_seconds = 0;           // since the engine started
  double back_after_seconds = -1;  // until it was connected and served again; -1: not yet
  // until the first closure that pushed through it; -1: not yet
  double first_push_after_seconds = -1;
  std::uint64_t lost_updates = 0;  // a ps: closures whose updates are gone there
};

struct EngineStats {
  // A snapshot of one moment. Counters go up from the engine's start, but for the global step,
  // which a restore sets.
  double uptime_seconds = 0;  // since the engine started
  std::int64_t global_step = 0;
  std::uint64_t updates = 0;  // closures that pushed and are committed
  std::uint64_t retried = 0;
  std::uint64_t lost_updates = 0;
  StalenessHistogram staleness;
  double staleness_mean = 0;  // of these
  std::uint64_t staleness_max = 0;
  std::uint32_t workers_ready = 0, workers = 0, ps_ready = 0, ps = 0;
  std::uint64_t skipped_rows = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t checkpoints_failed = 0;  // of those that are saved by themselves
  std::string checkpoint_error;          // why the last of them failed
  std::string last_checkpoint;
  double last_checkpoint_seconds = 0;  // how long it took
  double last_cut_seconds = 0;         // how long pushes were held for it
  std::vector<LossReport> losses;
};

}  // namespace cairn
