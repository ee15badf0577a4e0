// A database as one file of records: for simulations and tests, where a Disk in memory can tear the
// write or lose it, and RocksDB, which talks to the system itself, could not be. The order of keys
// and the cursor's rules are those of RocksDB, so that code above sees no difference.
//
// A record is the key's length (4 bytes), the key, the value's length, the value. Behind the last
// one there is a length that no key has, so that a file that was cut between two is noticed.
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "storage/row_store.h"

namespace cairn::storage {
namespace {

constexpr const char* kFile = "rows";
constexpr std::string_view kEnd = "\xff\xff\xff\xff";
using Records = std::map<std::string, std::string, std::less<>>;

void put_text(std::string& out, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.append(text);
}

// A length beyond the end is a file that was cut short.
std::string take_text(std::string_view& left, const std::string& folder) {
  std::uint32_t size = 0;
  if (left.size() >= sizeof size) std::memcpy(&size, left.data(), sizeof size);
  if (left.size() < sizeof size + size)
    throw DataLossError(str("reading the database ", folder, ": it ends early"));
  std::string text(left.substr(sizeof size, size));
  left.remove_prefix(sizeof size + size);
  return text;
}

class MemoryWriter final : public DatabaseWriter {
 public:
  MemoryWriter(Disk& disk, std::string folder) : disk_(disk), folder_(std::move(folder)) {
    disk_.remove_tree(folder_);
    disk_.make_folder(folder_);
  }
  // Checked here as RocksDB's SstFileWriter checks it: a writer that got the order wrong must fail
  // in simulation too.
  void put(std::string_view key, std::string_view value) override {
    CAIRN_CHECK(last_.empty() || last_ < key, "keys of a database ascend");
    last_ = key;
    put_text(bytes_, key);
    put_text(bytes_, value);
  }
  std::vector<FileInfo> finish() override {
    const std::string path = folder_ + "/" + kFile;
    disk_.write_atomically(path, bytes_.append(kEnd));
    return {file_info(disk_, path, folder_.substr(folder_.rfind('/') + 1) + "/" + kFile)};
  }

 private:
  Disk& disk_;
  std::string folder_;
  std::string bytes_;
  std::string last_;
};

class MemoryReader final : public DatabaseReader {
 public:
  MemoryReader(Disk& disk, const std::string& folder) : path_(folder + "/" + kFile) {
    if (!disk.exists(path_))
      throw NotFoundError(
          str("there is no database in ", folder, ": its file ", path_, " is missing"));
    const std::string bytes = disk.read(path_);
    for (std::string_view left = bytes; left != kEnd;) {
      std::string key = take_text(left, folder);
      records_[std::move(key)] = take_text(left, folder);
    }
    at_ = records_.end();
  }
  void seek(std::string_view key) override {
    at_ = records_.lower_bound(key);
    count();
  }
  // The last key at or before `key`, and invalid if all keys are after it.
  void seek_for_prev(std::string_view key) override {
    at_ = records_.upper_bound(key);
    at_ = at_ == records_.begin() ? records_.end() : std::prev(at_);
    count();
  }
  bool valid() const override { return at_ != records_.end(); }
  void next() override {
    ++at_;
    count();
  }
  std::string_view key() const override { return at_->first; }
  std::string_view value() const override { return at_->second; }
  std::uint64_t will_read(std::string_view begin, std::string_view end) override {
    std::uint64_t bytes = 0;
    for (auto at = records_.lower_bound(begin); at != records_.end() && at->first < end; ++at)
      bytes += at->first.size() + at->second.size();
    return bytes;
  }
  std::string will_seek_for_prev(std::string_view key) override {
    const auto behind = records_.upper_bound(key);
    return behind == records_.begin() ? "" : std::prev(behind)->first;
  }
  std::uint64_t read_bytes() const override { return read_; }
  std::string file() const override { return path_; }

 private:
  // As if each record that the cursor comes to were read at that moment.
  void count() {
    if (valid()) read_ += at_->first.size() + at_->second.size();
  }

  std::string path_;
  Records records_;
  Records::const_iterator at_;
  std::uint64_t read_ = 0;
};

class MemoryRowStore final : public RowStore {
 public:
  explicit MemoryRowStore(Disk& disk) : disk_(disk) {}
  std::unique_ptr<DatabaseWriter> create(const std::string& folder) override {
    return std::make_unique<MemoryWriter>(disk_, folder);
  }
  std::unique_ptr<DatabaseReader> open(const std::string& folder) override {
    return std::make_unique<MemoryReader>(disk_, folder);
  }
  Disk& disk() override { return disk_; }

 private:
  Disk& disk_;
};

}  // namespace

std::unique_ptr<RowStore> make_memory_row_store(Disk& disk) {
  return std::make_unique<MemoryRowStore>(disk);
}

}  // namespace cairn::storage
