// CheckpointFolder: the checkpoints of a run side by side: ckpt-00000001, ckpt-00000002, ...
//
// A checkpoint exists exactly while its folder has a manifest. That one file is written last and
// removed first, so that no crash leaves half a checkpoint that looks whole.
#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "core/disk/disk.h"
#include "storage/database_place.h"
#include "storage/manifest.h"
#include "storage/row_store.h"

namespace cairn::storage {

// A checkpoint: its number, and its folder's path.
struct CheckpointEntry {
  std::uint64_t id = 0;
  std::string path;
};

// Which checkpoints belong to a run: those of its session, and those of the sessions that it went
// on from, up to the checkpoint at which it did. What an ancestor saved later belongs to that
// ancestor, which may still be running.
struct Lineage {
  std::uint64_t session = 0;
  std::vector<Ancestor> ancestors;
  bool holds(std::uint64_t saver, std::uint64_t checkpoint) const;
};

// The checkpoints in one folder. Nothing is cached: each call looks at the disk.
//   Errors  those of the disk.
//   Thread  any that may block on files; one writer per folder (folder_lock.h).
class CheckpointFolder {
 public:
  CheckpointFolder(Disk& disk, std::string folder) : disk_(disk), folder_(std::move(folder)) {}

  static std::string name(std::uint64_t id);  // "ckpt-00000042"
  // The number in such a name; empty: it is not one.
  static std::optional<std::uint64_t> parse_name(const std::string& name);
  std::string path(std::uint64_t id) const;

  std::vector<CheckpointEntry> list() const;  // those that have a manifest, oldest first
  std::optional<CheckpointEntry> latest() const;
  std::uint64_t next_id() const;  // above all there are, with a manifest or without
  // Removes, of the checkpoints of `run`, all but the newest `keep_last` and those whose number is
  // a multiple of `keep_every` (0: of none), and leftovers without a manifest. Those of other runs
  // stay, as does what cannot be read. Of those that `keep_every` spares, databases go
  // that a consolidation (consolidation.h) has put others in place of. To be called after a commit,
  // while no further checkpoint is being written.
  //   Result  the folders that were removed.
  std::vector<std::string> prune(std::size_t keep_last, const Lineage& run,
                                 std::size_t keep_every = 0);

 private:
  struct Known;
  Known read_all() const;
  std::vector<std::string> remove_unnamed(const std::vector<Manifest>& old,
                                          const std::vector<Manifest>& kept, const Lineage& run);
  void remove_replaced(const Manifest& manifest, const std::string& name);
  Disk& disk_;
  std::string folder_;
};

// The findings of verify(): how much it read, and what is wrong.
struct VerifyReport {
  std::string path;
  std::uint64_t files = 0, bytes = 0, blocks = 0, rows = 0;
  std::vector<std::string> problems;  // each names its file; empty: no damage was found
  // Local databases that are not on this machine, each with what to do; none of them was read.
  std::vector<std::string> elsewhere;
  bool clean() const { return problems.empty() && elsewhere.empty(); }
};

// Reads every file and every block of the checkpoint at `path` and compares them with its manifest.
// Never throws an Error: what is wrong is in the report.
//   Cost  the whole checkpoint is read twice, once as files and once as blocks.
VerifyReport verify(const Disk& disk, RowStore& store, const std::string& path,
                    const DatabaseFolders& folders = {});

// The newest checkpoint beside the one at `path`, older than it, that verify() finds sound: what to
// restore where that one is damaged. Empty: there is none, or `path` has no number.
//   Errors  those of the disk.
//   Cost    as verify(), for each that it looks at: a file that several of them share is damaged in
//           all.
std::string newest_sound_before(Disk& disk, RowStore& store, const std::string& path,
                                const DatabaseFolders& folders = {});

// The error of a restore from the checkpoint at `path`. If the error means damage (DataLoss;
// NotFound, where the checkpoint has a manifest) the result also names newest_sound_before(), or
// says that there is none. Any other error is returned as it is.
//   Thread  any that may block.   Cost  that of newest_sound_before().
std::exception_ptr with_sound_checkpoint(const std::exception_ptr& error, RowStore& store,
                                         const std::string& path);

}  // namespace cairn::storage
