// A list of a sorted file's records, kept in the file's properties: their keys, and where their
// blocks are. RocksDB's own index holds some key between each two blocks. Whether a row lies in the
// block before that key or in the one behind it, only the latter's content tells, and a cursor that
// was sent to the last record before a row steps back once more: such a lookup reads three blocks,
// one after another, and cannot ask for any of them ahead.
//   Thread  one.
#pragma once
#include <rocksdb/table_properties.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cairn::storage {

struct ListedRecord {
  std::string key;
  std::uint64_t begin = 0, end = 0;  // of RocksDB's block that has it, as bytes of the file
};
// Ascending by key.
using RecordList = std::vector<ListedRecord>;

// Makes the list while a file is written. 10 bytes a record.
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_record_list_collectors();

// None: an earlier release wrote the file.
//   Errors  DataLoss, naming `file`: the list is not one of all its records.
std::optional<RecordList> record_list_of(const rocksdb::TableProperties& properties,
                                         const std::string& file);

}  // namespace cairn::storage
