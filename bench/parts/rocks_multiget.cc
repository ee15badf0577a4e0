#include "bench/parts/rocks_multiget.h"

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace cairn::bench {
namespace {

void check(const rocksdb::Status& status) {
  if (!status.ok()) throw InternalError(str("RocksDB: ", status.ToString()));
}

// Big-endian, so that their order is that of the numbers.
using KeyBytes = std::array<char, 8>;
KeyBytes bytes_of(std::uint64_t key) {
  KeyBytes bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(key >> (56 - 8 * i));
  return bytes;
}

rocksdb::Options make_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.use_direct_reads = true;
  options.use_direct_io_for_flush_and_compaction = true;
  options.disable_auto_compactions = true;
  options.max_open_files = -1;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 4096;
  table.format_version = 5;
  table.no_block_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// Threads that each carry out the same work with their own number, at once.
class Crew {
 public:
  explicit Crew(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { loop(i); });
  }
  ~Crew() {
    run({});
    for (std::thread& thread : threads_) thread.join();
  }
  int size() const { return static_cast<int>(threads_.size()); }
  void run(std::function<void(int)> work) {
    std::unique_lock hold(mutex_);
    work_ = std::move(work);
    left_ = size();
    ++round_;
    begin_.notify_all();
    end_.wait(hold, [this] { return left_ == 0; });
  }

 private:
  void loop(int number) {
    for (std::uint64_t seen = 0;;) {
      std::unique_lock hold(mutex_);
      begin_.wait(hold, [&] { return round_ != seen; });
      seen = round_;
      const auto work = work_;
      hold.unlock();
      if (work) work(number);
      hold.lock();
      if (--left_ == 0) end_.notify_one();
      if (!work) return;
    }
  }
  std::mutex mutex_;  // guards what follows
  std::condition_variable begin_, end_;
  std::function<void(int)> work_;
  std::uint64_t round_ = 0;
  int left_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

struct RocksRows::Parts {
  std::unique_ptr<rocksdb::DB> database;
  std::unique_ptr<Crew> crew;

  void read(std::span<const std::uint64_t> keys) {
    std::vector<KeyBytes> bytes;
    for (const std::uint64_t key : keys) bytes.push_back(bytes_of(key));
    std::vector<rocksdb::Slice> slices;
    for (const KeyBytes& each : bytes) slices.emplace_back(each.data(), each.size());
    std::vector<rocksdb::PinnableSlice> values(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    database->MultiGet({}, database->DefaultColumnFamily(), keys.size(), slices.data(),
                       values.data(), statuses.data());
    for (const rocksdb::Status& each : statuses) check(each);
  }
};

RocksRows::RocksRows(const std::string& folder, std::uint64_t rows, std::size_t row_bytes,
                     int threads)
    : parts_(std::make_unique<Parts>()) {
  std::filesystem::create_directories(folder);
  const rocksdb::Options options = make_options();
  rocksdb::DB* database = nullptr;
  check(rocksdb::DB::Open(options, folder + "/db", &database));
  parts_->database.reset(database);
  constexpr std::uint64_t kRowsOfAFile = 500'000;
  const std::string row(row_bytes, 'r');
  for (std::uint64_t first = 0; first < rows; first += kRowsOfAFile) {
    const std::string path = str(folder, "/", first, ".sst");
    rocksdb::SstFileWriter file(rocksdb::EnvOptions(), options);
    check(file.Open(path));
    for (std::uint64_t key = first; key < std::min(rows, first + kRowsOfAFile); ++key) {
      const KeyBytes bytes = bytes_of(key);
      check(file.Put(rocksdb::Slice(bytes.data(), bytes.size()), row));
    }
    check(file.Finish());
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    check(database->IngestExternalFile({path}, ingest));
  }
  parts_->crew = std::make_unique<Crew>(threads);
}

RocksRows::~RocksRows() = default;

void RocksRows::read(std::span<const std::uint64_t> keys) {
  const auto threads = static_cast<std::size_t>(parts_->crew->size());
  const std::size_t each = (keys.size() + threads - 1) / threads;
  parts_->crew->run([&, keys](int thread) {
    const std::size_t first = std::min(keys.size(), static_cast<std::size_t>(thread) * each);
    const std::size_t count = std::min(each, keys.size() - first);
    if (count > 0) parts_->read(keys.subspan(first, count));
  });
}

}  // namespace cairn::bench
