// Rows that are read from a checkpoint's files are, bit for bit, those that are read into memory,
// whatever databases and blocks hold them; and damage is told to those that read it.
#include "serving/model/stored_rows.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "serving/model/stored_tables.h"
#include "tests/serving/model/saved_tables.h"

namespace cairn::serving::testing {
namespace {

using storage::BlockForm;
using storage::Compression;
using storage::RowForm;
using storage::SlotForm;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kStoredRows = 1000;

struct Stored {
  std::shared_ptr<ReadCounters> counters = std::make_shared<ReadCounters>();
  std::shared_ptr<RowCache> cache;
  std::shared_ptr<const StoredRows> rows;
};

Stored stored_rows(const std::string& folder, const VariableSpec& spec, std::size_t cache_bytes) {
  Stored made;
  const SavedRowsReader weights(folder);
  made.cache =
      std::make_shared<RowCache>(static_cast<std::size_t>(spec.dim()) * dtype_bytes(spec.dtype));
  made.cache->resize(cache_bytes);
  StoredDatabases databases(weights);
  made.rows = std::make_shared<StoredRows>(std::make_shared<VariableSpec>(spec), weights.seed(),
                                           databases.places_of(spec), 1, made.cache, made.counters);
  return made;
}

std::shared_ptr<const ServedRows> pooled_rows(const std::string& folder, const VariableSpec& spec,
                                              std::shared_ptr<ReadCounters> counters = nullptr) {
  const SavedRowsReader weights(folder);
  PooledRowsBuilder builder(std::make_shared<VariableSpec>(spec), weights.seed(), nullptr,
                            std::move(counters));
  weights.read(spec, [&](std::int64_t row, const std::byte* values) { builder.put(row, values); });
  return builder.finish();
}

std::vector<std::byte> read_rows(const ServedRows& from, const VariableSpec& spec,
                                 const std::vector<std::int64_t>& rows) {
  std::vector<std::byte> out(rows.size() * static_cast<std::size_t>(spec.dim()) *
                             dtype_bytes(spec.dtype));
  std::vector<std::int64_t> scratch;
  from.read(rows, out.data(), scratch);
  return out;
}

std::vector<std::int64_t> all_rows() {
  std::vector<std::int64_t> rows(kStoredRows);
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

// A base and three deltas, of which the rows, blocks, slots and forms are drawn, some rows of which
// have gone, and one of which may be whole.
void write_chain(const std::string& folder, const VariableSpec& spec, BlockForm form,
                 std::mt19937& random) {
  std::vector<std::vector<storage::FileInfo>> files;
  const std::size_t whole = random() % 6;
  for (std::size_t number = 0; number < 4; ++number) {
    SavedDatabase database(folder + "/db-" + std::to_string(number), spec,
                           number > 0 && number == whole);
    const auto slots = static_cast<std::uint32_t>(spec.dtype == DType::kFloat32 && random() % 2);
    for (std::int64_t first = static_cast<std::int64_t>(random() % 40); first < kStoredRows;) {
      std::vector<std::uint64_t> offsets{0};
      const bool list = random() % 2 == 0;
      const std::size_t count = 1 + random() % 60;
      while (offsets.size() < count)
        offsets.push_back(offsets.back() + 1 + (list ? random() % 4 : 0));
      while (first + static_cast<std::int64_t>(offsets.back()) >= kStoredRows) offsets.pop_back();
      const auto last = static_cast<std::int64_t>(offsets.back());
      // Some blocks are of another form, as those are that would not become smaller.
      database.block(first, std::move(offsets), random() % 4 == 0 ? BlockForm{} : form, slots,
                     random);
      first += last + 1 + static_cast<std::int64_t>(number == 0 ? random() % 20 : random() % 300);
    }
    if (number > 0 && spec.hashed) {
      const auto first = static_cast<std::int64_t>(random() % 900);
      database.gone(first, {0, 1, 5, 40, 41, 99});
    }
    files.push_back(database.write());
  }
  commit_databases(folder, spec, files);
}

struct Case {
  bool hashed;
  DType dtype;
  BlockForm form;
};
struct StoredRowsForms : ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Of, StoredRowsForms,
    ::testing::Values(
        Case{false, DType::kFloat32, {}}, Case{true, DType::kFloat32, {}},
        Case{false, DType::kInt64, {}},
        Case{false, DType::kFloat32, {RowForm::kBfloat16, SlotForm::kBfloat16}},
        Case{true, DType::kFloat32, {RowForm::kInt8, SlotForm::kExact}},
        Case{false, DType::kFloat32, {RowForm::kInt8, SlotForm::kBfloat16}},
        Case{true, DType::kFloat32, {RowForm::kExact, SlotForm::kExact, Compression::kZstd}},
        Case{false, DType::kFloat32, {RowForm::kInt8, SlotForm::kExact, Compression::kZstd}}));

TEST_P(StoredRowsForms, RowsHaveTheBitsOfThoseInMemoryWhateverHoldsThem) {
  const Case& of = GetParam();
  const VariableSpec spec = saved_spec(of.hashed, of.dtype);
  for (unsigned seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const storage::TempFolder folder;
    write_chain(folder.path(), spec, of.form, random);
    const auto counted = std::make_shared<ReadCounters>();
    const auto pooled = pooled_rows(folder.path(), spec, counted);
    // Without a cache, with one that has room for a part of the rows, and for all of them.
    for (const std::size_t cache_bytes : {0, 8'000, 1'000'000}) {
      const Stored stored = stored_rows(folder.path(), spec, cache_bytes);
      const std::uint64_t before = counted->unknown_ids;
      std::vector<std::int64_t> rows = all_rows();
      for (int round = 0; round < 3; ++round) {
        ASSERT_EQ(read_rows(*stored.rows, spec, rows), read_rows(*pooled, spec, rows));
        std::ranges::shuffle(rows, random);
      }
      EXPECT_EQ(stored.counters->unknown_ids, counted->unknown_ids - before);
      EXPECT_EQ(stored.counters->unknown_ids > 0, of.hashed);
      EXPECT_EQ(stored.counters->cache_hits + stored.counters->cache_misses, 3u * kStoredRows);
      EXPECT_EQ(stored.counters->cache_hits == 0, cache_bytes == 0);
      EXPECT_EQ(stored.counters->cache_hits == 2u * kStoredRows, cache_bytes == 1'000'000);
      rows.resize(50);
      for (const std::int64_t row : rows)
        ASSERT_EQ(read_rows(*stored.rows, spec, {row}), read_rows(*pooled, spec, {row}))
            << "row " << row;
      if (!of.hashed) {
        const Tensor a = stored.rows->whole(), b = pooled->whole();
        EXPECT_EQ(std::memcmp(a.raw(), b.raw(), b.bytes()), 0);
      }
    }
  }
}

struct StoredRowsTest : ::testing::Test {
  const storage::TempFolder folder;
  static constexpr std::int64_t kDim = 256;
  static constexpr std::size_t kRowBytes = kDim * sizeof(float);
  const VariableSpec spec = saved_spec(false, DType::kFloat32, kStoredRows, kDim);
  std::mt19937 random{1};

  // Ten blocks of a hundred rows, 100 KB each.
  void write() {
    SavedDatabase database(folder.path() + "/db-0", spec);
    for (std::int64_t first = 0; first < kStoredRows; first += 100) {
      std::vector<std::uint64_t> offsets(100);
      std::iota(offsets.begin(), offsets.end(), std::uint64_t{0});
      database.block(first, std::move(offsets), {}, 0, random);
    }
    commit_databases(folder.path(), spec, {database.write()});
  }
  std::string rows_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/db-0"))
      if (entry.path().extension() == ".sst") return entry.path();
    return "";
  }
};

TEST_F(StoredRowsTest, ADamagedBlockIsToldToThoseThatReadItAndTheOthersAreAnswered) {
  write();
  const auto pooled = pooled_rows(folder.path(), spec);
  const Stored stored = stored_rows(folder.path(), spec, 0);
  {
    // A row of the fourth block, in the middle of it.
    std::fstream file(rows_file(), std::ios::in | std::ios::out | std::ios::binary);
    const std::vector<std::byte> row = read_rows(*pooled, spec, {350});
    std::string bytes(std::filesystem::file_size(rows_file()), '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const auto at = bytes.find({reinterpret_cast<const char*>(row.data()), row.size()});
    ASSERT_NE(at, std::string::npos);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(bytes[at] ^ 1));
  }
  const auto damaged = ThrowsMessage<DataLossError>(
      AllOf(HasSubstr(rows_file()), HasSubstr(", at byte "), HasSubstr("row 3"),
            HasSubstr("variable \"table\""), HasSubstr("its checksum does not match")));
  EXPECT_THAT([&] { read_rows(*stored.rows, spec, {350}); }, damaged);
  EXPECT_THAT([&] { read_rows(*stored.rows, spec, {10, 399, 500}); }, damaged);
  EXPECT_EQ(stored.counters->damaged_blocks, 1u);  // however often it is read
  for (std::int64_t row = 0; row < kStoredRows; ++row)
    if (row < 300 || row >= 400) {
      ASSERT_EQ(read_rows(*stored.rows, spec, {row}), read_rows(*pooled, spec, {row})) << row;
    }
}

TEST_F(StoredRowsTest, AFileThatWasCutShortIsAnErrorThatNamesIt) {
  write();
  const Stored stored = stored_rows(folder.path(), spec, 0);
  std::filesystem::resize_file(rows_file(), 500'000);
  read_rows(*stored.rows, spec, {5});
  EXPECT_THAT(
      [&] { read_rows(*stored.rows, spec, {995}); },
      ThrowsMessage<DataLossError>(AllOf(HasSubstr(rows_file()), HasSubstr("it ends there"))));
}

// The kernel may have dropped what a file holds; then the disk is asked for all of it at once.
TEST_F(StoredRowsTest, RowsThatTheKernelHasNotAtHandAreWaitedFor) {
  write();
  const auto pooled = pooled_rows(folder.path(), spec);
  const Stored stored = stored_rows(folder.path(), spec, 0);
  const auto drop = [&] {
    const int file = ::open(rows_file().c_str(), O_RDONLY);
    ::fsync(file);
    EXPECT_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    ::close(file);
  };
  for (int round = 0; round < 2; ++round) {  // whole blocks at first, then rows of them
    drop();
    EXPECT_EQ(read_rows(*stored.rows, spec, all_rows()), read_rows(*pooled, spec, all_rows()));
    drop();
    EXPECT_EQ(read_rows(*stored.rows, spec, {5, 350, 777}),
              read_rows(*pooled, spec, {5, 350, 777}));
  }
}

TEST_F(StoredRowsTest, FilesThatAreRemovedAreReadOn) {
  write();
  const auto pooled = pooled_rows(folder.path(), spec);
  const Stored stored = stored_rows(folder.path(), spec, 0);
  std::filesystem::remove_all(folder.path() + "/db-0");
  EXPECT_EQ(read_rows(*stored.rows, spec, all_rows()), read_rows(*pooled, spec, all_rows()));
}

TEST_F(StoredRowsTest, SeveralThreadsReadWhileTheCacheChangesItsSize) {
  write();
  const auto pooled = pooled_rows(folder.path(), spec);
  const Stored stored = stored_rows(folder.path(), spec, 200'000);
  const std::vector<std::byte> wanted = read_rows(*pooled, spec, all_rows());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      std::mt19937 draw(number);
      for (int round = 0; round < 300; ++round) {
        std::vector<std::int64_t> rows(50);
        for (std::int64_t& row : rows) row = static_cast<std::int64_t>(draw() % kStoredRows);
        const auto found = read_rows(*stored.rows, spec, rows);
        for (std::size_t i = 0; i < rows.size(); ++i)
          if (std::memcmp(found.data() + i * kRowBytes,
                          wanted.data() + static_cast<std::size_t>(rows[i]) * kRowBytes,
                          kRowBytes) != 0)
            ++wrong;
      }
    });
  for (int i = 0; i < 50; ++i) stored.cache->resize(static_cast<std::size_t>(i % 5) * 100'000);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

// ---- which tables are read from disk ----

struct StoredTablesTest : StoredRowsTest {
  Graph graph;
  StoredTablesTest() { graph.variables.push_back({spec.name, {spec.dtype, spec.shape}}); }
  StoredTables tables(const std::shared_ptr<MemoryBudget>& memory) {
    const SavedRowsReader weights(folder.path());
    return {weights,
            {spec},
            graph,
            [](const VariableSpec&) { return true; },
            {memory, std::make_shared<ReadCounters>(), nullptr, "the model"}};
  }
};

TEST_F(StoredTablesTest, ATableThatFitsIsInMemoryAndOneThatDoesNotIsReadFromDisk) {
  write();
  EXPECT_EQ(tables(nullptr).rows_of(0), nullptr);
  const auto memory = MemoryBudget::make(std::size_t{64} << 20);
  EXPECT_EQ(tables(memory).rows_of(0), nullptr);
  const auto others = memory->hold(std::size_t{14} << 20, {}, "others");
  StoredTables made = tables(memory);
  ASSERT_NE(made.rows_of(0), nullptr);
  EXPECT_EQ(read_rows(*made.rows_of(0), spec, all_rows()),
            read_rows(*pooled_rows(folder.path(), spec), spec, all_rows()));
  EXPECT_GT(memory->cache_bytes(), 0u);
  EXPECT_LE(memory->cache_bytes() + memory->held_bytes() + MemoryBudget::kProcessBytes,
            memory->limit());
}

TEST_F(StoredTablesTest, WhatHasToBeInMemoryAndDoesNotFitIsRefusedWithBothNumbers) {
  const auto memory = MemoryBudget::make(std::size_t{64} << 20);
  EXPECT_THAT(
      [&] { memory->hold(std::size_t{100} << 20, {}, "the model \"m\""); },
      ThrowsMessage<ResourceExhaustedError>(AllOf(HasSubstr("the model \"m\" needs 100 MB"),
                                                  HasSubstr("--memory-limit leaves 15 MB"),
                                                  HasSubstr("Raise the limit to 149 MB or more"))));
  EXPECT_THAT([&] { MemoryBudget::make(1 << 20); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("too small")));
  EXPECT_EQ(memory->held_bytes(), 0u);
}

}  // namespace
}  // namespace cairn::serving::testing
