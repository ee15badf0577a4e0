// A checkpoint's database is read through RocksDB's own iterator, and that through files of ours,
// which read ahead. RocksDB's read-ahead would copy every byte once more, know nothing of where the
// wanted range ends, and stand still while it reads. The kernel's, asked for some megabytes ahead,
// goes on while blocks are decoded, and its pages are no memory of this process.
#include "storage/stores/rocks_reader.h"

#include <rocksdb/db.h>
#include <rocksdb/file_system.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "storage/object_store/object_disk.h"
#include "storage/stores/object_file_system.h"
#include "storage/stores/rocks_record_list.h"
#include "storage/stores/rocks_status.h"

namespace cairn::storage {
namespace {

// So far is read ahead: at 2 GB/s that is 4 ms, more than a disk takes. In steps, since to ask for
// 4 MB takes 2 ms in the kernel even if all of it is in memory, during which no other thread gets
// that processor.
constexpr std::uint64_t kReadAhead = std::uint64_t{8} << 20,
                        kReadAheadStep = std::uint64_t{512} << 10;

// Shared by the files of one database. Its reader is used by one thread at a time, and so are they.
struct ReadAhead {
  std::uint64_t announced = 0;  // bytes that will be read, and have not been asked for yet
  std::uint64_t asked = 0;      // bytes, in all
  std::string file;             // the last one that was read
};

class FileReadAhead final : public rocksdb::FSRandomAccessFileWrapper {
 public:
  FileReadAhead(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string name,
                std::uint64_t size, std::shared_ptr<ReadAhead> shared)
      : FSRandomAccessFileWrapper(file.get()),
        file_(std::move(file)),
        name_(std::move(name)),
        size_(size),
        shared_(std::move(shared)) {}

  rocksdb::IOStatus Read(std::uint64_t offset, std::size_t bytes, const rocksdb::IOOptions& options,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* debug) const override {
    shared_->file = name_;
    ask(offset, bytes);
    return target()->Read(offset, bytes, options, result, scratch, debug);
  }
  // RocksDB asks for half a megabyte at a file's end before it reads the index there, which is a
  // twentieth of that.
  rocksdb::IOStatus Prefetch(std::uint64_t, std::size_t, const rocksdb::IOOptions&,
                             rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }

 private:
  // A failure to read ahead is none of ours: the read itself will say what is wrong.
  void ask(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t end = std::min(offset + bytes, size_);
    if (end < begin_ || offset > end_) begin_ = end_ = offset;  // elsewhere
    // A cursor that looks for the last key before another one may have to step back a block.
    if (offset < begin_) {
      shared_->asked += begin_ - offset;
      begin_ = offset;
    }
    if (end > end_) count(end - end_);
    const std::uint64_t wanted =
        std::min({size_, end + kReadAhead, std::max(end_, end) + shared_->announced});
    if (wanted <= end_ || (wanted - end_ < kReadAheadStep && end_ > end)) return;
    target()->Prefetch(end_, wanted - end_, {}, nullptr).PermitUncheckedError();
    count(wanted - end_);
  }
  void count(std::uint64_t bytes) const {
    end_ += bytes;
    shared_->asked += bytes;
    shared_->announced -= std::min(bytes, shared_->announced);
  }

  std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  std::string name_;
  std::uint64_t size_;
  std::shared_ptr<ReadAhead> shared_;
  // The bytes that were asked for last, one after the other.
  mutable std::uint64_t begin_ = 0, end_ = 0;
};

class FilesReadAhead final : public rocksdb::FileSystemWrapper {
 public:
  FilesReadAhead(std::shared_ptr<ReadAhead> shared, std::shared_ptr<rocksdb::FileSystem> files)
      : FileSystemWrapper(std::move(files)), shared_(std::move(shared)) {}
  const char* Name() const override { return "cairn-read-ahead"; }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    std::uint64_t size = 0;
    rocksdb::IOStatus status = target()->NewRandomAccessFile(name, options, &file, debug);
    if (status.ok()) status = target()->GetFileSize(name, options.io_options, &size, debug);
    if (status.ok())
      *result = std::make_unique<FileReadAhead>(std::move(file), name, size, shared_);
    return status;
  }

 private:
  std::shared_ptr<ReadAhead> shared_;
};

rocksdb::Options reader_options(rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.info_log = std::make_shared<NoLog>();
  // Few files are open at a time, and each is opened when the cursor comes to it: opening reads its
  // index, and a reader of a part needs the files of that part alone.
  options.max_open_files = 32;
  options.max_file_opening_threads = 1;
  options.skip_stats_update_on_db_open = true;
  options.paranoid_checks = true;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // a checkpoint is read once, from end to end
  table.initial_auto_readahead_size = 0;
  table.max_auto_readahead_size = 0;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// Opened read-only: a checkpoint is never changed, may lie on a medium that cannot be written, and
// may be read by several processes at once.
class RocksReader final : public DatabaseReader {
 public:
  explicit RocksReader(const std::string& folder)
      : folder_(folder),
        objects_(is_object_path(folder) ? ObjectFileSystem::of_folder(folder) : nullptr),
        env_(rocksdb::NewCompositeEnv(std::make_shared<FilesReadAhead>(shared_, files()))) {
    if (!env_->FileExists(folder + "/CURRENT").ok())
      throw NotFoundError(
          str("there is no database in ", folder,
              ": its folder or its file CURRENT is missing. If it is on "
              "another machine, share that folder, or bring it here by `cairn ckpt copy`"));
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::OpenForReadOnly(reader_options(env_.get()), folder, &opened);
    database_.reset(opened);
    if (!status.ok() && objects_ != nullptr) objects_->rethrow_trouble();
    check_rocksdb(status, "opening the database ", folder);
    list_files();
    verify_files();
    rocksdb::ReadOptions read;
    read.fill_cache = false;
    cursor_.reset(database_->NewIterator(read));
  }
  void seek(std::string_view key) override {
    cursor_->Seek(rocksdb::Slice(key.data(), key.size()));
    check();
  }
  void seek_for_prev(std::string_view key) override {
    cursor_->SeekForPrev(rocksdb::Slice(key.data(), key.size()));
    check();
  }
  bool valid() const override { return cursor_->Valid(); }
  void next() override {
    cursor_->Next();
    check();
  }
  std::string_view key() const override { return cursor_->key().ToStringView(); }
  std::string_view value() const override { return cursor_->value().ToStringView(); }

  std::uint64_t will_read(std::string_view begin, std::string_view end) override {
    const rocksdb::Range range(rocksdb::Slice(begin.data(), begin.size()),
                               rocksdb::Slice(end.data(), end.size()));
    rocksdb::SizeApproximationOptions files_alone;
    std::uint64_t bytes = 0;
    check_rocksdb(database_->GetApproximateSizes(files_alone, database_->DefaultColumnFamily(),
                                                 &range, 1, &bytes),
                  "reading the database ", folder_);
    shared_->announced = bytes;
    return bytes;
  }
  std::string will_seek_for_prev(std::string_view key) override {
    const auto behind = std::upper_bound(
        files_.begin(), files_.end(), key,
        [](std::string_view wanted, const LiveFile& file) { return wanted < file.first_key; });
    if (behind == files_.begin()) return "";
    list_records_of(*std::prev(behind));
    if (!listed_.records.has_value()) return "";
    const auto record = std::prev(std::upper_bound(
        listed_.records->begin(), listed_.records->end(), key,
        [](std::string_view wanted, const ListedRecord& at) { return wanted < at.key; }));
    ask_for(*record);
    return record->key;
  }
  std::uint64_t read_bytes() const override { return shared_->asked; }
  std::string file() const override { return shared_->file.empty() ? folder_ : shared_->file; }

 private:
  struct LiveFile {
    std::string name, first_key;
  };
  struct Listed {
    const LiveFile* of = nullptr;
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;  // null: nothing is asked of it ahead
    std::optional<RecordList> records;
    std::uint64_t asked = UINT64_MAX;  // where the block begins that was asked for last
  };

  std::shared_ptr<rocksdb::FileSystem> files() const {
    return objects_ != nullptr ? objects_ : rocksdb::FileSystem::Default();
  }
  void list_files() {
    std::vector<rocksdb::LiveFileMetaData> live;
    database_->GetLiveFilesMetaData(&live);
    for (auto& file : live)
      files_.push_back({std::move(file.relative_filename), std::move(file.smallestkey)});
    std::sort(files_.begin(), files_.end(),
              [](const LiveFile& a, const LiveFile& b) { return a.first_key < b.first_key; });
  }
  // The descriptor (MANIFEST-*) is a log of records, of which the last ones add the sorted files to
  // the database. If the file was cut just behind an earlier record, RocksDB opens the database
  // without an error and without those files, and their rows would silently get initial values. So
  // every sorted file in the folder must be one that the descriptor names.
  void verify_files() const {
    std::set<std::string> known;
    for (const LiveFile& file : files_) known.insert(file.name);
    std::vector<std::string> names;
    check_rocksdb(env_->GetChildren(folder_, &names), "listing the database ", folder_);
    for (const std::string& name : names)
      if (name.ends_with(".sst") && !known.contains(name))
        throw DataLossError(str("the database ", folder_, " does not know of its file ", name,
                                ": its descriptor, MANIFEST-*, was cut or exchanged"));
  }
  // Records are mostly announced in order: one file's list is kept at a time.
  void list_records_of(const LiveFile& file) {
    if (listed_.of == &file) return;
    listed_ = {&file, nullptr, std::nullopt};
    const rocksdb::Range range(file.first_key, file.first_key);
    rocksdb::TablePropertiesCollection all;
    check_rocksdb(
        database_->GetPropertiesOfTablesInRange(database_->DefaultColumnFamily(), &range, 1, &all),
        "reading the database ", folder_, ", in ", file.name);
    const std::string path = folder_ + "/" + file.name;
    for (const auto& [name, properties] : all)
      if (name.ends_with("/" + file.name)) listed_.records = record_list_of(*properties, path);
    // Asking an object store ahead would wait for the answer.
    if (!listed_.records.has_value() || objects_ != nullptr) return;
    files()->NewRandomAccessFile(path, {}, &listed_.file, nullptr).PermitUncheckedError();
  }
  // A failure costs only time: the seek reads the block itself.
  void ask_for(const ListedRecord& record) {
    if (listed_.file == nullptr || listed_.asked == record.begin) return;
    listed_.asked = record.begin;
    listed_.file->Prefetch(record.begin, record.end - record.begin, {}, nullptr)
        .PermitUncheckedError();
  }
  // The error that kept an object from being read says more than RocksDB does.
  void check() const {
    if (!cursor_->status().ok() && objects_ != nullptr) objects_->rethrow_trouble();
    check_rocksdb(cursor_->status(), "reading the database ", folder_, ", in ", file());
  }

  std::string folder_;
  std::vector<LiveFile> files_;  // in the order of their keys
  Listed listed_;
  std::shared_ptr<ReadAhead> shared_ = std::make_shared<ReadAhead>();
  std::shared_ptr<ObjectFileSystem> objects_;  // null: the system's files
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> database_;
  std::unique_ptr<rocksdb::Iterator> cursor_;  // after database_: ends before it
};

}  // namespace

std::unique_ptr<DatabaseReader> open_rocks_reader(const std::string& folder) {
  return std::make_unique<RocksReader>(folder);
}

}  // namespace cairn::storage
