// `cairn ckpt verify`: reads everything that a restore could read, and goes on after an error,
// because a user wants to know all that is wrong with a checkpoint before choosing another.
//
// A database's files and its records are read at the same time, by two threads: one of them reads
// from the disk, and the other finds the same pages in the system's cache.
#include <future>

#include "core/base/error.h"
#include "core/base/log.h"
#include "storage/checkpoint_folder.h"
#include "storage/range_read.h"
#include "storage/row_block.h"

namespace cairn::storage {
namespace {

// Runs `work`; an error that it throws becomes a line of the report.
template <typename Work>
void collect(VerifyReport& report, Work work) {
  try {
    work();
  } catch (const Error& error) {
    report.problems.emplace_back(error.what());
  }
}

void verify_file(const Disk& disk, const std::string& folder, const FileInfo& file,
                 VerifyReport& report) {
  const std::string path = place_of(folder, file.name);
  if (!disk.exists(path)) throw DataLossError(str(path, " is missing"));
  const FileInfo found = file_info(disk, path, file.name);
  ++report.files;
  report.bytes += found.bytes;
  if (found.bytes != file.bytes)
    throw DataLossError(str(path, " has ", found.bytes, " bytes, the manifest says ", file.bytes));
  if (found.checksum != file.checksum)
    throw DataLossError(str(path, " was changed: its checksum does not match the manifest's"));
}

// Decodes every record, which checks the checksum of each block, and counts rows. The file's
// checksum covers the same bytes; this also covers what RocksDB makes of them.
VerifyReport verify_rows(RowStore& store, const std::string& folder, const DatabaseInfo& database) {
  VerifyReport report;
  const auto work = [&] {
    const auto reader = store.open(place_of(folder, database.name));
    reader->will_read("", std::string(1, '\xff'));
    StoredRows rows;
    for (reader->seek(""); reader->valid(); reader->next()) {
      ++report.blocks;
      report.rows +=
          static_cast<std::uint64_t>(verify_record(reader->key(), reader->value(), rows));
    }
    if (report.rows != database.rows)
      throw DataLossError(str(place_of(folder, database.name), " holds ", report.rows,
                              " rows, the manifest says ", database.rows));
  };
  collect(report, work);
  return report;
}

void verify_database(const Disk& disk, RowStore& store, const std::string& folder,
                     const DatabaseInfo& database, VerifyReport& report) {
  verify_database_name(database.name);
  const std::size_t before = report.problems.size();
  std::future<VerifyReport> records =
      std::async(std::launch::async, [&] { return verify_rows(store, folder, database); });
  for (const FileInfo& file : database.files)
    collect(report, [&] { verify_file(disk, folder, file, report); });
  const VerifyReport found = records.get();
  report.blocks += found.blocks;
  report.rows += found.rows;
  // A changed file is reported once, as such, and not again for the blocks that it spoils.
  if (report.problems.size() == before)
    report.problems.insert(report.problems.end(), found.problems.begin(), found.problems.end());
}

// Older checkpoints cannot be judged here if their rows are on other machines.
bool rows_are_elsewhere(const Disk& disk, const std::string& checkpoint) {
  try {
    const Manifest manifest = read_manifest(disk, checkpoint);
    return std::any_of(manifest.databases.begin(), manifest.databases.end(),
                       [&](const DatabaseInfo& database) {
                         return is_local(database.name) && !is_here(disk, checkpoint, database);
                       });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

VerifyReport verify(const Disk& disk, RowStore& store, const std::string& path,
                    const DatabaseFolders& folders) {
  VerifyReport report{.path = path};
  collect(report, [&] {
    Manifest manifest = read_manifest(disk, path);
    folders.apply(manifest);
    for (const DatabaseInfo& database : manifest.databases)
      if (is_local(database.name) && !is_here(disk, path, database))
        report.elsewhere.push_back(not_here_text(database));
      else
        collect(report, [&] { verify_database(disk, store, path, database, report); });
  });
  return report;
}

std::string newest_sound_before(Disk& disk, RowStore& store, const std::string& path,
                                const DatabaseFolders& folders) {
  const auto id = CheckpointFolder::parse_name(path.substr(path.rfind('/') + 1));
  if (!id.has_value()) return "";
  std::vector<CheckpointEntry> all = CheckpointFolder(disk, folder_of(path)).list();
  std::erase_if(all, [&](const CheckpointEntry& entry) { return entry.id >= *id; });
  for (; !all.empty(); all.pop_back())
    if (verify(disk, store, all.back().path, folders).clean()) return all.back().path;
  return "";
}

std::exception_ptr with_sound_checkpoint(const std::exception_ptr& error, RowStore& store,
                                         const std::string& path) {
  const ErrorParts parts = error_parts(error);
  Disk& disk = store.disk();
  std::string sound;
  try {
    const bool damaged = parts.code == Code::kDataLoss ||
                         (parts.code == Code::kNotFound && disk.exists(path + "/" + kManifestFile));
    if (!damaged || rows_are_elsewhere(disk, path)) return error;
    log_info("the checkpoint ", path, " is damaged: reading older ones to find a sound one");
    sound = newest_sound_before(disk, store, path);
  } catch (const Error& another) {
    log_warning("looking for a sound checkpoint: ", another.what());
    return error;
  }
  try {
    throw_error(
        parts.code,
        str(parts.message, sound.empty() ? "; no older checkpoint beside it is sound"
                                         : str("; the newest older one that is sound: ", sound)),
        parts.task);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace cairn::storage
