// Checkpoints in a bucket, as the paths of any_disk() and RocksDB's databases find them there.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>

#include "coordinator/checkpoint/manifest_io.h"
#include "core/base/error.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/object_store/object_disk.h"
#include "storage/range_read.h"
#include "tests/storage/fixture.h"
#include "tests/storage/object_store/s3_double.h"

namespace cairn::storage {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ObjectPath, IsABucketAndANormalKey) {
  for (const auto& [path, bucket, key] :
       {std::tuple("s3://b/a/c", "b", "a/c"), std::tuple("s3://b/a/../c/", "b", "c"),
        std::tuple("s3://b//a/./c", "b", "a/c"), std::tuple("s3://b", "b", "")}) {
    EXPECT_EQ(ObjectPath::of(path).bucket, bucket) << path;
    EXPECT_EQ(ObjectPath::of(path).key, key) << path;
  }
  EXPECT_THROW(ObjectPath::of("s3://"), InvalidArgumentError);
  EXPECT_THROW(ObjectPath::of("s3://b/../c"), InvalidArgumentError) << "another bucket";
}

TEST(RowsFolder, NamesAreRecognisedAndNoOthersLeadOutOfACheckpoint) {
  const std::string name = rows_folder_name(0x1f00000000000007, 3);
  EXPECT_EQ(name, "rows-1f00000000000007-00000003");
  EXPECT_EQ(rows_folder_of("../" + name + "/ps-0-shard-0"), name);
  EXPECT_NO_THROW(verify_database_name("../" + name + "/ps-0-shard-0"));
  for (const std::string& bad : std::vector<std::string>{
           "../" + name + "/../x", "../" + name + "/", "../" + name, "../rows-1/ps",
           "../../rows-1f00000000000007-00000003/ps", "../ckpt-00000001/ps", "../" + name + "/a/b"})
    EXPECT_THROW(verify_database_name(bad), InvalidArgumentError) << bad;
}

// Each test has a bucket, and with it a store, of its own.
struct Bucket : testing::Test {
  Bucket() {
    ::setenv("AWS_ENDPOINT_URL", there.endpoint().c_str(), 1);
    ::setenv("AWS_ACCESS_KEY_ID", there.options().credentials.access_key.c_str(), 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", there.options().credentials.secret_key.c_str(), 1);
    ::unsetenv("AWS_REGION");
    ::setenv("TMPDIR", scratch.path().c_str(), 1);
    static int buckets = 0;
    folder = str("s3://bucket", ++buckets, "/checkpoints");
  }
  ~Bucket() override { ::unsetenv("TMPDIR"); }

  // As a run of this session saves it: rows beside the checkpoint, and the manifest last.
  Manifest save(std::uint64_t id, std::uint64_t session, const Manifest* base = nullptr) {
    Manifest manifest{.checkpoint = id, .global_step = static_cast<std::int64_t>(100 * id)};
    manifest.session = session;
    if (base != nullptr) {
      manifest.base = CheckpointFolder::name(base->checkpoint);
      manifest.databases = base->databases;
    }
    const std::string rows = rows_folder_name(session, id);
    DatabaseInfo database =
        group_by_database(write_database(*store, folder + "/" + rows + "/ps-0-shard-0")).at(0);
    database.rows = kSomeRows;
    database.name = "../" + rows + "/" + database.name;
    for (FileInfo& file : database.files) file.name = "../" + rows + "/" + file.name;
    manifest.databases.push_back(database);
    commit_new(any_disk(), path(id), manifest, Disk::SingleWriter::kNo);
    return manifest;
  }
  std::string path(std::uint64_t id) const { return folder + "/" + CheckpointFolder::name(id); }
  std::vector<std::uint64_t> ids() {
    std::vector<std::uint64_t> found;
    for (const CheckpointEntry& entry : CheckpointFolder(any_disk(), folder).list())
      found.push_back(entry.id);
    return found;
  }

  TempFolder scratch;
  S3Double there;
  std::unique_ptr<RowStore> store = make_rocks_row_store();
  std::string folder;
};

TEST_F(Bucket, ADatabaseIsReadWhereItLiesAndLeavesNothingOnThisMachine) {
  save(1, 7);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  const auto reader = store->open(path(1) + "/../" + rows_folder_name(7, 1) + "/ps-0-shard-0");
  std::vector<std::pair<std::string, std::string>> records;
  for (reader->seek(""); reader->valid(); reader->next())
    records.emplace_back(reader->key(), reader->value());
  EXPECT_EQ(records, some_records());
  EXPECT_THAT(verify(any_disk(), *store, path(1)).problems, IsEmpty());
  EXPECT_THROW(store->open(folder + "/nowhere"), NotFoundError);
}

// As of a long chain of deltas, all of whose databases are read at once.
TEST_F(Bucket, DatabasesAreReadInTurnsHoweverManyAreOpen) {
  save(1, 7);
  std::vector<std::unique_ptr<DatabaseReader>> readers(40);
  for (auto& reader : readers) {
    reader = store->open(path(1) + "/../" + rows_folder_name(7, 1) + "/ps-0-shard-0");
    reader->will_read("", std::string(1, '\xff'));
    reader->seek("");
  }
  for (const auto& record : some_records())
    for (const auto& reader : readers) {
      ASSERT_TRUE(reader->valid());
      ASSERT_EQ(record, std::pair(std::string(reader->key()), std::string(reader->value())));
      reader->next();
    }
  for (const auto& reader : readers) EXPECT_FALSE(reader->valid());
}

TEST_F(Bucket, AnObjectThatWasChangedIsFoundAndNamed) {
  const Manifest manifest = save(1, 7);
  const auto& files = manifest.databases.at(0).files;
  const FileInfo& file = *std::find_if(
      files.begin(), files.end(), [](const FileInfo& each) { return each.name.ends_with(".sst"); });
  std::string bytes = any_disk().read(path(1) + "/" + file.name);
  bytes[bytes.size() / 2] ^= 1;
  any_disk().write_atomically(path(1) + "/" + file.name, bytes);
  EXPECT_THAT(verify(any_disk(), *store, path(1)).problems, Contains(HasSubstr(file.name)));
}

// A restore must not take a store that is away for a checkpoint that is damaged.
TEST_F(Bucket, AStoreThatIsAwayIsNoDamage) {
  const auto writer = store->create(folder + "/large");
  for (std::int64_t row = 0; row < 9; ++row)
    writer->put(encode(RecordKey{"a", RecordKind::kRows, row}), std::string(1 << 20, 'x'));
  writer->finish();
  const auto reader = store->open(folder + "/large");  // which reads the end of its file
  there.set_faults([](const SeenRequest&) { return Fault::kNotImplemented; });
  EXPECT_THROW(reader->seek(""), UnknownError);
  there.set_faults(nullptr);
  const auto again = store->open(folder + "/large");
  std::size_t records = 0;
  for (again->seek(""); again->valid(); again->next()) ++records;
  EXPECT_EQ(records, 9u);
}

TEST_F(Bucket, OfTwoRunsThatCommitAtOnceOneDoesAndTheOtherNamesIt) {
  any_disk().write_atomically(folder + "/x", "");  // the bucket is known to this process
  std::promise<void> both;
  const std::shared_future<void> begin = both.get_future().share();
  const auto commit_of = [&](std::uint64_t session) -> std::string {
    Manifest manifest{.checkpoint = 1, .global_step = 40};
    manifest.session = session;
    begin.wait();
    try {
      commit_new(any_disk(), path(1), manifest, Disk::SingleWriter::kNo);
    } catch (const FailedPreconditionError& error) {
      return error.what();
    }
    return "";
  };
  auto one = std::async(std::launch::async, commit_of, 1111);
  auto two = std::async(std::launch::async, commit_of, 2222);
  both.set_value();
  const std::string said_one = one.get(), said_two = two.get();
  const std::uint64_t winner = read_manifest(any_disk(), path(1)).session;
  EXPECT_NE(said_one.empty(), said_two.empty());
  EXPECT_THAT(said_one + said_two,
              AllOf(HasSubstr("another run has saved " + path(1)),
                    HasSubstr(str("its session is ", winner)), HasSubstr("at step 40")));
}

TEST_F(Bucket, AStoreWithoutConditionalWritesIsRefusedUnlessThisRunIsTheOnlyOne) {
  there.set_faults([](const SeenRequest& request) {
    return request.conditional ? Fault::kNotImplemented : Fault::kNone;
  });
  try {
    save(1, 7);
    FAIL() << "it was saved";
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("501"), HasSubstr("--store-single-writer")));
  }
  EXPECT_THAT(ids(), IsEmpty());
  Manifest manifest{.checkpoint = 1};
  commit_new(any_disk(), path(1), manifest, Disk::SingleWriter::kYes);
  EXPECT_THAT(ids(), ElementsAre(1));
  EXPECT_THROW(commit_new(any_disk(), path(1), manifest, Disk::SingleWriter::kYes),
               FailedPreconditionError)
      << "what is there is not replaced all the same";
}

TEST_F(Bucket, PruningKeepsRowsThatAKeptDeltaNamesAndNoOthersOfTheRun) {
  const Manifest full = save(1, 7), delta = save(2, 7, &full);
  save(3, 7);
  save(4, 8);                                                              // another run's
  write_database(*store, folder + "/" + rows_folder_name(7, 99) + "/ps");  // a save that failed
  write_database(*store, folder + "/" + rows_folder_name(8, 99) + "/ps");  // another's, under way
  CheckpointFolder checkpoints(any_disk(), folder);

  checkpoints.prune(2, {.session = 7, .ancestors = {}});
  EXPECT_THAT(ids(), ElementsAre(2, 3, 4));
  EXPECT_THAT(verify(any_disk(), *store, path(2)).problems, IsEmpty()) << "its base's rows stay";
  const auto rows = any_disk().list(folder);
  EXPECT_THAT(rows, Not(Contains(rows_folder_name(7, 99))));
  EXPECT_THAT(rows, Contains(rows_folder_name(8, 99)));

  checkpoints.prune(1, {.session = 7, .ancestors = {}});
  EXPECT_THAT(ids(), ElementsAre(3, 4));
  EXPECT_THAT(any_disk().list(folder), Not(Contains(rows_folder_name(7, 1))));
  for (const std::uint64_t id : {3, 4})
    EXPECT_THAT(verify(any_disk(), *store, path(id)).problems, IsEmpty());
}

TEST_F(Bucket, WhatAPsLeavesThatIsKilledAsItUploadsGoesWithTheNextSaveOfItsRun) {
  const TempFolder files;
  const std::string large = files.path() + "/large";
  system_disk().write_atomically(large, std::string(std::size_t{20} << 20, 'x'));
  there.set_faults([](const SeenRequest& request) {
    const bool part = request.target.find("partNumber") != std::string::npos;
    return part || request.method == "DELETE" ? Fault::kNotImplemented : Fault::kNone;
  });
  for (const std::uint64_t session : {7, 8}) {
    const ObjectPath at = ObjectPath::of(folder + "/" + rows_folder_name(session, 3) + "/ps/1.sst");
    EXPECT_THROW(object_store_of(at.bucket)->put_file(at.key, large), UnknownError);
  }
  there.set_faults(nullptr);
  EXPECT_EQ(there.uploads(), 2u);
  save(1, 7);
  CheckpointFolder(any_disk(), folder).prune(1, {.session = 7, .ancestors = {}});
  EXPECT_EQ(there.uploads(), 1u) << "another run's may be under way";
}

TEST_F(Bucket, NothingIsPrunedWhereAManifestCannotBeRead) {
  const Manifest full = save(1, 7);
  save(2, 7, &full);
  save(3, 7);
  any_disk().write_atomically(path(2) + "/" + kManifestFile, "{}");
  EXPECT_THAT(CheckpointFolder(any_disk(), folder).prune(1, {.session = 7, .ancestors = {}}),
              IsEmpty());
  EXPECT_THAT(any_disk().list(folder), Contains(rows_folder_name(7, 1)));
}

TEST_F(Bucket, ASaveThatFailsLeavesNoRowsUnlessItsCheckpointIsThereAllTheSame) {
  save(1, 7);
  const std::string rows = folder + "/" + rows_folder_name(8, 1);
  write_database(*store, rows + "/ps-0-shard-0");
  sweep(any_disk(), path(1), rows, 8);
  EXPECT_THAT(any_disk().list(rows), IsEmpty());
  EXPECT_THAT(ids(), ElementsAre(1)) << "the other run's checkpoint of that number";

  // The manifest was written, and the store's answer lost.
  sweep(any_disk(), path(1), folder + "/" + rows_folder_name(7, 1), 7);
  EXPECT_THAT(verify(any_disk(), *store, path(1)).problems, IsEmpty());
}

TEST_F(Bucket, RowsStayWhereTheStoreDoesNotSayWhetherACheckpointIsMadeOfThem) {
  save(1, 7);
  there.set_faults([](const SeenRequest& request) {
    return request.target.find("MANIFEST.json") == std::string::npos ? Fault::kNone
                                                                     : Fault::kNotImplemented;
  });
  sweep(any_disk(), path(1), folder + "/" + rows_folder_name(7, 1), 7);
  there.set_faults(nullptr);
  EXPECT_THAT(verify(any_disk(), *store, path(1)).problems, IsEmpty());
}

TEST_F(Bucket, WithoutCredentialsTheVariablesAreNamed) {
  ::unsetenv("AWS_SECRET_ACCESS_KEY");
  try {
    any_disk().exists(folder + "/x");
    FAIL() << "it was asked";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  }
}

}  // namespace
}  // namespace cairn::storage
