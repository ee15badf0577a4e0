// repair: a damaged checkpoint's sound records, in databases of their own under a new manifest that
// says so. Rows that are lost have their initial values after a restore, as rows that were never
// touched have, or, in a delta, what an older database of it holds.
#include <algorithm>
#include <cstdio>
#include <map>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/database_place.h"
#include "storage/manifest.h"
#include "storage/merged_rows.h"
#include "storage/object_store/object_disk.h"
#include "storage/row_block.h"
#include "storage/row_store.h"
#include "storage/salvage.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/copied_names.h"
#include "tools/ckpt/new_checkpoint.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

struct Repaired {
  storage::DatabaseInfo info;
  std::uint64_t rows_lost = 0;
  std::vector<storage::LostRows> lost;
  std::vector<std::string> tables_made;  // of variables whose table record was lost
};

// Puts sound records into a new database. Rows without their table's record would never be found,
// so one is made where it is lost.
class DatabaseRepair {
 public:
  DatabaseRepair(storage::DatabaseWriter& writer, const storage::Manifest& manifest)
      : writer_(writer), manifest_(manifest) {}

  void take(std::string_view key, std::string_view value) {
    const storage::RecordKey decoded = storage::decode_key(key);
    if (decoded.kind == storage::RecordKind::kTable) {
      table_of_ = decoded.variable;
    } else {
      if (table_of_ != decoded.variable) make_table(decoded.variable);
      rows_ += static_cast<std::uint64_t>(storage::verify_record(key, value, scratch_));
    }
    writer_.put(key, value);
  }
  std::uint64_t rows() const { return rows_; }
  const std::vector<std::string>& made() const { return made_; }

 private:
  void make_table(const std::string& name) {
    table_of_ = name;
    for (const auto& variable : manifest_.variables) {
      if (variable.name != name) continue;
      const std::string key = encode(storage::RecordKey{name, storage::RecordKind::kTable, 0});
      writer_.put(
          key, encode(key, storage::TableRecord{name,
                                                variable.dtype,
                                                variable.shape,
                                                variable.rule,
                                                variable.slots,
                                                {0, storage::row_count(variable)},
                                                std::max<std::int64_t>(manifest_.global_step, 0)}));
      made_.push_back(name);
    }
  }

  storage::DatabaseWriter& writer_;
  const storage::Manifest& manifest_;
  std::string table_of_;
  std::uint64_t rows_ = 0;
  storage::StoredRows scratch_;
  std::vector<std::string> made_;
};

// The new one has this name in the folder `to`.
Repaired repair_database(const std::string& from, const storage::DatabaseInfo& database,
                         const std::string& to, const std::string& name,
                         const storage::Manifest& manifest) {
  storage::verify_database_name(database.name);
  const auto store = storage::make_rocks_row_store();
  const auto writer = store->create(to + "/" + name);
  DatabaseRepair work(*writer, manifest);
  Repaired done;
  done.lost = storage::salvage_database(
      from, database, manifest.variables,
      [&](std::string_view key, std::string_view value) { work.take(key, value); });
  auto made = storage::group_by_database(writer->finish());
  done.info = std::move(made.at(0));
  done.info.rows = work.rows();
  done.rows_lost = database.rows > work.rows() ? database.rows - work.rows() : 0;
  done.tables_made = work.made();
  return done;
}

Json to_json(const std::string& database, const Repaired& one) {
  Json lost = Json::array();
  for (const auto& rows : one.lost)
    lost.push_back(
        {{"variable", rows.variable}, {"begin", rows.begin}, {"end", rows.end}, {"why", rows.why}});
  return {{"database", database},
          {"rows_saved", one.info.rows},
          {"rows_lost", one.rows_lost},
          {"lost_within", lost},
          {"update_counts_lost", one.tables_made}};
}

void print(const std::string& database, const Repaired& one, bool delta) {
  std::printf("%s: %llu rows saved, %llu lost\n", database.c_str(),
              static_cast<unsigned long long>(one.info.rows),
              static_cast<unsigned long long>(one.rows_lost));
  for (const auto& rows : one.lost)
    std::printf("  lost within rows %lld to %lld of %s: %s\n", static_cast<long long>(rows.begin),
                static_cast<long long>(rows.end), rows.variable.c_str(), rows.why.c_str());
  for (const std::string& name : one.tables_made)
    std::printf("  lost: how many updates %s has had; the checkpoint's step is taken\n",
                name.c_str());
  if (one.rows_lost > 0 && delta)
    std::printf("  rows that an older database of this delta holds have that database's values\n");
}

// The mark stands in the program's own metadata, beside what it wrote.
std::string marked(const std::string& metadata, const std::string& source, const Json& found) {
  Json json = parse_json(metadata, "the checkpoint's metadata");
  if (!json.is_object()) json = {{"metadata", json}};
  json["repaired"] = {{"from", source}, {"databases", found}};
  return json_text(json);
}

}  // namespace

int repair(const RepairRequest& request) {
  const std::string source = checkpoint_at(request.path);
  if (storage::is_object_path(source))
    throw InvalidArgumentError(str(source,
                                   " is in a bucket, and repair works on files: fetch its "
                                   "folder and the folders rows-* that it names with any "
                                   "client of S3, and repair it where they lie"));
  const storage::DatabaseFolders folders(request.folders);
  storage::Manifest manifest = storage::read_manifest(system_disk(), source);
  folders.apply(manifest);
  storage::verify_here(system_disk(), source, manifest);
  const auto store = storage::make_rocks_row_store();
  if (storage::verify(system_disk(), *store, source, folders).clean()) {
    if (request.form == Form::kJson)
      print_json({{"source", source}, {"clean", true}});
    else
      std::printf("%s is sound: nothing was written\n", source.c_str());
    return kFine;
  }
  NewCheckpoint made(source, request.out);
  Json found = Json::array();
  std::vector<Repaired> all;
  const storage::Manifest names = named_for(manifest, true);
  for (std::size_t i = 0; i < manifest.databases.size(); ++i) {
    const storage::DatabaseInfo& database = manifest.databases[i];
    all.push_back(reading(source, [&] {
      return repair_database(source, database, made.path(), names.databases[i].name, manifest);
    }));
    found.push_back(to_json(database.name, all.back()));
  }
  manifest.metadata = marked(manifest.metadata, source, found);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (request.form == Form::kText)
      print(manifest.databases[i].name, all[i], !manifest.base.empty());
    manifest.databases[i] = all[i].info;
  }
  made.commit(manifest, request.single);
  if (request.form == Form::kJson)
    print_json({{"source", source}, {"clean", false}, {"path", made.path()}, {"databases", found}});
  else
    std::printf("what is sound is in %s\n", made.path().c_str());
  return kFound;
}

}  // namespace cairn::tools::ckpt
