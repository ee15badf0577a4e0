// Folders and databases for the tests of storage.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/checkpoint_folder.h"
#include "storage/row_block.h"

namespace cairn::storage {

// A folder of its own, gone with the object.
class TempFolder {
 public:
  TempFolder() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern =
        (base != nullptr ? std::string(base) : std::filesystem::temp_directory_path().string()) +
        "/cairn-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Rows `offsets` after `first`, of 4 elements and a slot, each with a value of its own.
inline StoredRows some_rows(std::int64_t first, std::vector<std::uint64_t> offsets) {
  StoredRows rows{.rule = RuleKind::kAdagrad,
                  .slots = 1,
                  .dim = 4,
                  .first_row = first,
                  .offsets = std::move(offsets)};
  rows.data.resize(rows.offsets.size() * rows.row_bytes());
  auto* values = reinterpret_cast<float*>(rows.data.data());
  for (std::size_t i = 0; i < rows.offsets.size() * 8; ++i)
    values[i] = static_cast<float>(first + static_cast<std::int64_t>(rows.offsets[i / 8])) +
                0.125f * static_cast<float>(i % 8);
  return rows;
}

inline TableRecord some_table(std::string name, RowRange range) {
  return {std::move(name),
          DType::kFloat32,
          Shape{1000, 4},
          {RuleKind::kAdagrad, {0.1f}},
          {"accumulator"},
          range,
          17};
}

// Two variables of 1000 rows: "a" in blocks of 100 rows, "b" with every third row only.
inline std::vector<std::pair<std::string, std::string>> some_records() {
  std::vector<std::pair<std::string, std::string>> records;
  const auto add = [&](const RecordKey& key, const auto& record) {
    const std::string bytes = encode(key);
    records.emplace_back(bytes, encode(bytes, record));
  };
  for (const char* name : {"a", "b"}) {
    add({name, RecordKind::kTable, 0}, some_table(name, {0, 1000}));
    for (std::int64_t first = 0; first < 1000; first += 100) {
      std::vector<std::uint64_t> offsets;
      for (std::uint64_t i = 0; i < 100; i += name[0] == 'a' ? 1 : 3) offsets.push_back(i);
      add({name, RecordKind::kRows, first}, some_rows(first, offsets));
    }
  }
  return records;
}
inline constexpr std::uint64_t kSomeRows = 1000 + 340;

inline std::vector<FileInfo> write_database(RowStore& store, const std::string& folder) {
  const auto writer = store.create(folder);
  for (const auto& [key, value] : some_records()) writer->put(key, value);
  return writer->finish();
}

// A committed checkpoint with one database.
inline Manifest write_checkpoint(Disk& disk, RowStore& store, const std::string& path,
                                 std::uint64_t id = 1) {
  disk.make_folder(path);
  Manifest manifest{.checkpoint = id, .global_step = 100};
  manifest.databases = group_by_database(write_database(store, path + "/ps-0-shard-0"));
  manifest.databases.at(0).rows = kSomeRows;
  commit(disk, path, manifest);
  return manifest;
}

}  // namespace cairn::storage
