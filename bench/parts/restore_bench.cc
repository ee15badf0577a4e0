// How fast a checkpoint's rows come back, beside the disk's own rate:
//     cairn-bench-restore FOLDER [MB] [passes]
// Writes checkpoints below FOLDER as three shards would, of five tables of 32 floats with Adagrad:
// dense, hashed in blocks that overlap, and hashed in the order of rows. Prints median times of
// restoring each onto one shard and of `ckpt verify`, with the files in the page cache and without,
// and how many bytes are read to restore it onto 1, 2, 5 and 8 shards.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/base/program.h"
#include "core/base/random.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/shard_service.h"
#include "storage/checkpoint_folder.h"

namespace cairn {
namespace {

constexpr std::int64_t kDim = 32, kTables = 5, kSavers = 3;
constexpr std::int64_t kHashedRows = std::int64_t{1} << 40;
const UpdateRule kRule{RuleKind::kAdagrad, {0.1f, 1e-7f}};

enum class Kind { kDense, kOverlapping, kInOrder };

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

std::uint64_t own_number(const char* file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  std::uint64_t value = 0;
  while (in >> word)
    if (word == key && in >> value) return value;
  return 0;
}
double resident_mb() {
  return static_cast<double>(own_number("/proc/self/status", "VmRSS:")) / 1024;
}

std::shared_ptr<const VariableSpec> table_spec(std::int64_t table, Kind kind, std::int64_t rows) {
  VariableSpec spec{.name = str("table", table),
                    .shape = {kind == Kind::kDense ? rows : kHashedRows, kDim},
                    .initializer = Initializer::uniform(-0.05f, 0.05f)};
  spec.hashed = kind != Kind::kDense;
  return std::make_shared<const VariableSpec>(std::move(spec));
}

// ---- writing ----

// Five of six rows of a dense part, or as many ids from all over a hashed one.
std::vector<std::int64_t> touched(Kind kind, RowRange part, std::int64_t rows, Random& random) {
  std::vector<std::int64_t> all;
  if (kind == Kind::kDense) {
    for (std::int64_t row = part.begin; row < part.end; ++row)
      if (random.below(6) != 0) all.push_back(row);
    return all;
  }
  for (std::int64_t i = 0; i < rows / kSavers * 5 / 6; ++i)
    all.push_back(part.begin +
                  static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(part.size()))));
  if (kind == Kind::kInOrder) std::sort(all.begin(), all.end());
  return all;
}

storage::StoredRows block_of(std::vector<std::int64_t> rows, Random& random) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  storage::StoredRows out{.rule = kRule.kind, .slots = 1, .dim = kDim, .first_row = rows.front()};
  for (const std::int64_t row : rows)
    out.offsets.push_back(static_cast<std::uint64_t>(row - out.first_row));
  out.data.resize(rows.size() * out.row_bytes());
  for (std::size_t at = 0; at + 8 <= out.data.size(); at += 8) {
    const std::uint64_t bits = random.bits() & 0x3fffffff3fffffffu;
    std::memcpy(out.data.data() + at, &bits, 8);
  }
  return out;
}

std::uint64_t write_part(storage::DatabaseWriter& writer, std::int64_t table, Kind kind,
                         std::int64_t rows, std::int64_t saver) {
  Random random(static_cast<std::uint64_t>(100 * table + saver));
  const auto spec = table_spec(table, kind, rows);
  const RowRange part = split_rows(spec->rows(), kSavers)[static_cast<std::size_t>(saver)];
  const std::string key =
      storage::encode(storage::RecordKey{spec->name, storage::RecordKind::kTable, part.begin});
  const storage::TableRecord record{
      spec->name,      spec->dtype, spec->shape, kRule,
      {"accumulator"}, part,        17,          kind == Kind::kOverlapping};
  writer.put(key, storage::encode(key, record));
  const auto all = touched(kind, part, rows, random);
  const std::size_t a_block = storage::kBlockBytes / (2 * kDim * sizeof(float));
  std::vector<std::pair<std::int64_t, std::size_t>> order;  // least row, first place
  for (std::size_t at = 0; at < all.size(); at += a_block)
    order.emplace_back(*std::min_element(all.begin() + static_cast<std::ptrdiff_t>(at),
                                         all.begin() + static_cast<std::ptrdiff_t>(
                                                           std::min(all.size(), at + a_block))),
                       at);
  std::sort(order.begin(), order.end());
  std::uint64_t count = 0;
  for (const auto& [least, at] : order) {
    const std::size_t end = std::min(all.size(), at + a_block);
    const storage::StoredRows rows_of = block_of({all.begin() + static_cast<std::ptrdiff_t>(at),
                                                  all.begin() + static_cast<std::ptrdiff_t>(end)},
                                                 random);
    const std::string to =
        storage::encode(storage::RecordKey{spec->name, storage::RecordKind::kRows, least});
    writer.put(to, storage::encode(to, rows_of));
    count += static_cast<std::uint64_t>(rows_of.rows());
  }
  return count;
}

void write_checkpoint(storage::RowStore& store, const std::string& folder, Kind kind,
                      std::int64_t rows) {
  std::filesystem::create_directories(folder);
  storage::Manifest manifest{.checkpoint = 1};
  for (std::int64_t saver = 0; saver < kSavers; ++saver) {
    auto writer = store.create(folder + str("/ps-", saver, "-shard-0"));
    std::uint64_t count = 0;
    for (std::int64_t table = 0; table < kTables; ++table)
      count += write_part(*writer, table, kind, rows, saver);
    manifest.databases.push_back(storage::group_by_database(writer->finish()).at(0));
    manifest.databases.back().rows = count;
  }
  storage::commit(system_disk(), folder, manifest);
}

// ---- measuring ----

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::uint64_t bytes_of(const std::string& folder) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files_of(folder)) bytes += std::filesystem::file_size(file);
  return bytes;
}

void forget_cache(const std::string& folder) {
  for (const std::string& file : files_of(folder)) {
    const int fd = ::open(file.c_str(), O_RDONLY);
    ::fdatasync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

// All files, a megabyte at a time, as the kernel reads ahead by itself.
void read_files(const std::string& folder) {
  std::vector<char> buffer(1 << 20);
  for (const std::string& file : files_of(folder)) {
    const int fd = ::open(file.c_str(), O_RDONLY);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    while (::read(fd, buffer.data(), buffer.size()) > 0) {
    }
    ::close(fd);
  }
}

void measure(const char* what, std::uint64_t bytes, int passes, const std::function<void()>& before,
             const std::function<double()>& run) {
  std::vector<double> seconds;
  for (int pass = 0; pass < passes; ++pass) {
    before();
    seconds.push_back(run());
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  std::printf("  %-40s %6.2f s  %5.2f GB/s  (%.2f to %.2f s)\n", what, median,
              static_cast<double>(bytes) / 1e9 / median, seconds.front(), seconds.back());
  std::fflush(stdout);
}

double timed(const std::function<void()>& work) {
  const double begin = now();
  work();
  return now() - begin;
}

// A shard with part `part` of `parts` of each table, and what it needs.
struct Restoring {
  Restoring(storage::RowStore& store, Kind kind, std::int64_t rows, std::int64_t parts,
            std::int64_t part)
      : reactor(rpc::make_reactor()),
        offload(make_thread_offload(1)),
        host(std::make_shared<ps::ShardHost>(*reactor, ps::ShardOptions{}, *offload, 0, 1, store,
                                             "ps-0-shard-0")) {
    std::vector<ps::TableConfig> tables;
    for (std::int64_t table = 0; table < kTables; ++table) {
      const auto spec = table_spec(table, kind, rows);
      const RowRange range = split_rows(spec->rows(), parts)[static_cast<std::size_t>(part)];
      tables.push_back({static_cast<VariableId>(table),
                        spec,
                        kRule,
                        {{static_cast<std::uint32_t>(part), range}}});
    }
    host->shard.configure({7, 1, 42, std::move(tables)});
  }
  ps::RestoredRows restore(const std::string& folder) {
    std::vector<std::string> databases;
    for (std::int64_t saver = 0; saver < kSavers; ++saver)
      databases.push_back(str("ps-", saver, "-shard-0"));
    return reactor->wait(ps::restore_shard(host, folder, databases, {}));
  }
  std::unique_ptr<rpc::Reactor> reactor;
  std::unique_ptr<Offload> offload;
  std::shared_ptr<ps::ShardHost> host;
};

void measure_kind(const char* name, Kind kind, const std::string& folder, std::int64_t rows,
                  int passes) {
  const auto store = storage::make_rocks_row_store();
  write_checkpoint(*store, folder, kind, rows);
  const std::uint64_t bytes = bytes_of(folder);
  std::printf("%s: %.2f GB\n", name, static_cast<double>(bytes) / 1e9);
  const auto cold = [&] { forget_cache(folder); };
  const auto warm = [&] { read_files(folder); };
  const auto reading = [&] { return timed([&] { read_files(folder); }); };
  double grown = 0;
  const auto restoring = [&] {
    Restoring one(*store, kind, rows, 1, 0);
    const double before = resident_mb();
    const double seconds = timed([&] { one.restore(folder); });
    grown = resident_mb() - before;
    return seconds;
  };
  const auto again = [&] {
    Restoring one(*store, kind, rows, 1, 0);
    one.restore(folder);
    return timed([&] { one.restore(folder); });
  };
  double verified = 0;
  const auto verifying = [&] {
    const double before = resident_mb();
    const double seconds = timed([&] {
      const auto report = storage::verify(system_disk(), *store, folder);
      if (!report.clean()) std::printf("  %s\n", report.problems.front().c_str());
    });
    verified = resident_mb() - before;
    return seconds;
  };
  measure("the files alone, cold", bytes, passes, cold, reading);
  measure("the files alone, warm", bytes, passes, warm, reading);
  measure("restore onto 1, cold", bytes, passes, cold, restoring);
  measure("restore onto 1, warm", bytes, passes, warm, restoring);
  std::printf("  %-40s %6.0f MB\n", "memory that it took", grown);
  measure("restore over rows, warm", bytes, passes, warm, again);
  measure("verify, cold", bytes, passes, cold, verifying);
  measure("verify, warm", bytes, passes, warm, verifying);
  std::printf("  %-40s %6.0f MB\n", "memory that it left", verified);
  for (const std::int64_t parts : {1, 2, 5, 8}) {
    std::uint64_t asked = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      Restoring one(*store, kind, rows, parts, part);
#ifdef CAIRN_BENCH_BEFORE
      const std::uint64_t before = own_number("/proc/self/io", "rchar:");
      one.restore(folder);
      asked += own_number("/proc/self/io", "rchar:") - before;
#else
      asked += one.restore(folder).read_bytes;
#endif
    }
    std::printf("  read by %lld shards in all %26.3f of its bytes\n", static_cast<long long>(parts),
                static_cast<double>(asked) / static_cast<double>(bytes));
  }
  std::filesystem::remove_all(folder);
}

int bench(int argc, char** argv) {
  if (argc < 2) {
    std::printf("cairn-bench-restore FOLDER [MB] [passes] [kind: 0 dense, 1 hashed, 2 in order]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const std::int64_t megabytes = argc > 2 ? std::stol(argv[2]) : 2000;
  const int passes = argc > 3 ? std::stoi(argv[3]) : 3;
  const int only = argc > 4 ? std::stoi(argv[4]) : -1;
  const std::int64_t rows = megabytes * 1'000'000 / 256 / kTables * 6 / 5;
  if (only < 0 || only == 0) measure_kind("dense", Kind::kDense, folder + "/dense", rows, passes);
  if (only < 0 || only == 1)
    measure_kind("hashed, blocks overlap", Kind::kOverlapping, folder + "/hashed", rows, passes);
#ifndef CAIRN_BENCH_BEFORE
  if (only < 0 || only == 2)
    measure_kind("hashed, in order", Kind::kInOrder, folder + "/ordered", rows, passes);
#endif
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-restore", [&] { return cairn::bench(argc, argv); });
}
