#include "storage/stores/object_file_system.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "storage/any_disk.h"
#include "storage/object_store/object_disk.h"

namespace cairn::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// A request of a store takes some tens of milliseconds before its first byte: at 1 GB/s that is
// what two pieces take. Six are kept, so that two files that are read in turns keep theirs; fewer
// where many databases are open at once, as of a chain of deltas: 144 MB in all, and a piece each.
constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
constexpr std::size_t kPieces = 6, kPiecesInAll = 36;

// Pieces of objects, those that were used last.
class Pieces {
 public:
  using Piece = std::shared_future<std::string>;
  explicit Pieces(std::shared_ptr<ObjectStore> store) : store_(std::move(store)) { ++open_; }
  ~Pieces() { --open_; }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  // How many are kept, the one that is being read among them.
  static std::size_t kept() { return std::clamp<std::size_t>(kPiecesInAll / open_, 1, kPieces); }

  // Begins to fetch it, if it is not there or on its way.
  Piece get(const std::string& key, std::uint64_t number, std::uint64_t object_bytes) {
    const std::lock_guard hold(mutex_);
    const auto found = std::find_if(pieces_.begin(), pieces_.end(), [&](const Entry& entry) {
      return entry.key == key && entry.number == number;
    });
    if (found != pieces_.end()) {
      pieces_.splice(pieces_.begin(), pieces_, found);
      return pieces_.front().piece;
    }
    const std::uint64_t begin = number * kPieceBytes;
    const std::uint64_t bytes = std::min(kPieceBytes, object_bytes - begin);
    auto fetch = [store = store_, key, begin, bytes] {
      std::string read = store->get(key, begin, bytes);
      if (read.size() != bytes)
        throw DataLossError(str("the object ", key, " is shorter than it was"));
      return read;
    };
    // One that is still on its way when it is let go is waited for here: its time is bounded.
    while (pieces_.size() >= kept()) pieces_.pop_back();
    pieces_.push_front({key, number, std::async(std::launch::async, std::move(fetch)).share()});
    return pieces_.front().piece;
  }

 private:
  struct Entry {
    std::string key;
    std::uint64_t number = 0;
    Piece piece;
  };
  inline static std::atomic<std::size_t> open_{0};  // databases, in this process
  std::shared_ptr<ObjectStore> store_;
  std::mutex mutex_;  // guards `pieces_`
  std::list<Entry> pieces_;
};

// Keeps the first error, for the one who called RocksDB.
class Trouble {
 public:
  IOStatus note(const std::exception_ptr& error) {
    const std::lock_guard hold(mutex_);
    if (!error_) error_ = error;
    return IOStatus::IOError(error_parts(error).message);
  }
  void rethrow() const {
    const std::lock_guard hold(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  mutable std::mutex mutex_;  // guards `error_`
  std::exception_ptr error_;
};

class ObjectFile final : public rocksdb::FSRandomAccessFile {
 public:
  ObjectFile(std::string key, std::uint64_t bytes, std::shared_ptr<Pieces> pieces,
             std::shared_ptr<Trouble> trouble)
      : key_(std::move(key)),
        bytes_(bytes),
        pieces_(std::move(pieces)),
        trouble_(std::move(trouble)) {}

  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions&, rocksdb::Slice* result,
                char* scratch, IODebugContext*) const override {
    const std::uint64_t end = std::min<std::uint64_t>(bytes_, offset + n);
    std::size_t done = 0;
    try {
      while (offset + done < end) {
        const std::uint64_t at = offset + done;
        const Pieces::Piece piece = pieces_->get(key_, at / kPieceBytes, bytes_);
        const std::string& read = piece.get();
        const std::size_t from = at % kPieceBytes;
        const std::size_t taken = std::min<std::uint64_t>(read.size() - from, end - at);
        std::memcpy(scratch + done, read.data() + from, taken);
        done += taken;
      }
    } catch (...) {
      return trouble_->note(std::current_exception());
    }
    *result = rocksdb::Slice(scratch, done);
    return IOStatus::OK();
  }

  // Two pieces at most, none where one is kept: what is read ahead must not drive out what is read.
  IOStatus Prefetch(std::uint64_t offset, std::size_t n, const IOOptions&,
                    IODebugContext*) override {
    const std::size_t ahead = std::min<std::size_t>(Pieces::kept() - 1, 2);
    const std::uint64_t end =
        std::min<std::uint64_t>({bytes_, offset + n, offset + ahead * kPieceBytes});
    try {
      for (std::uint64_t at = offset; at < end; at = (at / kPieceBytes + 1) * kPieceBytes)
        pieces_->get(key_, at / kPieceBytes, bytes_);
    } catch (...) {
      return trouble_->note(std::current_exception());
    }
    return IOStatus::OK();
  }

 private:
  std::string key_;
  std::uint64_t bytes_;
  std::shared_ptr<Pieces> pieces_;
  std::shared_ptr<Trouble> trouble_;
};

// RocksDB's own small files, which it reads from the beginning to the end.
class ReadObject final : public rocksdb::FSSequentialFile {
 public:
  explicit ReadObject(std::string bytes) : bytes_(std::move(bytes)) {}
  IOStatus Read(std::size_t n, const IOOptions&, rocksdb::Slice* result, char* scratch,
                IODebugContext*) override {
    const std::size_t taken = std::min(n, bytes_.size() - at_);
    std::memcpy(scratch, bytes_.data() + at_, taken);
    at_ += taken;
    *result = rocksdb::Slice(scratch, taken);
    return IOStatus::OK();
  }
  IOStatus Skip(std::uint64_t n) override {
    at_ = std::min<std::uint64_t>(bytes_.size(), at_ + n);
    return IOStatus::OK();
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

class FolderOfObjects final : public ObjectFileSystem {
 public:
  FolderOfObjects(std::shared_ptr<ObjectStore> store, std::string folder_key)
      : store_(std::move(store)), pieces_(std::make_shared<Pieces>(store_)) {
    const std::string prefix = folder_key + "/";
    for (const ObjectInfo& object : store_->list(prefix, ObjectStore::Depth::kOneLevel).objects)
      files_[object.key.substr(prefix.size())] = object;
  }

  void rethrow_trouble() const override { trouble_->rethrow(); }

  IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override {
    const ObjectInfo* object = find(path);
    if (object == nullptr) return IOStatus::PathNotFound(path);
    try {
      *result = std::make_unique<ReadObject>(store_->get(object->key, 0, object->bytes));
    } catch (...) {
      return trouble_->note(std::current_exception());
    }
    return IOStatus::OK();
  }
  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override {
    const ObjectInfo* object = find(path);
    if (object == nullptr) return IOStatus::PathNotFound(path);
    *result = std::make_unique<ObjectFile>(object->key, object->bytes, pieces_, trouble_);
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override {
    return find(path) == nullptr ? IOStatus::NotFound(path) : IOStatus::OK();
  }
  IOStatus GetChildren(const std::string&, const IOOptions&, std::vector<std::string>* names,
                       IODebugContext*) override {
    names->clear();
    for (const auto& [name, object] : files_) names->push_back(name);
    return IOStatus::OK();
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions&, std::uint64_t* bytes,
                       IODebugContext*) override {
    const ObjectInfo* object = find(path);
    if (object == nullptr) return IOStatus::PathNotFound(path);
    *bytes = object->bytes;
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute,
                           IODebugContext*) override {
    *absolute = path;
    return IOStatus::OK();
  }

 private:
  const ObjectInfo* find(const std::string& path) const {
    const auto found = files_.find(path.substr(path.rfind('/') + 1));
    return found == files_.end() ? nullptr : &found->second;
  }

  std::shared_ptr<ObjectStore> store_;
  std::map<std::string, ObjectInfo> files_;
  std::shared_ptr<Trouble> trouble_ = std::make_shared<Trouble>();
  std::shared_ptr<Pieces> pieces_;
};

}  // namespace

std::shared_ptr<ObjectFileSystem> ObjectFileSystem::of_folder(const std::string& folder) {
  const ObjectPath at = ObjectPath::of(folder);
  return std::make_shared<FolderOfObjects>(object_store_of(at.bucket), at.key);
}

}  // namespace cairn::storage
