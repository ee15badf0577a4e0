// Manifest: the file that makes a checkpoint exist. It is written last, as a whole, by rename; a
// folder without one is a leftover.
//
// The file is JSON, whose last field is the CRC-32C of all bytes before that field's line.
// docs/checkpoint-format.md lists the fields. In format 1, which is still read, the checksum stood
// behind the JSON, so that the file as a whole was not JSON.
//   Thread  values; any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/disk/disk.h"
#include "core/graph/update_rule.h"
#include "core/rows/layout.h"
#include "core/tensor/tensor.h"
#include "storage/row_encoding.h"
#include "storage/row_store.h"

namespace cairn::storage {

inline constexpr const char* kManifestFile = "MANIFEST.json";
// A checkpoint with encoded rows has the newer number, as older programs cannot read its rows.
// So has one whose rows may have gone since its base, which older programs would bring back.
// And so has one with databases in local folders of the ps, which older programs do not look for.
inline constexpr int kManifestVersion = 2, kEncodedManifestVersion = 3, kGoneManifestVersion = 4,
                     kLocalManifestVersion = 5;

// A variable as it was when it was saved: what a restore compares before it changes anything.
struct VariableInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  bool trainable = true;
  UpdateRule rule;                 // the one that has slots; an assignment if there is none
  std::vector<std::string> slots;  // their names
  std::vector<RowRange> parts;     // as it was cut when saved
  bool hashed = false;
  // How its rows and slots are held. Of dropped slots `rule` and `slots` say what they were.
  RowForm row_form = RowForm::kExact;
  SlotForm slot_form = SlotForm::kExact;
  // It may hold fewer rows than the base of a delta: some have gone for good (RowPolicy).
  bool evicts = false;
  bool operator==(const VariableInfo&) const = default;
};

// Rows of a variable that a database may hold some of.
struct DatabasePart {
  std::string variable;
  RowRange rows;
  bool operator==(const DatabasePart&) const = default;
};

// The rows of one shard, in one database.
struct DatabaseInfo {
  std::string name;  // its folder, relative to the checkpoint's, or absolute (database_place.h)
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::vector<FileInfo> files;  // named as it is
  // Where it lies in a local folder of a ps: that ps, "/job:ps/task:1", and all of which it has
  // rows, so that it is known who needs it without a look into it.
  std::string task = {};
  std::vector<DatabasePart> parts = {};
  bool operator==(const DatabaseInfo&) const = default;
};

// Where one pipeline stands. From the iterator state at `state_ordinal` on, every element up to
// `ordinal` is still to be read, except those in `committed`.
struct DatasetPosition {
  std::string pipeline;       // the dataset's name and the pipeline's number
  std::uint64_t ordinal = 0;  // the first element never taken
  std::string state;          // its bytes
  std::uint64_t state_ordinal = 0;
  // half-open, ascending, at or above state_ordinal
  std::vector<std::pair<std::uint64_t, std::uint64_t>> committed;
  bool operator==(const DatasetPosition&) const = default;
};

// A session that a run went on from, and that session's checkpoint at which it did.
struct Ancestor {
  std::uint64_t session = 0;
  std::uint64_t checkpoint = 0;
  bool operator==(const Ancestor&) const = default;
};

// One checkpoint. Fields are only ever added, and one that an older manifest lacks has a default.
struct Manifest {
  std::uint64_t checkpoint = 0;
  std::int64_t global_step = 0;
  std::int64_t saved_at_us = 0;  // since 1970 UTC
  // Updates that the step counts and that the rows may lack, since a ps was lost on the way: an
  // upper bound.
  std::uint64_t lost_updates = 0;
  std::uint64_t session = 0;
  // The session that this one was resumed from, and that one's own ancestors, the oldest first.
  std::vector<Ancestor> ancestors;
  // The seed of initial values: rows that no database holds are computed from it.
  std::uint64_t seed = 0;
  std::uint64_t layout_version = 0;
  std::vector<VariableInfo> variables;
  std::vector<DatabaseInfo> databases;
  std::uint64_t low_watermark = 0;  // all closures below it are applied
  std::vector<std::pair<std::uint64_t, std::uint64_t>> applied;  // and these, half-open, ascending
  std::vector<DatasetPosition> datasets;
  std::string metadata = "{}";  // the program's own, JSON
  // The checkpoint that this one is a delta of, by name: its first databases are that one's. Empty:
  // it is a full one.
  std::string base;
  Compression compression = Compression::kNone;  // of rows
  bool operator==(const Manifest&) const = default;
};

// The text of a manifest, its checksum included.
//   Errors  InvalidArgument: the metadata is not JSON.
std::string to_text(const Manifest& manifest);
// The manifest of a text; `path` is for messages.
//   Errors  DataLoss, naming `path` and the cure: cut short, changed or malformed. Unimplemented: a
//           later format.
Manifest parse_manifest(std::string_view text, const std::string& path);

// Makes the checkpoint in `folder` exist.
//   Errors  the disk's.
//   Thread  any that may block on files.
void commit(Disk& disk, const std::string& folder, const Manifest& manifest);
// The same of a checkpoint that is not there yet: of two runs that commit one at once, one does.
//   Errors  FailedPrecondition: another run's is there already; names it. Unimplemented: the store
//           cannot tell (Disk::write_new()). The disk's.
void commit_new(Disk& disk, const std::string& folder, const Manifest& manifest,
                Disk::SingleWriter single);
// The manifest of the checkpoint in `folder`.
//   Errors  NotFound: there is none; and those of parse_manifest().
//   Thread  any that may block on files.
Manifest read_manifest(const Disk& disk, const std::string& folder);

// Groups files named "DATABASE/FILE" by their database, in the order of first mention; rows are
// left at 0.
std::vector<DatabaseInfo> group_by_database(const std::vector<FileInfo>& files);

}  // namespace cairn::storage
