// RocksDB's writing side; rocks_reader.cc is the other one. A checkpoint's database is written once
// in ascending order and read once from end to end, so none of what makes RocksDB fast for other
// uses is wanted: no log, no memtable, no compaction, no cache. Sorted files are made beside the
// database and ingested, which costs one write of each byte.
//
// Order: sorted files (synced when they are finished), then the database that names them, then the
// list of files with their checksums, which the coordinator puts into the manifest. A crash
// anywhere leaves files that no manifest names. Checksums of sorted files are taken as the bytes
// are written, and not from the disk afterwards.
#include <rocksdb/db.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/failpoint.h"
#include "storage/any_disk.h"
#include "storage/object_store/object_disk.h"
#include "storage/object_store/object_store.h"
#include "storage/row_store.h"
#include "storage/stores/rocks_reader.h"
#include "storage/stores/rocks_record_list.h"
#include "storage/stores/rocks_status.h"

namespace cairn::storage {
namespace {

// The size at which a sorted file is ended.
constexpr std::uint64_t kSortedFileBytes = std::uint64_t{64} << 20;
constexpr const char* kMaking = "making";  // folder of sorted files not yet taken in

rocksdb::Options database_options() {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;  // rows of floats hardly shrink
  options.info_log = std::make_shared<NoLog>();
  options.disable_auto_compactions = true;  // files do not overlap: there is nothing to merge
  options.max_open_files = -1;
  options.max_file_opening_threads = 1;
  options.use_fsync = true;
  options.paranoid_checks = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 64 << 10;
  table.format_version = 5;
  table.no_block_cache = true;  // a checkpoint is read once, from end to end
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// RocksDB's own file checksum is the same number, but Debian builds it without the processor's
// instruction, which is four times as slow.
class FileChecksum final : public rocksdb::FileChecksumGenerator {
 public:
  void Update(const char* data, std::size_t size) override {
    crc_ = crc32c(std::string_view(data, size), crc_);
  }
  void Finalize() override { text_ = std::to_string(crc_); }
  std::string GetChecksum() const override { return text_; }
  const char* Name() const override { return "cairn.crc32c"; }

 private:
  std::uint32_t crc_ = 0;
  std::string text_;
};
class FileChecksums final : public rocksdb::FileChecksumGenFactory {
 public:
  std::unique_ptr<rocksdb::FileChecksumGenerator> CreateFileChecksumGenerator(
      const rocksdb::FileChecksumGenContext&) override {
    return std::make_unique<FileChecksum>();
  }
  const char* Name() const override { return "cairn.crc32c"; }
};

class RocksWriter final : public DatabaseWriter {
 public:
  explicit RocksWriter(std::string folder)
      : folder_(std::move(folder)), options_(database_options()) {
    std::error_code error;
    failpoint("rows.begin");
    std::filesystem::remove_all(folder_, error);
    if (!error) std::filesystem::create_directories(folder_ + "/" + kMaking, error);
    if (error)
      throw PermissionDeniedError(str("cannot make the folder ", folder_, ": ", error.message()));
    failpoint("rows.folder_made");
  }

  void put(std::string_view key, std::string_view value) override {
    if (file_ != nullptr && file_->FileSize() >= kSortedFileBytes) end_file();
    if (file_ == nullptr) begin_file();
    check_rocksdb(file_->Put(rocksdb::Slice(key.data(), key.size()),
                             rocksdb::Slice(value.data(), value.size())),
                  "writing ", files_.back());
  }

  // The LOCK file that RocksDB leaves is empty and of no use to a reader, so the manifest does not
  // list it.
  std::vector<FileInfo> finish() override {
    if (file_ != nullptr) end_file();
    take_in();
    failpoint("rows.taken_in");
    std::filesystem::remove(folder_ + "/" + kMaking);
    std::vector<FileInfo> infos;
    const std::string name = std::filesystem::path(folder_).filename();
    for (const std::string& file : system_disk().list(folder_)) {
      if (file == "LOCK") continue;
      if (const auto sorted = sorted_.find(file); sorted != sorted_.end())
        infos.push_back({name + "/" + file, sorted->second.bytes, sorted->second.checksum});
      else
        infos.push_back(file_info(system_disk(), folder_ + "/" + file, name + "/" + file));
    }
    failpoint("rows.end");
    return infos;
  }

 private:
  void begin_file() {
    files_.push_back(str(folder_, "/", kMaking, "/", files_.size(), ".sst"));
    rocksdb::Options options = options_;
    options.file_checksum_gen_factory = std::make_shared<FileChecksums>();
    options.table_properties_collector_factories = {make_record_list_collectors()};
    file_ = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), options);
    check_rocksdb(file_->Open(files_.back()), "making ", files_.back());
  }
  void end_file() {
    rocksdb::ExternalSstFileInfo info;
    check_rocksdb(file_->Finish(&info), "writing ", files_.back());  // syncs as well
    written_.push_back({"", info.file_size, std::stoul(info.file_checksum)});
    file_.reset();
    failpoint("rows.file_written");
  }
  // Moves the files into the database (by hard link and unlink; a copy where the file system has no
  // links) and closes it, so that its own descriptor of files is on the disk.
  void take_in() {
    rocksdb::Options options = options_;
    options.create_if_missing = true;
    rocksdb::DB* opened = nullptr;
    check_rocksdb(rocksdb::DB::Open(options, folder_, &opened), "making the database ", folder_);
    const std::unique_ptr<rocksdb::DB> database(opened);
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    ingest.failed_move_fall_back_to_copy = true;
    if (!files_.empty())
      check_rocksdb(database->IngestExternalFile(files_, ingest), "taking the rows into ", folder_);
    name_sorted_files(*database);
    check_rocksdb(database->Close(), "closing ", folder_);
  }
  // A file that was taken in has a name of the database's. Files ascend by key, as they were
  // written.
  void name_sorted_files(rocksdb::DB& database) {
    std::vector<rocksdb::LiveFileMetaData> live;
    database.GetLiveFilesMetaData(&live);
    std::ranges::sort(live, {}, &rocksdb::LiveFileMetaData::smallestkey);
    CAIRN_CHECK(live.size() == written_.size(), live.size(), " sorted files in ", folder_, ", of ",
                written_.size());
    for (std::size_t i = 0; i < live.size(); ++i) sorted_[live[i].relative_filename] = written_[i];
  }

  std::string folder_;
  rocksdb::Options options_;
  std::vector<std::string> files_;          // as they were written
  std::vector<FileInfo> written_;           // the same, nameless
  std::map<std::string, FileInfo> sorted_;  // by their names in the database
  std::unique_ptr<rocksdb::SstFileWriter> file_;
};

// A database in a bucket is made on this machine first, since RocksDB takes sorted files into a
// database by their paths and names them only then; its files are then uploaded. So it takes room
// for one database of each shard that saves, below $TMPDIR.
class UploadingWriter final : public DatabaseWriter {
 public:
  explicit UploadingWriter(const std::string& folder) : place_(ObjectPath::of(folder)) {
    std::string pattern = std::filesystem::temp_directory_path().string() + "/cairn-upload-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
      raise_disk_error(errno, "making a folder to upload from, like", pattern);
    scratch_ = pattern;
    writer_ = std::make_unique<RocksWriter>(scratch_ + "/" + name());
  }
  ~UploadingWriter() override {
    writer_.reset();
    std::error_code ignored;  // what is left there is no part of a checkpoint
    std::filesystem::remove_all(scratch_, ignored);
  }
  void put(std::string_view key, std::string_view value) override { writer_->put(key, value); }
  std::vector<FileInfo> finish() override {
    std::vector<FileInfo> files = writer_->finish();
    const auto bucket = object_store_of(place_.bucket);
    for (const FileInfo& file : files) {
      const std::string path = scratch_ + "/" + file.name;
      bucket->put_file(place_.key + "/" + file.name.substr(file.name.find('/') + 1), path);
      system_disk().remove(path);
    }
    return files;
  }

 private:
  std::string name() const { return place_.key.substr(place_.key.rfind('/') + 1); }

  ObjectPath place_;  // of the database
  std::string scratch_;
  std::unique_ptr<RocksWriter> writer_;
};

class RocksRowStore final : public RowStore {
 public:
  std::unique_ptr<DatabaseWriter> create(const std::string& folder) override {
    if (is_object_path(folder)) return std::make_unique<UploadingWriter>(folder);
    return std::make_unique<RocksWriter>(folder);
  }
  std::unique_ptr<DatabaseReader> open(const std::string& folder) override {
    return open_rocks_reader(folder);
  }
  Disk& disk() override { return any_disk(); }
};

}  // namespace

std::unique_ptr<RowStore> make_rocks_row_store() { return std::make_unique<RocksRowStore>(); }

FileInfo file_info(const Disk& disk, const std::string& path, std::string name) {
  FileInfo info{std::move(name)};
  std::uint32_t checksum = 0;
  disk.read_in_pieces(path, [&](std::string_view bytes) {
    info.bytes += bytes.size();
    checksum = crc32c(bytes, checksum);
  });
  info.checksum = checksum;
  return info;
}

}  // namespace cairn::storage
