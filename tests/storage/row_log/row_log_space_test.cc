// How the row log uses its space: the cleaner, cuts, and disks that are full or fail.
#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "core/base/error.h"
#include "tests/storage/row_log/fixture.h"

namespace cairn::storage {
namespace {

using testing::HasSubstr;

class RowLogSpace : public RowLogRoads {};
INSTANTIATE_TEST_SUITE_P(Roads, RowLogSpace,
                         testing::Values(IoRoad::kUringOrThreads, IoRoad::kThreads), road_name);

double times_live_rows(const RowLogCounters& counters) {
  return static_cast<double>(counters.disk_bytes) /
         static_cast<double>(counters.live_rows * kTestRowBytes);
}

TEST_P(RowLogSpace, TenTimesItsSizeInRandomUpdatesTakesAtMost1_6TimesItsLiveRows) {
  constexpr std::uint64_t kRows = 10'000;  // some 90 segments
  LogOwner owner(small_segments(), road());
  Random random(1);
  double most = 0;
  for (std::uint64_t first = 0; first < kRows; first += 50)
    owner.put_patiently(key_range(first, first + 50));
  for (std::uint64_t update = 0; update < 10 * kRows; update += 50) {
    std::set<std::uint64_t> keys;
    while (keys.size() < 50) keys.insert(random.below(kRows));
    owner.put_patiently({keys.begin(), keys.end()}, update + 1);
    owner.io().poll();
    most = std::max(most, times_live_rows(owner.log().counters()));
  }
  EXPECT_LE(most, 1.6);
  const RowLogCounters counters = owner.log().counters();
  EXPECT_EQ(counters.live_rows, kRows);
  EXPECT_LE(counters.moved_rows, 2 * counters.appended_rows);  // 1.1 x in theory, and no avalanche
  owner.expect_all_readable();
}

TEST_P(RowLogSpace, LivePlacesAreThoseThatTheOwnerHoldsSomeAtATime) {
  LogOwner owner(small_segments(), road());
  for (std::uint64_t first = 0; first < 1000; first += 50)
    owner.put_patiently(key_range(first, first + 50));
  for (std::uint64_t first = 0; first < 1000; first += 100)  // others have gaps now
    owner.put_patiently(key_range(first, first + 50), 1);
  run_until_idle(owner.io());
  std::set<Place> held;
  for (const auto& [key, each] : owner.held) held.insert(each.place);
  std::vector<Place> live;
  for (Place next = 0;;) {
    const std::vector<Place> some = owner.log().live_places(next, 7);
    if (some.empty()) break;
    EXPECT_LE(some.size(), 7u);
    live.insert(live.end(), some.begin(), some.end());
    next = some.back() + 1;
  }
  EXPECT_EQ(live, std::vector<Place>(held.begin(), held.end()));
}

TEST_P(RowLogSpace, ACutReadsItsMomentWhateverIsReleasedAndCleanedAfterwards) {
  LogOwner owner(small_segments(), road());
  for (std::uint64_t first = 0; first < 1000; first += 50)
    owner.put_patiently(key_range(first, first + 50));
  Cut cut = owner.log().freeze();
  const auto held = owner.held;
  std::vector<Place> places;
  std::vector<std::uint64_t> keys;
  std::map<Place, std::uint64_t> by_place;
  for (const auto& [key, each] : held) by_place[each.place] = key;
  for (const auto& [place, key] : by_place) {
    places.push_back(place);
    keys.push_back(key);
  }
  for (std::uint64_t version = 1; version <= 5; ++version)
    for (std::uint64_t first = 0; first < 1000; first += 50)
      owner.put_patiently(key_range(first, first + 50), version);
  const ReadRows result =
      owner.wait_for([&](RowsDone done) { cut.read(places, keys, std::move(done)); });
  ASSERT_FALSE(result.error);
  for (std::size_t i = 0; i < keys.size(); ++i) LogOwner::expect_row(result, i, keys[i], 0);

  const std::uint64_t during = owner.log().counters().disk_bytes;
  EXPECT_GE(owner.log().counters().frozen_segments, 9u);
  cut.end();
  run_until_idle(owner.io());
  EXPECT_LT(owner.log().counters().disk_bytes, during);
  EXPECT_EQ(owner.log().counters().frozen_segments, 0u);
  owner.expect_all_readable();
}

TEST_P(RowLogSpace, MovesAreToldFromPollNeverWithinAnotherCall) {
  TempFolder folder;
  IoQueue io(road());
  RowLogOptions options = small_segments();
  options.folder = folder.path() + "/log";
  options.row_bytes = kTestRowBytes;
  std::size_t moves = 0;
  RowLog log(io, options, [&](std::span<const Move> moved) { moves += moved.size(); });
  std::vector<Place> places(4 * 108);
  log.append(key_range(0, places.size()), std::vector<std::byte>(places.size() * kTestRowBytes),
             places);  // nothing of it is written yet, so that the cleaner need not read
  log.release(std::span(places).first(90));
  log.release(std::span(places).subspan(108, 90));
  log.release(std::span(places).subspan(216, 90));
  EXPECT_EQ(moves, 0u);
  run_until_idle(io);
  EXPECT_GT(moves, 0u);
}

TEST_P(RowLogSpace, TheCleanerCopiesNothingThatACutHolds) {
  LogOwner owner(small_segments(), road());
  for (std::uint64_t first = 0; first < 1080; first += 54)
    owner.put_patiently(key_range(first, first + 54));
  Cut cut = owner.log().freeze();
  for (std::uint64_t key = 0; key < 1080; ++key)
    if (key % 4 != 0) owner.remove(key);
  run_until_idle(owner.io());
  EXPECT_EQ(owner.log().counters().moved_rows, 0u);
  cut.end();
  run_until_idle(owner.io());
  EXPECT_GT(owner.log().counters().moved_rows, 0u);
  EXPECT_LE(owner.log().counters().disk_bytes, 6 * small_segments().segment_bytes);
  owner.expect_all_readable();
}

TEST_P(RowLogSpace, AFullLogRefusesRowsAndKeepsThoseItHas) {
  RowLogOptions options = small_segments();
  options.max_bytes = 10 * options.segment_bytes;
  LogOwner owner(options, road());
  std::string message;
  std::uint64_t key = 0;
  for (; key < 2000 && message.empty(); key += 10) {
    while (owner.log().room() < 10) owner.io().wait();
    try {
      owner.put(key_range(key, key + 10));
    } catch (const ResourceExhaustedError& full) {
      message = full.what();
    }
  }
  EXPECT_THAT(message, HasSubstr(owner.folder() + " is full"));
  EXPECT_THAT(message, HasSubstr("raise max_bytes"));
  EXPECT_EQ(owner.held.size(), 970u);  // nine of ten segments: the last is the cleaner's
  EXPECT_LE(owner.log().counters().disk_bytes, options.max_bytes);
  owner.expect_all_readable();

  // Rows go: the cleaner makes room of the gaps, though space_target is kept.
  for (std::uint64_t each = 0; each < 900; each += 3) owner.remove(each);
  for (std::uint64_t first = 5000; first < 5150; first += 10) {
    for (bool put = false; !put;) {
      try {
        while (owner.log().room() < 10) owner.io().wait();
        owner.put(key_range(first, first + 10));
        put = true;
      } catch (const UnavailableError&) {
        owner.io().wait();
      }
    }
  }
  EXPECT_LE(owner.log().counters().disk_bytes, options.max_bytes);
  owner.expect_all_readable();
}

// A disk whose writes, or reads, end with an error or in part.
struct Faults {
  int write_error = 0, read_error = 0;
  bool in_part = false;
  int failed = 0;
};
class FaultyIo final : public FileIo {
 public:
  FaultyIo(std::unique_ptr<FileIo> io, Faults& faults) : io_(std::move(io)), faults_(faults) {}
  void begin(std::span<const FileRequest> requests) override {
    std::vector<FileRequest> begun(requests.begin(), requests.end());
    for (FileRequest& each : begun) {
      const bool write = each.access == FileAccess::kWrite;
      const int error = write ? faults_.write_error : faults_.read_error;
      if (error != 0) errors_[each.tag] = error;
      if (faults_.in_part && each.bytes > 512) each.bytes = each.bytes / 2 / 512 * 512;
    }
    io_->begin(begun);
  }
  void take(std::vector<FileResult>& results) override {
    const std::size_t first = results.size();
    io_->take(results);
    for (FileResult& each : std::span(results).subspan(first)) {
      const auto error = errors_.find(each.tag);
      if (error == errors_.end()) continue;
      each.result = -error->second;
      errors_.erase(error);
      ++faults_.failed;
    }
  }
  std::string_view name() const override { return io_->name(); }

 private:
  std::unique_ptr<FileIo> io_;
  Faults& faults_;
  std::map<std::uint64_t, int> errors_;
};
IoQueueOptions with_faults(IoQueueOptions options, Faults& faults) {
  options.wrap = [&faults](std::unique_ptr<FileIo> io) -> std::unique_ptr<FileIo> {
    return std::make_unique<FaultyIo>(std::move(io), faults);
  };
  return options;
}

TEST_P(RowLogSpace, AWriteThatFailsLosesNoRowAndIsMadeAgain) {
  Faults faults;
  LogOwner owner(small_segments(), with_faults(road(), faults));
  owner.put(key_range(0, 100));
  run_until_idle(owner.io());
  faults.write_error = ENOSPC;
  owner.put(key_range(100, 200));  // written behind: nobody knows yet
  run_until_idle(owner.io());
  ASSERT_GT(faults.failed, 0);
  owner.expect_all_readable();
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      owner.put({1000});
      ADD_FAILURE() << "the disk is full";
    } catch (const ResourceExhaustedError& full) {
      EXPECT_THAT(full.what(), HasSubstr(owner.folder() + "/"));
      EXPECT_THAT(full.what(), HasSubstr("No space left"));
    }
    run_until_idle(owner.io());
    owner.expect_all_readable();
  }
  EXPECT_EQ(owner.held.count(1000), 0u);

  faults.write_error = 0;
  EXPECT_THROW(owner.put({1000}), ResourceExhaustedError);  // what begins the write that succeeds
  run_until_idle(owner.io());
  owner.put(key_range(1000, 1100));
  run_until_idle(owner.io());
  EXPECT_LE(owner.log().counters().unwritten_bytes, 4096u);
  owner.expect_all_readable();
}

TEST_P(RowLogSpace, AWriteThatTheSystemFailsOtherwiseIsUnavailable) {
  Faults faults{.write_error = EIO};
  LogOwner owner(small_segments(), with_faults(road(), faults));
  owner.put(key_range(0, 100));
  run_until_idle(owner.io());
  EXPECT_THROW(owner.put({1000}), UnavailableError);
  owner.expect_all_readable();
}

TEST_P(RowLogSpace, AReadThatFailsIsAnErrorThatNamesFileAndKey) {
  Faults faults;
  LogOwner owner(small_segments(), with_faults(road(), faults));
  owner.put(key_range(0, 108));
  run_until_idle(owner.io());
  faults.read_error = EIO;
  const ReadRows result = owner.read({77});
  EXPECT_THROW(std::rethrow_exception(result.error), DataLossError);
  const std::string message = error_parts(result.error).message;
  EXPECT_THAT(message, HasSubstr(owner.folder() + "/1"));
  EXPECT_THAT(message, HasSubstr("key 77"));
  faults.read_error = 0;
  owner.expect_all_readable();
}

TEST_P(RowLogSpace, WhatTheSystemDoesInPartIsContinued) {
  Faults faults{.in_part = true};
  LogOwner owner({.segment_bytes = 1 << 20, .chunk_bytes = 64 << 10}, with_faults(road(), faults));
  owner.put(key_range(0, 2000));
  run_until_idle(owner.io());
  owner.expect_all_readable();
  Cut cut = owner.log().freeze();
  std::vector<std::uint64_t> keys = owner.keys();
  std::vector<Place> places;
  for (const std::uint64_t key : keys) places.push_back(owner.held.at(key).place);
  const ReadRows result =
      owner.wait_for([&](RowsDone done) { cut.read(places, keys, std::move(done)); });
  ASSERT_FALSE(result.error);
  for (std::size_t i = 0; i < keys.size(); ++i) LogOwner::expect_row(result, i, keys[i]);
}

TEST_P(RowLogSpace, TheCleanerLeavesASegmentThatItCannotReadWhereItIs) {
  Faults faults;
  LogOwner owner(small_segments(), with_faults(road(), faults));
  for (std::uint64_t first = 0; first < 1080; first += 54)
    owner.put_patiently(key_range(first, first + 54));
  run_until_idle(owner.io());
  faults.read_error = EIO;
  for (std::uint64_t key = 0; key < 1080; ++key)
    if (key % 4 != 0) owner.remove(key);
  run_until_idle(owner.io());
  EXPECT_GT(owner.log().counters().damaged_segments, 0u);
  faults.read_error = 0;
  owner.expect_all_readable();
}

}  // namespace
}  // namespace cairn::storage
