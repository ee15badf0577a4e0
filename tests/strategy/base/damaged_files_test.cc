// Every file of a checkpoint, damaged in every way that a disk or a copy damages files: verify()
// names the file, and a restore gives the right rows or names the checkpoint and the newest sound
// one. Never other rows.
//
// There are three checkpoints: two full ones, and a delta that goes back to the second, whose files
// it has as links, or, as in a bucket, names where they lie.
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <set>

#include "coordinator/checkpoint/manifest_io.h"
#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "core/exec/local_runtime.h"
#include "storage/checkpoint_folder.h"
#include "strategy/base/local_checkpoint.h"
#include "tests/effort.h"
#include "tests/storage/fixture.h"

namespace cairn {
namespace {

using storage::Manifest;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 1000, kDim = 4;

enum class Layout { kFiles, kBucket };

class DamagedFiles : public ::testing::TestWithParam<Layout> {
 protected:
  DamagedFiles() {
    memory_.set_links(false);
    disk_ = is_bucket() ? static_cast<Disk*>(&memory_) : &system_disk();
    store_ =
        is_bucket() ? storage::make_memory_row_store(memory_) : storage::make_rocks_row_store();
    disk_->make_folder(folder_);
    save(1, "");
    save(2, "");
    save(3, path(2));
    manifest_ = storage::read_manifest(*disk_, path(3));
  }

  bool is_bucket() const { return GetParam() == Layout::kBucket; }
  std::string path(std::uint64_t id) const {
    return folder_ + "/" + storage::CheckpointFolder::name(id);
  }

  // A delta has rows of "a" alone, a tenth of them.
  void save(std::uint64_t id, const std::string& base) {
    disk_->make_folder(path(id));
    Manifest made{.checkpoint = id, .session = 7};
    for (const char* name : {"a", "b"})
      made.variables.push_back({name,
                                DType::kFloat32,
                                {kRows, kDim},
                                true,
                                {RuleKind::kAdagrad, {0.1f}},
                                {"accumulator"},
                                {{0, kRows}}});
    if (!base.empty()) {
      made.base = base.substr(base.rfind('/') + 1);
      made.databases = link_databases(*disk_, base, path(id));
    }
    const std::string rows = rows_path(*disk_, path(id), 7, id);
    auto own = storage::group_by_database(write_rows(rows + "/ps-0-shard-0", !base.empty()));
    own.at(0).rows = base.empty() ? 2 * kRows : kRows / 10;
    name_from(path(id), rows, own.at(0));
    made.databases.push_back(own.at(0));
    storage::commit_new(*disk_, path(id), made, Disk::SingleWriter::kYes);
  }

  std::vector<storage::FileInfo> write_rows(const std::string& to, bool is_delta) {
    const auto writer = store_->create(to);
    const auto put = [&](const storage::RecordKey& key, const auto& record) {
      const std::string bytes = storage::encode(key);
      writer->put(bytes, storage::encode(bytes, record));
    };
    for (const char* name : {"a", "b"}) {
      put({name, storage::RecordKind::kTable, 0}, storage::some_table(name, {0, kRows}));
      if (is_delta && name[0] == 'b') continue;
      for (std::int64_t first = 0; first < kRows; first += 100) {
        storage::StoredRows rows = storage::some_rows(first, offsets(is_delta ? 10 : 1));
        auto* values = reinterpret_cast<float*>(rows.data.data());
        for (std::size_t i = 0; is_delta && i < rows.offsets.size() * 2 * kDim; ++i)
          values[i] += 0.5f;
        put({name, storage::RecordKind::kRows, first}, rows);
      }
    }
    return writer->finish();
  }
  static std::vector<std::uint64_t> offsets(std::uint64_t step) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < 100; i += step) all.push_back(i);
    return all;
  }

  // ---- what is found ----

  // Errors  those of the restore. Rows that are not those that were saved are a failure.
  void restore(const std::string& what) {
    LocalRuntime runtime;
    std::vector<Variable> made;
    for (const char* name : {"a", "b"})
      made.push_back(runtime.create_variable(
          {.name = name, .shape = {kRows, kDim}, .initializer = Initializer::zeros()}));
    restore_local(runtime, {*disk_, store_}, path(3)).status.expect_partial();
    for (const Variable& variable : made) {
      const Tensor value = variable.read().eval();
      const auto values = value.values<float>();
      for (std::int64_t row = 0; row < kRows; ++row)
        for (std::int64_t j = 0; j < kDim; ++j) {
          const bool newer = variable.name() == "a" && row % 10 == 0;
          ASSERT_EQ(values[static_cast<std::size_t>(row * kDim + j)],
                    static_cast<float>(row) + 0.125f * static_cast<float>(j) + (newer ? 0.5f : 0))
              << what << ": row " << row << " of " << variable.name() << " is another one";
        }
    }
  }

  void expect_found(const std::string& file, const std::string& what, std::uint64_t sound) {
    SCOPED_TRACE(file + ", " + what);
    ++damaged_;
    const auto report = storage::verify(*disk_, *store_, path(3));
    EXPECT_THAT(report.problems, Contains(HasSubstr(file)));
    try {
      restore(what);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(sound == 1 ? "/" + rows_name(2) : folder_));
      EXPECT_THAT(error.what(), HasSubstr("sound: " + path(sound)));
      ++refused_;
    }
  }
  // By what a message of a file of that checkpoint names it.
  std::string rows_name(std::uint64_t id) const {
    const std::string own = storage::CheckpointFolder::name(id);
    return is_bucket() ? storage::rows_folder_name(7, id) : "ckpt-00000003/" + own;
  }

  // ---- the damage ----

  std::string read(const std::string& file) const { return disk_->read(path(3) + "/" + file); }
  // In place, as damage comes: what is linked is damaged under all of its names.
  void put(const std::string& file, const std::string& bytes) {
    const std::string to = path(3) + "/" + file;
    if (!is_bucket()) {
      std::ofstream(to, std::ios::binary | std::ios::trunc) << bytes;
      return;
    }
    memory_.write_atomically(normal(to), bytes);
  }
  static std::string normal(const std::string& path) {
    const std::size_t up = path.find("/ckpt-00000003/../");
    return up == std::string::npos ? path : path.substr(0, up) + path.substr(up + 17);
  }

  // `classes` places from the beginning to the end, and the last bytes one by one: a sorted file
  // ends with its index, its properties and a footer of 53 bytes, a manifest with its checksum.
  void damage(const std::string& file, std::size_t classes, std::uint64_t sound) {
    const std::string whole = read(file);
    std::set<std::size_t> places;
    for (std::size_t i = 0; i < classes; ++i) places.insert(whole.size() * i / classes);
    for (std::size_t i = 1; i <= std::min<std::size_t>(whole.size(), 64); i += 6)
      places.insert(whole.size() - i);
    for (const std::size_t at : places) {
      if (whole.empty()) break;
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x24);
      put(file, bytes);
      expect_found(file, str("byte ", at, " of ", whole.size(), " changed"), sound);
    }
    for (const std::size_t size : std::set{std::size_t{0}, whole.size() / 3, whole.size() / 2,
                                           whole.size() - std::min<std::size_t>(whole.size(), 8),
                                           whole.size() - std::min<std::size_t>(whole.size(), 1)}) {
      if (size == whole.size()) continue;
      put(file, whole.substr(0, size));
      expect_found(file, str("cut to ", size, " of ", whole.size(), " bytes"), sound);
    }
    put(file, whole + "x");
    expect_found(file, "a byte longer", sound);
    put(file, whole);
  }

  MemoryDisk memory_;
  storage::TempFolder temporary_;
  std::string folder_ = is_bucket() ? "/c" : temporary_.path();
  Disk* disk_ = nullptr;
  std::shared_ptr<storage::RowStore> store_;
  Manifest manifest_;
  int damaged_ = 0, refused_ = 0;
};
INSTANTIATE_TEST_SUITE_P(In, DamagedFiles, ::testing::Values(Layout::kFiles, Layout::kBucket),
                         [](const auto& info) {
                           return info.param == Layout::kFiles ? "Folders" : "Buckets";
                         });

TEST_P(DamagedFiles, OfSoundCheckpointsThereAreNone) {
  EXPECT_THAT(storage::verify(*disk_, *store_, path(3)).problems, ::testing::IsEmpty());
  restore("nothing is damaged");
}

// The checkpoint before this one is the second, which is damaged where they share the file.
TEST_P(DamagedFiles, OfRowsAreNamedAndTheNewestSoundCheckpointIsOffered) {
  for (std::size_t i = 0; i < manifest_.databases.size(); ++i)
    for (const storage::FileInfo& file : manifest_.databases[i].files)
      damage(file.name, static_cast<std::size_t>(effort(20)), i == 0 ? 1 : 2);
  EXPECT_GT(refused_, damaged_ / 2) << "most damage is met by a restore";
}

TEST_P(DamagedFiles, ThatAreMissingAreNamed) {
  for (std::size_t i = 0; i < manifest_.databases.size(); ++i)
    for (const storage::FileInfo& file : manifest_.databases[i].files) {
      const std::string at = normal(path(3) + "/" + file.name), whole = disk_->read(at);
      disk_->remove(at);
      SCOPED_TRACE(file.name);
      EXPECT_THAT(storage::verify(*disk_, *store_, path(3)).problems,
                  Contains(HasSubstr(file.name)));
      try {
        restore("missing");
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("sound: " + path(is_bucket() && i == 0 ? 1 : 2)));
      }
      disk_->write_atomically(at, whole);
    }
}

TEST_P(DamagedFiles, OfManifestsAreNamedAndTheCheckpointBeforeIsOffered) {
  damage(storage::kManifestFile, static_cast<std::size_t>(effort(60)), 2);
  EXPECT_EQ(refused_, damaged_) << "a restore reads the whole manifest";
}

}  // namespace
}  // namespace cairn
