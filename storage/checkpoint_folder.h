// CheckpointFolder: the checkpoints of a run side by side: ckpt-00000001, ckpt-00000002, ...
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/disk.h"
#include "storage/manifest.h"
#include "storage/row_store.h"

namespace cairn::storage {

struct CheckpointEntry {
  std::uint64_t id = 0;
  std::string path;
};

// Whose checkpoints are whose: those of a session, and those that it went on from. What an ancestor
// saved later is not.
struct Lineage {
  std::uint64_t session = 0;
  std::vector<Ancestor> ancestors;
  bool holds(std::uint64_t saver, std::uint64_t checkpoint) const;
};

// Thread: any that may block on files; one writer a folder (folder_lock.h).
class CheckpointFolder {
 public:
  CheckpointFolder(Disk& disk, std::string folder) : disk_(disk), folder_(std::move(folder)) {}

  static std::string name(std::uint64_t id);  // "ckpt-00000042"
  // empty: not such a name
  static std::optional<std::uint64_t> parse_name(const std::string& name);
  std::string path(std::uint64_t id) const;

  std::vector<CheckpointEntry> list() const;  // those that have a manifest, oldest first
  std::optional<CheckpointEntry> latest() const;
  std::uint64_t next_id() const;  // above all there are, with a manifest or without
  // Removes, of the checkpoints of `run`, all but the newest `keep_last` (and what any that stays
  // is a delta of), and leftovers without a manifest. Those of other runs stay, as does what cannot
  // be read. For after a commit, while nobody writes a further checkpoint.
  // Result  what was removed.
  std::vector<std::string> prune(std::size_t keep_last, const Lineage& run);

 private:
  struct Known;
  Known read_all() const;
  Disk& disk_;
  std::string folder_;
};

struct VerifyReport {
  std::string path;
  std::uint64_t files = 0, bytes = 0, blocks = 0, rows = 0;
  std::vector<std::string> problems;  // each names its file; empty: the checkpoint is sound
  bool clean() const { return problems.empty(); }
};

// Reads every file and every block of the checkpoint at `path` and compares them with its manifest.
// Never throws an Error: what is wrong is in the report.
VerifyReport verify(const Disk& disk, RowStore& store, const std::string& path);

}  // namespace cairn::storage
