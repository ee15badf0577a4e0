// Journal: what a coordinator writes down, so that a successor can go on where it stood.
//
// A folder, which one coordinator at a time has, holds
//   config-N           term and epochs (config_store.h)
//   made-SESSION-TERM  functions, variables and datasets, each written once
//   journal-TERM-N     how the run stood when this file was begun, and all that happened since
//   LOCK               who has the folder
// Each coordinator begins files of its own, and each checkpoint another journal-TERM-N; only then
// the files before it go. So a coordinator that was taken for dead, and is not, never touches what
// its successor writes. What is made is on the disk before anything that refers to it is written.
//
// note() takes an event; whoever must not go on before the event is safe waits for written() or
// kept(). What is noted while one write is under way goes with the next.
//   Thread  open() and found(): one, which may block. The rest: the engine's; files are written on
//           the Offload, on a lane of their own.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/engine_options.h"
#include "coordinator/journal/journal_event.h"
#include "coordinator/journal/journal_state.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/offload.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task.h"
#include "rpc/loop/task_group.h"
#include "rpc/server/signal.h"

namespace cairn {

class ConfigStore;
class Disk;
class DiskLock;

namespace journal {

// The folder, if another coordinator has it.
enum class FolderInUse : std::uint8_t {
  kRefuse,
  kTakeOver  // that one is shut out by its term; what it writes now does not count
};

class Journal {
 public:
  // Takes the folder, for the cluster of this id, and reads what is there.
  //   Errors  FailedPrecondition: another coordinator has the folder, named; it is another
  //           cluster's, or a newer release's. DataLoss: the journal is damaged; names the place.
  //           Those of Disk.
  static std::shared_ptr<Journal> open(Disk& disk, JournalOptions options,
                                       const std::string& cluster,
                                       FolderInUse in_use = FolderInUse::kRefuse);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // How the run stood; none: there was none.
  const std::optional<JournalState>& found() const { return found_; }
  const std::shared_ptr<ConfigStore>& config_store() const { return config_store_; }
  const std::string& folder() const { return options_.folder; }

  // Reads the folder again if another coordinator still had it when this one opened it. Call this
  // once all tasks have joined this coordinator, so that the other one can change nothing any more.
  //   Errors  as open().
  rpc::Task<void> read_again(rpc::Reactor& reactor, Offload& offload);
  // Begins this coordinator's files. Where no run was found, `ps` says how many the new one has. To
  // be called once, before anything is noted.
  //   Errors  those of the disk.
  rpc::Task<void> begin(rpc::Reactor& reactor, Offload& offload, Opened opened, std::size_t ps);

  // If a write fails, the waits below throw its error from then on, and nothing more is written:
  // for a successor the journal ends there.
  void note(Event event);
  // All that has been noted is in the files, so that the end of this process does not take it back.
  //   Errors  those of the disk.
  rpc::Task<void> written();
  // Nor does a loss of power.
  rpc::Task<void> kept();
  // How many events were noted so far, and whether the first `events` of them would survive a loss
  // of power now.
  std::uint64_t noted() const { return counts_.noted; }
  bool are_kept(std::uint64_t events) const { return !error_ && counts_.kept >= events; }
  // Throws the error of a write that failed, as the waits do.
  void verify_written() const;
  // The next write begins another file.
  void begin_anew() { anew_ = true; }

  // As the files tell it: as of the last write.
  const JournalState& state() const { return state_; }

 private:
  struct Files;

  Journal(Disk& disk, JournalOptions options, std::string cluster, FolderInUse in_use);
  void read();
  std::optional<JournalState> read_newest() const;
  std::string made_path(const Opened& opened) const;
  rpc::Task<void> on_disk_thread(std::function<void()> work);
  rpc::Task<void> wait_for(const std::uint64_t& done, std::uint64_t wanted);
  void write_soon();
  rpc::Task<void> write_all();
  rpc::Task<void> write_group();
  rpc::Task<void> begin_file();
  rpc::Task<void> keep_later();

  Disk& disk_;
  const JournalOptions options_;
  const std::string cluster_;
  std::unique_ptr<DiskLock> lock_;  // null: the folder was in use, and is taken over
  std::shared_ptr<ConfigStore> config_store_;
  std::optional<JournalState> found_;
  rpc::Reactor* reactor_ = nullptr;
  Offload* offload_ = nullptr;
  JournalState state_;
  std::shared_ptr<Files> files_;  // shared with the work that writes them
  std::vector<Event> pending_;
  // Events, counted from the first: those that were noted, that are in the files, that no loss of
  // power takes back, and that somebody waits to be.
  struct Counts {
    std::uint64_t noted = 0, written = 0, kept = 0, wanted = 0;
  };
  Counts counts_;
  bool anew_ = false, writing_ = false, keeping_ = false;
  std::optional<ErrorParts> error_;
  rpc::Signal changed_;
  rpc::TaskGroup tasks_;
};

// The session that the journal tells of, or else `fresh`, for EngineOptions::session.
SessionChoice session_of(std::shared_ptr<Journal> journal, std::uint64_t fresh);

}  // namespace journal
}  // namespace cairn
