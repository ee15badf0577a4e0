// A sorted file is a sequence of RocksDB's blocks, and its list of records says where each begins.
// An uncompressed block has entries, each of three varints (bytes of the key that it shares with
// the entry before, bytes of the rest of the key, bytes of the value), the rest of the key with 8
// bytes of RocksDB's own behind it, and the value; then the places of some entries as 32-bit
// numbers, how many these are, one byte for the compression and four for RocksDB's checksum.
//   Source  https://github.com/facebook/rocksdb/wiki/Rocksdb-BlockBasedTable-Format
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/object_store/object_disk.h"
#include "storage/row_block.h"
#include "storage/single_rows/block_places.h"
#include "storage/stores/rocks_record_list.h"
#include "storage/stores/rocks_status.h"

namespace cairn::storage {
namespace {

constexpr std::size_t kKeySuffix = 8, kBlockEnd = 5;

std::unique_ptr<rocksdb::DB> open_database(const std::string& folder) {
  rocksdb::Options options;
  options.info_log = std::make_shared<NoLog>();
  options.max_open_files = 32;
  options.max_file_opening_threads = 1;
  options.skip_stats_update_on_db_open = true;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(options, folder, &opened);
  check_rocksdb(status, "opening the database ", folder);
  return std::unique_ptr<rocksdb::DB>(opened);
}

RecordList records_of(const rocksdb::TableProperties& properties, const std::string& path) {
  auto records = record_list_of(properties, path);
  if (!records.has_value())
    throw UnimplementedError(str(
        "the file ", path, " has no list of its records, since an earlier release wrote it, so ",
        "that its rows cannot be read one by one: save the model again with this release, or ",
        "give it the memory to be read as a whole"));
  return *std::move(records);
}

void add_blocks(const RecordList& records, const std::string& path, DatabaseBlocks& all) {
  const auto file = static_cast<std::uint32_t>(all.files.size());
  all.files.push_back(path);
  for (const ListedRecord& record : records) {
    RecordKey key = decode_key(record.key);
    if (key.kind != RecordKind::kRows) continue;
    if (record.end < record.begin || record.end - record.begin > UINT32_MAX)
      throw DataLossError(str("the list of records in ", path, " cannot be read"));
    all.blocks[key.variable].push_back(
        {key.row, record.begin, static_cast<std::uint32_t>(record.end - record.begin), file});
  }
}

// Takes the next entry's numbers off `left`; false: they are none.
bool take_varint(std::string_view& left, std::uint32_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 35 && !left.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(left.front());
    left.remove_prefix(1);
    value |= static_cast<std::uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

DatabaseBlocks blocks_of_database(const std::string& folder) {
  if (is_object_path(folder))
    throw UnimplementedError(str("the database ", folder, " lies in a bucket, so that its rows ",
                                 "cannot be read one by one: bring the checkpoint here by ",
                                 "`cairn ckpt copy`"));
  const auto database = open_database(folder);
  std::vector<rocksdb::LiveFileMetaData> live;
  database->GetLiveFilesMetaData(&live);
  std::ranges::sort(live, {}, &rocksdb::LiveFileMetaData::smallestkey);
  DatabaseBlocks all;
  for (const rocksdb::LiveFileMetaData& file : live) {
    const rocksdb::Range range(file.smallestkey, file.smallestkey);
    rocksdb::TablePropertiesCollection found;
    check_rocksdb(
        database->GetPropertiesOfTablesInRange(database->DefaultColumnFamily(), &range, 1, &found),
        "reading the database ", folder, ", in ", file.relative_filename);
    const std::string path = folder + "/" + file.relative_filename;
    for (const auto& [name, properties] : found)
      if (name.ends_with("/" + file.relative_filename))
        add_blocks(records_of(*properties, path), path, all);
  }
  return all;
}

RecordBytes find_record(std::string_view place, std::string_view key) {
  std::string_view left = place.substr(0, place.size() - std::min(place.size(), kBlockEnd));
  std::string found;
  while (!left.empty()) {
    std::uint32_t shared = 0, rest = 0, bytes = 0;
    if (!take_varint(left, shared) || !take_varint(left, rest) || !take_varint(left, bytes)) break;
    if (shared > found.size() || rest > left.size() || bytes > left.size() - rest) break;
    found.resize(shared);
    found.append(left.substr(0, rest));
    left.remove_prefix(rest);
    if (found.size() == key.size() + kKeySuffix && found.starts_with(key))
      return {static_cast<std::size_t>(left.data() - place.data()), bytes};
    left.remove_prefix(bytes);
  }
  throw DataLossError(
      str("the record at ", describe_key(key),
          " is not where the file lists it: the file was changed. Restore it from a ",
          "copy; `cairn ckpt verify` names the sound checkpoints"));
}

}  // namespace cairn::storage
