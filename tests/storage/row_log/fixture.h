// Row logs for tests: their folder, rows that are known by their key, and an owner that knows where
// its rows lie.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "storage/row_log/row_log.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {

constexpr std::size_t kTestRowBytes = 136;

// The row of a key in its `version`: each is different.
inline std::vector<std::byte> row_of(std::uint64_t key, std::uint64_t version = 0) {
  std::vector<std::byte> row(kTestRowBytes);
  std::uint64_t bits = mix_bits(key + 1) + mix_bits(~version);
  for (std::size_t at = 0; at < row.size(); at += sizeof bits) {
    bits = mix_bits(bits + at + 1);
    std::memcpy(row.data() + at, &bits, sizeof bits);
  }
  return row;
}

// Waits until the reads, writes and the cleaning that are under way have ended.
inline void run_until_idle(IoQueue& io) {
  io.poll();
  while (io.under_way() > 0) io.wait();
  io.poll();
}

// An owner of a log: a map from keys to places and versions.
class LogOwner {
 public:
  struct Held {
    Place place;
    std::uint64_t version;
  };

  explicit LogOwner(RowLogOptions options, IoQueueOptions io = {})
      : io_(io),
        log_(io_, with_defaults(std::move(options)), [this](auto moves) { move(moves); }) {}

  // One batch, with what the keys had before released behind it.
  void put(const std::vector<std::uint64_t>& keys, std::uint64_t version = 0) {
    std::vector<std::byte> rows;
    for (const std::uint64_t key : keys) {
      const std::vector<std::byte> row = row_of(key, version);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    std::vector<Place> places(keys.size());
    log_.append(keys, rows, places);
    std::vector<Place> old;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto [at, made] = held.insert({keys[i], {places[i], version}});
      if (!made) old.push_back(std::exchange(at->second, {places[i], version}).place);
    }
    log_.release(old);
  }
  // The same, but where the log is behind it waits until it takes them.
  void put_patiently(const std::vector<std::uint64_t>& keys, std::uint64_t version = 0) {
    while (log_.room() < keys.size()) io_.wait();
    put(keys, version);
  }
  void remove(std::uint64_t key) {
    const Place place = held.at(key).place;
    held.erase(key);
    log_.release({&place, 1});
  }

  // Reads these keys and waits for them.
  ReadRows read(const std::vector<std::uint64_t>& keys) {
    std::vector<Place> places;
    for (const std::uint64_t key : keys) places.push_back(held.at(key).place);
    return wait_for([&](RowsDone done) { log_.read(places, keys, std::move(done)); });
  }
  ReadRows wait_for(const std::function<void(RowsDone)>& begin) {
    ReadRows result;
    bool ended = false;
    begin([&](ReadRows rows) {
      result = std::move(rows);
      ended = true;
    });
    while (!ended) io_.wait();
    return result;
  }
  std::vector<std::uint64_t> keys() const {
    std::vector<std::uint64_t> all;
    for (const auto& [key, each] : held) all.push_back(key);
    return all;
  }
  // Every row that is held has its key's bytes.
  void expect_all_readable() {
    if (held.empty()) return;
    const ReadRows result = read(keys());
    ASSERT_FALSE(result.error);
    std::size_t i = 0;
    for (const auto& [key, each] : held) expect_row(result, i++, key, each.version);
  }
  static void expect_row(const ReadRows& result, std::size_t i, std::uint64_t key,
                         std::uint64_t version = 0) {
    ASSERT_LE((i + 1) * kTestRowBytes, result.rows.size());
    EXPECT_EQ(result.keys[i], key);
    const std::vector<std::byte> row = row_of(key, version);
    EXPECT_EQ(std::memcmp(result.rows.data() + i * kTestRowBytes, row.data(), row.size()), 0)
        << "the row of key " << key << " is not that of version " << version;
  }

  IoQueue& io() { return io_; }
  RowLog& log() { return log_; }
  std::string folder() const { return folder_.path() + "/log"; }
  std::map<std::uint64_t, Held> held;

 private:
  RowLogOptions with_defaults(RowLogOptions options) const {
    if (options.folder.empty()) options.folder = folder();
    options.row_bytes = kTestRowBytes;
    return options;
  }
  void move(std::span<const Move> moves) {
    for (const Move& each : moves) {
      const auto at = held.find(each.key);
      ASSERT_NE(at, held.end()) << "key " << each.key << " moved, and was released";
      EXPECT_EQ(at->second.place, each.from);
      at->second.place = each.to;
    }
  }

  TempFolder folder_;
  IoQueue io_;
  RowLog log_;
};

inline std::vector<std::uint64_t> key_range(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = first; key < last; ++key) keys.push_back(key);
  return keys;
}

// Small enough that some hundred rows fill segments: a chunk has 27 rows and a segment 108.
inline RowLogOptions small_segments() {
  return {.segment_bytes = 16 << 10, .chunk_bytes = 4 << 10, .unwritten_bytes_max = 64 << 10};
}

// Both roads, on all tests of a suite. Where the kernel refuses io_uring both are threads.
class RowLogRoads : public testing::TestWithParam<IoRoad> {
 protected:
  IoQueueOptions road() const { return {.road = GetParam(), .threads = 4}; }
};
inline std::string road_name(const testing::TestParamInfo<IoRoad>& info) {
  return info.param == IoRoad::kThreads ? "Threads" : "Uring";
}

}  // namespace cairn::storage
