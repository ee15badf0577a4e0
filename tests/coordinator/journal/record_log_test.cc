#include "coordinator/journal/record_log.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/disk/memory_disk.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPath = "journal";
using Records = std::vector<std::string>;

// They have all lengths around a word's, and none.
Records some_records(std::size_t count, std::uint64_t seed) {
  Records records;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t key = random_key(seed, i);
    records.emplace_back(key % 41, static_cast<char>('a' + i % 26));
  }
  return records;
}

Records first(const Records& records, std::size_t count) {
  return {records.begin(), records.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(RecordLog, GivesBackWhatItWasGiven) {
  MemoryDisk disk;
  RecordLog log = RecordLog::make(disk, kPath, Records{"first", ""});
  log.append(Records{"second", std::string("\0\1", 2)});
  log.sync();
  log.append(Records{});
  log.append(Records{"third"});
  const RecordLog::Found found = read_records(disk, kPath);
  EXPECT_THAT(found.records, ElementsAre("first", "", "second", std::string("\0\1", 2), "third"));
  EXPECT_FALSE(found.torn);
  EXPECT_EQ(found.bytes, disk.size(kPath));
}

TEST(RecordLog, GoesOnWhereItEnded) {
  MemoryDisk disk;
  RecordLog::make(disk, kPath, Records{"first"}).append(Records{"second"});
  RecordLog::go_on(disk, kPath, read_records(disk, kPath)).append(Records{"third"});
  EXPECT_THAT(read_records(disk, kPath).records, ElementsAre("first", "second", "third"));
}

// Wherever the power goes, each record that was synced is there, and nothing is there that was not
// written, or behind a hole.
TEST(RecordLog, LosesNothingThatWasSynced) {
  for (const int kept : {0, 30, 50, 99, 100})
    for (std::uint64_t seed = 0; seed < 40; ++seed)
      for (const auto moment :
           {MemoryDisk::Moment::kBefore, MemoryDisk::Moment::kWithin, MemoryDisk::Moment::kAfter}) {
        MemoryDisk disk;
        disk.set_unsynced_kept(kept);
        const Records all = some_records(30, seed);
        RecordLog log = RecordLog::make(disk, kPath, first(all, 2));
        disk.crash_at_step(seed % 17, moment);
        std::size_t written = 2, synced = 2;
        try {
          while (written < all.size()) {
            const std::size_t group = 1 + random_key(seed, written) % 4;
            const auto begin = all.begin() + static_cast<std::ptrdiff_t>(written);
            const std::size_t count = std::min(group, all.size() - written);
            written += count;
            log.append(Records(begin, begin + static_cast<std::ptrdiff_t>(count)));
            if (random_key(seed + 1, written) % 3 != 0) continue;
            log.sync();
            synced = written;
          }
        } catch (const UnavailableError&) {
        }
        disk.recover();
        const RecordLog::Found found = read_records(disk, kPath);
        ASSERT_GE(found.records.size(), synced) << "seed " << seed;
        ASSERT_LE(found.records.size(), written);
        ASSERT_EQ(found.records, first(all, found.records.size()));
        RecordLog::go_on(disk, kPath, found).append(Records{"behind"});
        Records wanted = found.records;
        wanted.emplace_back("behind");
        ASSERT_EQ(read_records(disk, kPath).records, wanted);
      }
}

TEST(RecordLog, CutsOffWhatIsTorn) {
  MemoryDisk disk;
  RecordLog log = RecordLog::make(disk, kPath, Records{"first"});
  log.append(Records{"second"});
  const std::uint64_t whole = disk.size(kPath);
  log.append(Records{"third"});
  for (std::uint64_t bytes = disk.size(kPath) - 1; bytes >= whole; --bytes) {
    disk.truncate(kPath, bytes);
    const RecordLog::Found found = read_records(disk, kPath);
    EXPECT_THAT(found.records, ElementsAre("first", "second"));
    EXPECT_EQ(found.torn, bytes > whole);
    EXPECT_EQ(found.bytes, whole);
  }
}

// A disk may write later blocks of a file before earlier ones, as long as no sync asks for more.
TEST(RecordLog, CutsOffWhatLiesBehindAHoleThatWasNotSynced) {
  MemoryDisk disk;
  RecordLog log = RecordLog::make(disk, kPath, Records{"first"});
  const std::uint64_t hole = disk.size(kPath) + 17;
  log.append(Records{"second"});
  log.append(Records{"third"});
  disk.flip_bit(kPath, hole);
  const RecordLog::Found found = read_records(disk, kPath);
  EXPECT_THAT(found.records, ElementsAre("first"));
  EXPECT_TRUE(found.torn);
}

TEST(RecordLog, SaysWhichSyncedRecordIsDamaged) {
  const auto make = [](MemoryDisk& disk) {
    RecordLog log = RecordLog::make(disk, kPath, Records{"first", "again"});
    log.append(Records{"second"});
    log.sync();
    log.append(Records{"third"});
  };
  MemoryDisk whole;
  make(whole);
  const std::uint64_t end_of_second = whole.size(kPath) - 24;
  for (std::uint64_t byte = 0; byte < end_of_second; ++byte) {
    // Bytes that fill a record up to a word are not looked at.
    if ((byte >= 21 && byte < 24) || (byte >= 45 && byte < 48) || (byte >= 70 && byte < 72))
      continue;
    MemoryDisk disk;
    make(disk);
    disk.flip_bit(kPath, byte);
    try {
      read_records(disk, kPath);
      ADD_FAILURE() << "byte " << byte << " was flipped";
    } catch (const DataLossError& error) {
      EXPECT_THAT(error.what(), HasSubstr(str("journal is damaged at byte ", byte / 24 * 24)));
    }
  }
}

// Also where no later record says that it was synced.
TEST(RecordLog, KnowsThatWhatItWasMadeWithIsWhole) {
  MemoryDisk disk;
  RecordLog::make(disk, kPath, Records{"first", "second"});
  disk.truncate(kPath, disk.size(kPath) - 1);
  EXPECT_THROW(read_records(disk, kPath), DataLossError);
}

TEST(RecordLog, IsNotWrittenAfterTheDiskFailedToSync) {
  MemoryDisk disk;
  RecordLog log = RecordLog::make(disk, kPath, Records{"first"});
  log.append(Records{"second"});
  disk.crash_at_step(0, MemoryDisk::Moment::kBefore);
  EXPECT_THROW(log.sync(), UnavailableError);
  disk.recover();
  EXPECT_THROW(log.append(Records{"third"}), FailedPreconditionError);
  EXPECT_THROW(log.sync(), FailedPreconditionError);
}

TEST(RecordLog, KeepsNothingOfAGroupForWhichThereIsNoRoom) {
  MemoryDisk disk;
  RecordLog log = RecordLog::make(disk, kPath, Records{"first"});
  disk.set_capacity(disk.size(kPath) + 30);
  EXPECT_THROW(log.append(Records{"second", "third"}), ResourceExhaustedError);
  log.append(Records{"fourth"});
  EXPECT_THAT(read_records(disk, kPath).records, ElementsAre("first", "fourth"));
}

}  // namespace
}  // namespace cairn
