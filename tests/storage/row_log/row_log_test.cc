#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "tests/storage/row_log/fixture.h"

namespace cairn::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Roads, RowLogRoads,
                         testing::Values(IoRoad::kUringOrThreads, IoRoad::kThreads), road_name);

// Changes a byte of a file behind the log's back.
void flip_byte(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 1));
}
std::string message_of(std::exception_ptr error) {
  return error ? error_parts(error).message : "no error";
}

TEST_P(RowLogRoads, RowsAreReadFromMemoryAndOnceWrittenFromTheDisk) {
  LogOwner owner({.segment_bytes = 1 << 20, .chunk_bytes = 64 << 10}, road());
  owner.put(key_range(0, 300));
  owner.expect_all_readable();
  EXPECT_GT(owner.log().counters().unwritten_bytes, 0u);
  owner.put(key_range(300, 1000));
  run_until_idle(owner.io());
  EXPECT_EQ(owner.log().counters().unwritten_bytes, 64u << 10);  // the chunk that is being filled
  owner.expect_all_readable();
}

TEST_P(RowLogRoads, ReadsComeInTheOrderOfTheirPlacesWhichMayRepeat) {
  LogOwner owner(small_segments(), road());
  owner.put(key_range(0, 200));
  run_until_idle(owner.io());
  const std::vector<std::uint64_t> keys = {150, 3, 199, 3, 150, 42, 4, 5};
  const ReadRows result = owner.read(keys);
  ASSERT_FALSE(result.error);
  for (std::size_t i = 0; i < keys.size(); ++i) LogOwner::expect_row(result, i, keys[i]);
}

TEST_P(RowLogRoads, AReadIsToldFromPollNeverWithinTheCall) {
  LogOwner owner(small_segments(), road());
  owner.put({7});
  bool ended = false;
  const Place place = owner.held.at(7).place;
  owner.log().read({&place, 1}, {}, [&](ReadRows rows) {
    ended = true;
    LogOwner::expect_row(rows, 0, 7);
  });
  EXPECT_FALSE(ended);  // though the row is in memory
  owner.io().poll();
  EXPECT_TRUE(ended);
}

TEST_P(RowLogRoads, AnAsioLoopIsWokenForEachBatch) {
  LogOwner owner(small_segments(), road());
  owner.put(key_range(0, 216));
  boost::asio::io_context loop;
  boost::asio::posix::stream_descriptor ready(loop, ::dup(owner.io().descriptor()));
  int batches = 0;
  std::function<void()> watch = [&] {
    ready.async_wait(boost::asio::posix::stream_descriptor::wait_read, [&](const auto& error) {
      if (error) return;
      owner.io().poll();
      if (batches < 10) watch();
    });
  };
  const std::vector<std::uint64_t> keys = {5, 100, 180};
  std::function<void()> read_on = [&] {
    std::vector<Place> places;
    for (const std::uint64_t key : keys) places.push_back(owner.held.at(key).place);
    owner.log().read(places, keys, [&](ReadRows rows) {
      for (std::size_t i = 0; i < keys.size(); ++i) LogOwner::expect_row(rows, i, keys[i]);
      if (++batches < 10) read_on();
    });
  };
  watch();
  read_on();
  loop.run();
  EXPECT_EQ(batches, 10);
}

TEST_P(RowLogRoads, ADamagedRecordIsAnErrorThatNamesFileOffsetAndKey) {
  LogOwner owner(small_segments(), road());
  owner.put(key_range(0, 108));
  run_until_idle(owner.io());
  const std::uint64_t offset = owner.log().layout().offset(owner.held.at(60).place);
  flip_byte(owner.folder() + "/1", offset + 50);
  const ReadRows result = owner.read({10, 60, 90});
  EXPECT_THROW(std::rethrow_exception(result.error), DataLossError);
  EXPECT_THAT(message_of(result.error),
              HasSubstr(owner.folder() + "/1, offset " + std::to_string(offset) + ", key 60"));
  EXPECT_TRUE(result.rows.empty());
  EXPECT_FALSE(owner.read({10, 59, 61, 90}).error);  // its neighbours are sound
}

TEST_P(RowLogRoads, ARecordOfAnotherKeyIsAnErrorThatNamesBoth) {
  LogOwner owner(small_segments(), road());
  owner.put(key_range(0, 108));
  run_until_idle(owner.io());
  std::swap(owner.held.at(20).place, owner.held.at(30).place);
  const ReadRows result = owner.read({20});
  EXPECT_THROW(std::rethrow_exception(result.error), DataLossError);
  EXPECT_THAT(message_of(result.error), HasSubstr("where key 20 belongs"));
  EXPECT_THAT(message_of(result.error), HasSubstr("has key 30"));
  // An owner that does not know its keys is told them, and compares by itself.
  const Place place = owner.held.at(20).place;
  const ReadRows told = owner.wait_for([&](RowsDone done) {
    owner.log().read({&place, 1}, {}, std::move(done));
  });
  EXPECT_EQ(told.keys, std::vector<std::uint64_t>{30});
}

TEST_P(RowLogRoads, ARecordThatAnEarlierUseOfAFileHasLeftIsDamaged) {
  LogOwner owner(small_segments(), road());
  owner.put(key_range(0, 108));
  run_until_idle(owner.io());
  fs::copy_file(owner.folder() + "/1", owner.folder() + "/before");
  owner.put(key_range(0, 108), 1);  // in the file 2; the file 1 is a spare, and named 3
  owner.put(key_range(0, 108), 2);
  run_until_idle(owner.io());
  owner.expect_all_readable();
  // As if the disk had lost the writes: same keys at the same places, with sound checksums then.
  fs::copy_file(owner.folder() + "/before", owner.folder() + "/3",
                fs::copy_options::overwrite_existing);
  EXPECT_THROW(std::rethrow_exception(owner.read({50}).error), DataLossError);
}

TEST_P(RowLogRoads, TheFolderIsEmptiedAtTheStartAndGoesAtTheEnd) {
  TempFolder folder;
  const std::string path = folder.path() + "/rows";
  fs::create_directories(path + "/of-before");
  std::ofstream(path + "/1") << "what a process that died has left";
  {
    RowLogOptions options = small_segments();
    options.folder = path;
    LogOwner owner(options, road());
    owner.put({1});
    EXPECT_FALSE(fs::exists(path + "/of-before"));
    EXPECT_EQ(fs::file_size(path + "/1"), options.segment_bytes);
    owner.expect_all_readable();
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_P(RowLogRoads, SegmentsWithoutLiveRowsAreGivenBack) {
  LogOwner owner(small_segments(), road());
  for (std::uint64_t first = 0; first < 1080; first += 108)
    owner.put_patiently(key_range(first, first + 108));
  run_until_idle(owner.io());
  EXPECT_EQ(owner.log().counters().disk_bytes, 10u * (16 << 10));
  for (std::uint64_t key = 0; key < 1000; ++key) owner.remove(key);
  run_until_idle(owner.io());
  EXPECT_LE(owner.log().counters().disk_bytes, 2u * (16 << 10));  // the last, and a spare
  const auto files = std::distance(fs::directory_iterator(owner.folder()), {});
  EXPECT_LE(files, 2);
  owner.expect_all_readable();
}

TEST_P(RowLogRoads, APlaceThatWasReleasedIsNotReleasedOrReadAgain) {
  LogOwner owner(small_segments(), road());
  owner.put(key_range(0, 10));
  const Place place = owner.held.at(4).place;
  owner.remove(4);
  EXPECT_THROW(owner.log().release({&place, 1}), InternalError);
  EXPECT_THROW(owner.log().read({&place, 1}, {}, [](ReadRows) {}), InternalError);
  owner.expect_all_readable();
}

TEST_P(RowLogRoads, AReadUnderWaySucceedsThoughItsRowsAreReleased) {
  LogOwner owner(small_segments(), road());
  owner.put(key_range(0, 216));
  run_until_idle(owner.io());
  const std::vector<std::uint64_t> keys = key_range(0, 108);
  std::vector<Place> places;
  for (const std::uint64_t key : keys) places.push_back(owner.held.at(key).place);
  const ReadRows result = owner.wait_for([&](RowsDone done) {
    owner.log().read(places, keys, std::move(done));
    for (const std::uint64_t key : keys) owner.remove(key);  // all of the first segment
    owner.put(key_range(500, 716));                          // which nothing may overwrite
  });
  ASSERT_FALSE(result.error);
  for (std::size_t i = 0; i < keys.size(); ++i) LogOwner::expect_row(result, i, keys[i]);
}

TEST_P(RowLogRoads, NothingIsToldOfALogThatHasGone) {
  TempFolder folder;
  IoQueue io(road());
  bool told = false;
  {
    RowLog log(io,
               {.folder = folder.path() + "/log",
                .row_bytes = kTestRowBytes,
                .segment_bytes = 1 << 20,
                .chunk_bytes = 4096},
               {});
    std::vector<std::uint64_t> keys = key_range(0, 1000);
    std::vector<std::byte> rows(keys.size() * kTestRowBytes);
    std::vector<Place> places(keys.size());
    log.append(keys, rows, places);
    log.read(places, keys, [&](ReadRows) { told = true; });
  }
  EXPECT_EQ(io.under_way(), 0u);
  io.poll();
  EXPECT_FALSE(told);
}

TEST_P(RowLogRoads, RowsOfEveryWidthComeBack) {
  TempFolder folder;
  IoQueue io(road());
  for (const std::size_t row_bytes : {1, 3, 500, 2050, 4084, 4085, 9001, 70'000}) {
    RowLog log(io,
               {.folder = folder.path() + "/log",
                .row_bytes = row_bytes,
                .segment_bytes = 1 << 20,
                .chunk_bytes = 4096},
               {});
    const std::vector<std::uint64_t> keys = key_range(0, 20);
    std::vector<std::byte> rows;
    for (std::size_t i = 0; i < keys.size() * row_bytes; ++i)
      rows.push_back(static_cast<std::byte>(i * i >> 3));
    std::vector<Place> places(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      while (log.room() == 0) io.wait();
      log.append(std::span(keys).subspan(i, 1), std::span(rows).subspan(i * row_bytes, row_bytes),
                 std::span(places).subspan(i, 1));
    }
    ReadRows result;
    log.read(places, keys, [&](ReadRows read) { result = std::move(read); });
    while (result.keys.empty() && !result.error) io.wait();
    EXPECT_EQ(message_of(result.error), "no error");
    EXPECT_EQ(result.rows, rows) << row_bytes;
    EXPECT_GE(log.layout().records_per_page * log.layout().width * 10,
              row_bytes > 4084 ? 1 : log.layout().page_bytes * 8)
        << "rows of " << row_bytes << " bytes waste more than a fifth";
  }
}

TEST(RowLogOptions, WhatCannotBeIsAnErrorThatSaysWhy) {
  TempFolder folder;
  IoQueue io({});
  const auto message = [&](RowLogOptions options) {
    options.folder = folder.path() + "/log";
    try {
      RowLog log(io, options, {});
    } catch (const InvalidArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message({.row_bytes = 0}), HasSubstr("rows of 0 bytes"));
  EXPECT_THAT(message({.row_bytes = 8, .segment_bytes = 1 << 20, .max_bytes = 2 << 20}),
              HasSubstr("raise max_bytes"));
  EXPECT_THAT(message({.row_bytes = 1, .segment_bytes = std::uint64_t{1} << 40}),
              HasSubstr("make segments smaller"));
}

}  // namespace
}  // namespace cairn::storage
