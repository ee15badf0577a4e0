#include "coordinator/checkpoint/manifest_io.h"

#include <algorithm>

#include "coordinator/checkpoint/chosen_encoding.h"
#include "coordinator/checkpoint/cut.h"
#include "core/base/log.h"
#include "storage/checkpoint_folder.h"
#include "storage/database_place.h"
#include "storage/manifest.h"

namespace cairn {
namespace {

storage::VariableInfo to_manifest(const VariableLayout& variable) {
  storage::VariableInfo made{variable.spec->name,
                             variable.spec->dtype,
                             variable.spec->shape,
                             variable.spec->trainable,
                             variable.rule,
                             {},
                             {},
                             variable.spec->hashed};
  made.evicts = variable.spec->policy.evicts();
  for (const SlotSpec& slot : rule_slots(variable.rule)) made.slots.emplace_back(slot.name);
  for (const Part& part : variable.parts) made.parts.push_back(part.rows);
  return made;
}

// A database in the local folder of its ps, of the shard of this number.
void name_locally(const LocalRows& rows, const Layout& layout, ShardId shard,
                  storage::DatabaseInfo& database) {
  database.name = rows.path + "/" + database.name;
  for (storage::FileInfo& file : database.files) file.name = rows.path + "/" + file.name;
  database.task = rows.task;
  for (const VariableLayout& variable : layout.variables)
    for (const Part& part : variable.parts)
      if (part.shard == shard) database.parts.push_back({variable.spec->name, part.rows});
}

}  // namespace

// Elements that were taken and are not open any more are committed: the gaps between open ones.
storage::DatasetPosition to_manifest(const PipelinePosition& position) {
  storage::DatasetPosition made;
  made.pipeline = position.name;
  made.ordinal = position.next;
  auto open = position.open;
  std::sort(open.begin(), open.end(),
            [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
  std::uint64_t lowest = open.empty() ? position.next : open.front().ordinal;
  auto base = std::prev(position.states.upper_bound(lowest));
  made.state_ordinal = base->first;
  made.state.assign(reinterpret_cast<const char*>(base->second.data()), base->second.size());
  std::uint64_t at = made.state_ordinal;
  for (const auto& o : open) {
    if (o.ordinal > at) made.committed.emplace_back(at, o.ordinal);
    at = o.ordinal + o.count;
  }
  if (position.next > at) made.committed.emplace_back(at, position.next);
  return made;
}

// The inverse: what lies between the committed ranges, from the state on, was taken and never
// committed, so that the resumed run takes it first.
PipelinePosition from_manifest(const storage::DatasetPosition& saved) {
  PipelinePosition position;
  position.name = saved.pipeline;
  position.next = saved.ordinal;
  auto bytes = reinterpret_cast<const std::byte*>(saved.state.data());
  position.states[saved.state_ordinal] = {bytes, bytes + saved.state.size()};
  std::uint64_t at = saved.state_ordinal;
  auto open_until = [&](std::uint64_t end) {
    if (end > at) position.open.push_back({at, static_cast<std::uint32_t>(end - at)});
  };
  for (const auto& [begin, end] : saved.committed) {
    open_until(begin);
    at = std::max(at, end);
  }
  open_until(saved.ordinal);
  return position;
}

std::uint64_t next_checkpoint_id(Disk& disk, const std::string& folder) {
  disk.make_folder(folder);
  return storage::CheckpointFolder(disk, folder).next_id();
}

std::string checkpoint_path(const std::string& folder, std::uint64_t id) {
  return folder + "/" + storage::CheckpointFolder::name(id);
}

void write_manifest(Disk& disk, const std::string& path, const CheckpointView& checkpoint,
                    const Cut& cut, const CheckpointPolicy& policy, const std::string& metadata,
                    std::int64_t wall_microseconds, const std::string& base) {
  storage::Manifest manifest;
  manifest.base = base;
  manifest.databases = checkpoint.databases;
  manifest.checkpoint = cut.id;
  manifest.global_step = checkpoint.global_step;
  manifest.saved_at_us = wall_microseconds;
  manifest.lost_updates = checkpoint.lost_updates;
  manifest.session = checkpoint.session;
  manifest.ancestors = checkpoint.ancestors;
  manifest.seed = cut.layout->seed;
  manifest.layout_version = cut.layout->version;
  manifest.low_watermark = checkpoint.applied.low_watermark;
  manifest.applied = checkpoint.applied.ranges;
  manifest.metadata = metadata;
  for (const VariableLayout& variable : cut.layout->variables)
    note_encoding(cut.encoding, manifest.variables.emplace_back(to_manifest(variable)));
  manifest.compression = cut.encoding.compression;
  for (const PipelinePosition& position : checkpoint.positions)
    manifest.datasets.push_back(to_manifest(position));
  // The manifest makes the checkpoint exist, atomically and after all its files.
  storage::commit_new(disk, path, manifest,
                      policy.single_writer ? Disk::SingleWriter::kYes : Disk::SingleWriter::kNo);
}

std::string rows_path(const Disk& disk, const std::string& path, std::uint64_t session,
                      std::uint64_t attempt) {
  if (disk.has_links(path)) return path;
  return folder_of(path) + "/" + storage::rows_folder_name(session, attempt);
}

void name_from(const std::string& path, const std::string& rows, storage::DatabaseInfo& database) {
  if (rows == path) return;
  const std::string before = "../" + rows.substr(rows.rfind('/') + 1) + "/";
  database.name = before + database.name;
  for (storage::FileInfo& file : database.files) file.name = before + file.name;
}

// A bucket is the same for all that reach it. A network file system may take a moment to show what
// another machine has made; to list the folder asks its server again.
void verify_shared(const Disk& disk, const std::string& rows,
                   const std::vector<ShardSaved>& saved) {
  if (!disk.has_links(rows)) return;
  const auto is_there = [&](const std::string& path, const SavedFile& file) {
    return disk.exists(path) && disk.size(path) == file.bytes;
  };
  for (const ShardSaved& shard : saved)
    for (const SavedFile& file : shard.files) {
      const std::string path = rows + "/" + file.name;
      if (is_there(path, file)) continue;
      disk.list(rows);
      disk.list(folder_of(path));
      if (is_there(path, file)) continue;
      throw FailedPreconditionError(
          str("a ps wrote ", path, " (", file.bytes, " bytes), and the coordinator's machine, ",
              "which writes the manifest, does not see it. The checkpoint folder must be one and ",
              "the same for the coordinator and every ps: mount a shared file system there on all ",
              "machines, save into a bucket (s3://BUCKET/PREFIX), or give each ps a folder of its "
              "own machine (checkpoint.local_folder, CheckpointPolicy::local_folder)"));
    }
}

// Where rows lie beside the checkpoint, its manifest may be there all the same: another run's, or
// this one's, if only the store's answer was lost. Rows that a manifest might name stay.
void sweep(Disk& disk, const std::string& path, const std::string& rows, std::uint64_t session) {
  if (rows == path) return disk.remove_tree(path);
  try {
    const bool made = disk.exists(path + "/" + storage::kManifestFile) &&
                      storage::read_manifest(disk, path).session == session;
    if (!made) disk.remove_tree(rows);
  } catch (const Error& error) {
    log_warning("what a save has left stays in ", rows, ": ", error.what());
  }
}

std::vector<storage::DatabaseInfo> link_databases(Disk& disk, const std::string& base,
                                                  const std::string& path) {
  std::vector<storage::DatabaseInfo> databases = storage::read_manifest(disk, base).databases;
  if (!disk.has_links(path)) return databases;
  const std::string base_name = base.substr(base.rfind('/') + 1);
  for (storage::DatabaseInfo& database : databases) {
    if (storage::is_local(database.name)) continue;
    // One that the base has linked itself keeps its name, which tells where its rows are from.
    const bool own = database.name.find('.') == std::string::npos;
    const std::string name = own ? base_name + "." + database.name : database.name;
    std::vector<std::string> files;
    for (storage::FileInfo& file : database.files) {
      files.push_back(file.name.substr(file.name.find('/') + 1));
      file.name = name + "/" + files.back();
    }
    disk.link_files(base + "/" + database.name, path + "/" + name, files);
    database.name = name;
  }
  return databases;
}

std::vector<storage::DatabaseInfo> databases_of(const ShardSaved& shard) {
  std::vector<storage::FileInfo> files;
  for (const SavedFile& file : shard.files) files.push_back({file.name, file.bytes, file.checksum});
  auto databases = storage::group_by_database(files);
  // A ps that knows of one database says of it what it says of all.
  if (shard.database_rows.empty() && databases.size() == 1) {
    databases[0].rows = shard.rows;
    return databases;
  }
  if (databases.size() != shard.database_rows.size())
    throw InternalError(str("a shard saved ", shard.database_rows.size(),
                            " databases, and files of ", databases.size()));
  for (std::size_t i = 0; i < databases.size(); ++i) databases[i].rows = shard.database_rows[i];
  return databases;
}

std::vector<storage::DatabaseInfo> own_databases(const std::string& path, const Cut& cut) {
  std::vector<storage::DatabaseInfo> own;
  for (std::size_t i = 0; i < cut.saved.size(); ++i) {
    const auto& [ps, number] = cut.savers[i];
    for (storage::DatabaseInfo& database : databases_of(cut.saved[i])) {
      if (cut.local_rows.empty())
        name_from(path, cut.rows, database);
      else
        name_locally(cut.local_rows[ps], *cut.layout, number, database);
      own.push_back(std::move(database));
    }
  }
  return own;
}

SavedVariables saved_variables(const storage::Manifest& manifest) {
  SavedVariables saved;
  for (const auto& variable : manifest.variables)
    saved[variable.name] = {{variable.dtype, variable.shape},
                            variable.rule,
                            variable.hashed,
                            variable.slot_form == storage::SlotForm::kDropped};
  return saved;
}

CheckpointView read_manifest(Disk& disk, const std::string& path, const RestoreOptions& options) {
  storage::Manifest manifest = storage::read_manifest(disk, path);
  CheckpointView restored;
  restored.folder = path;
  restored.checkpoint = manifest.checkpoint;
  restored.session = manifest.session;
  restored.ancestors = manifest.ancestors;
  restored.seed = manifest.seed;
  restored.on_demand = options.on_demand;
  restored.options = options;
  restored.global_step = options.global_step ? manifest.global_step : 0;
  restored.lost_updates = manifest.lost_updates;
  restored.applied = {manifest.low_watermark, manifest.applied};
  restored.databases = std::move(manifest.databases);
  restored.plan = std::make_shared<const RestorePlan>(saved_variables(manifest), path, options);
  for (const auto& position : manifest.datasets)
    restored.positions.push_back(from_manifest(position));
  return restored;
}

void remove_older(Disk& disk, const CheckpointPolicy& policy, const CheckpointView& checkpoint) {
  // At least the checkpoint that was just saved is kept. The session and its ancestors say which of
  // the others belong to this run; those of other runs are not ours to remove.
  storage::CheckpointFolder(disk, policy.folder)
      .prune(std::max<std::size_t>(policy.keep_last, 1), {checkpoint.session, checkpoint.ancestors},
             policy.keep_every);
}

}  // namespace cairn
