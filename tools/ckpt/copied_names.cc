#include "tools/ckpt/copied_names.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "storage/database_place.h"

namespace cairn::tools::ckpt {
namespace {

using storage::DatabaseInfo;
using storage::Manifest;

// "../rows-SESSION-ATTEMPT/ps-0-shard-0", or such a one in a local folder of a ps, is
// "ps-0-shard-0" of the checkpoint that wrote it, and
// "rows-SESSION-ATTEMPT.ps-0-shard-0" of those that go back to it.
std::string name_in_folder(const Manifest& manifest, const DatabaseInfo& database) {
  const std::string rows = storage::rows_folder_of(database.name);
  if (rows.empty()) return database.name;
  const std::string bare = database.name.substr(database.name.rfind('/') + 1);
  return storage::is_own(manifest, database) ? bare : rows + "." + bare;
}

// The databases that one checkpoint wrote have the same text before the dot, or none.
std::string writer_of(const DatabaseInfo& database) {
  const std::size_t dot = database.name.find('.');
  return dot == std::string::npos ? "" : database.name.substr(0, dot);
}
std::string bare_name(const DatabaseInfo& database) {
  return database.name.substr(database.name.find('.') + 1);  // behind no dot: all of it
}

// The number in the name of the rows' folder that a copy of `writer`'s databases gets: at most 17
// digits. It is a hash of the names, sizes and checksums of their files. So two checkpoints that
// hold the same databases get the same number, even if they name the databases differently, and the
// second copy finds them in the folder that the first one made.
//   Source  FNV-1a, 64 bits (Fowler, Noll, Vo).
std::uint64_t number_of(const Manifest& manifest, const std::string& writer) {
  std::string text;
  for (const DatabaseInfo& database : manifest.databases)
    if (writer_of(database) == writer)
      for (const storage::FileInfo& file : database.files)
        text += str(bare_name(database), file.name.substr(file.name.rfind('/')), ' ', file.bytes,
                    ' ', file.checksum, '\n');
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash % 100'000'000'000'000'000;
}

std::string name_beside(const Manifest& manifest, const DatabaseInfo& database) {
  if (const std::string rows = storage::rows_folder_of(database.name); !rows.empty())
    return "../" + rows + database.name.substr(database.name.rfind('/'));
  return "../" +
         storage::rows_folder_name(manifest.session, number_of(manifest, writer_of(database))) +
         "/" + bare_name(database);
}

}  // namespace

Manifest named_for(const Manifest& manifest, bool links) {
  Manifest made = manifest;
  for (DatabaseInfo& database : made.databases) {
    storage::verify_database_name(database.name);
    const std::string name =
        links ? name_in_folder(manifest, database) : name_beside(manifest, database);
    for (storage::FileInfo& file : database.files) {
      if (!file.name.starts_with(database.name + "/"))
        throw DataLossError(str("'", file.name, "' is not a file of ", database.name));
      const std::string bare = file.name.substr(database.name.size() + 1);
      storage::verify_database_name(bare);
      file.name = name + "/" + bare;
    }
    database.name = name;
    database.task.clear();
    database.parts.clear();
  }
  return made;
}

}  // namespace cairn::tools::ckpt
