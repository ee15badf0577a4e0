#include "storage/database_place.h"

#include <cstdio>
#include <filesystem>
#include <string_view>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

constexpr std::string_view kRowsBeside = "../", kRowsBefore = "rows-";
constexpr std::size_t kRowsDash = 21;  // behind "rows-" and 16 digits

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Neither "." nor ".." nor a doubled slash, so that one place has one name.
bool is_plain_absolute(const std::string& path) {
  return path.starts_with('/') && path.find('\0') == std::string::npos &&
         std::filesystem::path(path).lexically_normal().string() == path;
}

// "ps:1" of "/job:ps/task:1", as flags name tasks; other names stay as they are.
std::string short_name(const std::string& task) {
  constexpr std::string_view kJob = "/job:", kTask = "/task:";
  const std::size_t at = task.find(kTask);
  if (!task.starts_with(kJob) || at == std::string::npos) return task;
  return task.substr(kJob.size(), at - kJob.size()) + ":" + task.substr(at + kTask.size());
}

void rename_within(std::string& name, const std::string& from, const std::string& to) {
  if (name.starts_with(from)) name = to + name.substr(from.size());
}

}  // namespace

std::string rows_folder_name(std::uint64_t session, std::uint64_t attempt) {
  char name[48];
  std::snprintf(name, sizeof name, "rows-%016llx-%08llu", static_cast<unsigned long long>(session),
                static_cast<unsigned long long>(attempt));
  return name;
}

// The digits are checked, as such a name may come from a manifest or over the network.
bool is_rows_folder_name(const std::string& name) {
  if (!name.starts_with(kRowsBefore) || name.size() < kRowsDash + 9 ||
      name.size() > kRowsDash + 19 || name[kRowsDash] != '-')
    return false;
  return name.find_first_not_of("0123456789abcdef", kRowsBefore.size()) == kRowsDash &&
         name.find_first_not_of("0123456789", kRowsDash + 1) == std::string::npos;
}

std::string rows_folder_of(const std::string& database) {
  const bool beside = database.starts_with(kRowsBeside);
  const std::size_t end = database.rfind('/');
  if ((!beside && !is_plain_absolute(database)) || end < kRowsBeside.size() ||
      end + 1 == database.size())
    return "";
  const std::size_t begin = database.rfind('/', end - 1) + 1;
  if (beside && begin != kRowsBeside.size()) return "";
  const std::string name = database.substr(begin, end - begin);
  return is_rows_folder_name(name) ? name : "";
}

bool is_local(const std::string& name) { return name.starts_with('/'); }

std::string local_rows_of(const std::string& database) {
  if (!is_local(database) || rows_folder_of(database).empty()) return "";
  return database.substr(0, database.rfind('/'));
}

std::string place_of(const std::string& checkpoint, const std::string& name) {
  return is_local(name) ? name : checkpoint + "/" + name;
}

void verify_database_name(const std::string& given) {
  const std::string name = rows_folder_of(given).empty() ? given : last_part(given);
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw InvalidArgumentError(str("'", given, "' is not the name of a database of a checkpoint"));
}

bool is_own(const Manifest& manifest, const DatabaseInfo& database) {
  const std::string folder = rows_folder_of(database.name);
  if (folder.empty()) return manifest.base.empty() || database.name.find('.') == std::string::npos;
  return folder == rows_folder_of(manifest.databases.back().name);
}

bool is_here(const Disk& disk, const std::string& checkpoint, const DatabaseInfo& database) {
  return !disk.list(place_of(checkpoint, database.name)).empty();
}

std::string not_here_text(const DatabaseInfo& database) {
  const std::string folder = folder_of(local_rows_of(database.name));
  return str(database.name, ", which ", database.task,
             " wrote into its local folder, is not on this machine: run this on a machine that "
             "sees the folders of all ps, or name the place where ",
             folder, " is mounted or was copied to: --database-folder ", short_name(database.task),
             "=FOLDER. `cairn ckpt copy` so gathers the whole checkpoint in one folder");
}

void verify_here(const Disk& disk, const std::string& checkpoint, const Manifest& manifest) {
  std::size_t missing = 0;
  std::string first;
  for (const DatabaseInfo& database : manifest.databases) {
    if (!is_local(database.name) || is_here(disk, checkpoint, database)) continue;
    if (missing++ == 0) first = not_here_text(database);
  }
  if (missing == 0) return;
  const std::string others =
      missing == 1 ? "" : str(" (and ", missing - 1, " more of its databases)");
  throw NotFoundError(
      str("the checkpoint ", checkpoint, " is not whole here", others, ": ", first));
}

DatabaseFolders::DatabaseFolders(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string task = text.substr(0, equals);
    const std::size_t digits = task.starts_with("ps:") ? 3 : std::string::npos;
    if (equals == std::string::npos || equals + 1 == text.size() || digits >= task.size() ||
        task.find_first_not_of("0123456789", digits) != std::string::npos)
      throw InvalidArgumentError(
          str("--database-folder ", text, ": expected TASK=FOLDER, as ps:1=/mnt/ps-1"));
    std::string folder =
        std::filesystem::absolute(text.substr(equals + 1)).lexically_normal().string();
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    if (!folders_.emplace("/job:ps/task:" + task.substr(digits), folder).second)
      throw InvalidArgumentError(
          str("--database-folder names ", task, " twice: say it once for each ps"));
  }
}

std::string DatabaseFolders::local_rows(const std::string& task, const std::string& path) const {
  const auto found = folders_.find(task);
  return found == folders_.end() ? path : found->second + "/" + last_part(path);
}

void DatabaseFolders::apply(Manifest& manifest) const {
  for (DatabaseInfo& database : manifest.databases) {
    const std::string from = local_rows_of(database.name);
    if (from.empty()) continue;
    const std::string to = local_rows(database.task, from);
    rename_within(database.name, from, to);
    for (FileInfo& file : database.files) rename_within(file.name, from, to);
  }
}

}  // namespace cairn::storage
