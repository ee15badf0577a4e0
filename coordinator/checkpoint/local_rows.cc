#include "coordinator/checkpoint/local_rows.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "storage/checkpoint_folder.h"
#include "storage/database_place.h"
#include "storage/manifest.h"

namespace cairn {
namespace {

std::string list_path(const std::string& folder) { return folder + "/" + kLocalRowsFile; }

std::vector<LocalRows> read_list(const Disk& disk, const std::string& folder) {
  const std::string path = list_path(folder);
  std::vector<LocalRows> all;
  if (!disk.exists(path)) return all;
  try {
    for (const Json& one : parse_json(disk.read(path), path))
      all.push_back({one.at("task"), one.at("path")});
  } catch (const Json::exception& error) {
    throw DataLossError(str(path, " is malformed: ", error.what()));
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(str(path, " is malformed: ", error.what()));
  }
  return all;
}

void write_list(Disk& disk, const std::string& folder, const std::vector<LocalRows>& all) {
  if (all.empty()) return disk.remove(list_path(folder));
  Json list = Json::array();
  for (const LocalRows& one : all) list.push_back({{"task", one.task}, {"path", one.path}});
  disk.write_atomically(list_path(folder), json_text(list, 1) + "\n");
}

}  // namespace

LocalRows local_rows_of_ps(const std::string& local_folder, std::uint32_t index,
                           const std::string& task, std::uint64_t session, std::uint64_t attempt) {
  return {task, str(local_folder, "/ps-", index, "/", storage::rows_folder_name(session, attempt))};
}

bool has_local_rows(const Disk& disk, const std::string& folder) {
  return disk.has_links(folder) && disk.exists(list_path(folder));
}

void note_local_rows(Disk& disk, const std::string& folder, const std::vector<LocalRows>& rows) {
  std::vector<LocalRows> all = read_list(disk, folder);
  all.insert(all.end(), rows.begin(), rows.end());
  write_list(disk, folder, all);
}

void forget_local_rows(Disk& disk, const std::string& folder, const std::vector<LocalRows>& rows) {
  std::vector<LocalRows> all = read_list(disk, folder);
  std::erase_if(all, [&](const LocalRows& one) {
    return std::find(rows.begin(), rows.end(), one) != rows.end();
  });
  write_list(disk, folder, all);
}

std::vector<LocalRows> unnamed_local_rows(Disk& disk, const std::string& folder) {
  std::vector<LocalRows> all = read_list(disk, folder);
  if (all.empty()) return all;
  std::set<std::string> named;
  for (const auto& entry : storage::CheckpointFolder(disk, folder).list()) {
    try {
      for (const auto& database : storage::read_manifest(disk, entry.path).databases)
        named.insert(storage::local_rows_of(database.name));
    } catch (const Error& error) {
      log_warning("nothing is removed from the local folders of the ps: ", error.what());
      return {};
    }
  }
  std::erase_if(all, [&](const LocalRows& one) { return named.contains(one.path); });
  return all;
}

}  // namespace cairn
