// `cairn ckpt` where one side, or both, are in a bucket.
#include <gmock/gmock.h>

#include <cstdlib>

#include "storage/any_disk.h"
#include "storage/folder_lock.h"
#include "storage/object_store/object_disk.h"
#include "tests/storage/object_store/s3_double.h"
#include "tests/tools/ckpt/checkpoint_fixture.h"

namespace cairn::tools::ckpt {
namespace {

using storage::any_disk;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

struct CkptBucket : CkptTest {
  CkptBucket() {
    ::setenv("AWS_ENDPOINT_URL", there.endpoint().c_str(), 1);
    ::setenv("AWS_ACCESS_KEY_ID", there.options().credentials.access_key.c_str(), 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", there.options().credentials.secret_key.c_str(), 1);
    static int buckets = 0;  // this process keeps a store of each
    bucket = str("s3://bucket", ++buckets);
  }
  // The folder of rows that the first database of a checkpoint lies in, with the checkpoint's path.
  std::string rows_of(const std::string& checkpoint) {
    const auto manifest = storage::read_manifest(any_disk(), checkpoint);
    return checkpoint + "/../" + storage::rows_folder_of(manifest.databases.at(0).name);
  }
  std::vector<std::string> list(const std::string& folder) { return any_disk().list(folder); }
  storage::S3Double there;
  std::string bucket;
};

TEST_F(CkptBucket, CopyThereAndBackKeepsTheRowsAndWhatDeltasShare) {
  const std::string base = make();
  make_delta(base, file("checkpoints/ckpt-00000002"));
  ASSERT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a", "--json"}), 0) << output();
  EXPECT_GT(json()[1]["files_linked"].get<int>(), 0);
  EXPECT_THAT(list(bucket + "/a"),
              ElementsAre("ckpt-00000001", "ckpt-00000002", StartsWith("rows-0000000000000005-"),
                          StartsWith("rows-0000000000000005-")));
  EXPECT_EQ(ckpt({"verify", bucket + "/a"}), 0) << output();
  EXPECT_EQ(ckpt({"copy", bucket + "/a", bucket + "/b"}), 0) << output();
  EXPECT_EQ(ckpt({"copy", bucket + "/b", file("back"), "--json"}), 0) << output();
  EXPECT_GT(json()[1]["files_linked"].get<int>(), 0);
  EXPECT_EQ(ckpt({"verify", file("back")}), 0) << output();
  EXPECT_EQ(ckpt({"diff", file("checkpoints"), file("back")}), 0) << output();
  EXPECT_EQ(ckpt({"copy", file("back"), bucket + "/a", "--json"}), 0) << output();
  EXPECT_EQ(json()[1]["files_copied"], 0) << "the names are what they were";
  EXPECT_EQ(ckpt({"verify", bucket + "/a"}), 0) << output();
}

TEST_F(CkptBucket, CopyGoesOnWhereItStopped) {
  make();
  ASSERT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a"}), 0) << output();
  any_disk().remove(rows_of(bucket + "/a/ckpt-00000001") + "/ps-0-shard-0/CURRENT");
  any_disk().remove(bucket + "/a/ckpt-00000001/MANIFEST.json");
  EXPECT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a", "--json"}), 0) << output();
  EXPECT_EQ(json()[0]["files_copied"], 1);
  EXPECT_EQ(ckpt({"verify", bucket + "/a"}), 0) << output();
}

TEST_F(CkptBucket, CopyReplacesNoObjectThatIsAnotherFile) {
  make();
  ASSERT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a"}), 0) << output();
  const std::string object = rows_of(bucket + "/a/ckpt-00000001") + "/ps-0-shard-0/CURRENT";
  any_disk().write_atomically(object, "another run's");
  any_disk().remove(bucket + "/a/ckpt-00000001/MANIFEST.json");
  EXPECT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a"}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("/ps-0-shard-0/CURRENT"), HasSubstr("another prefix")));
  EXPECT_EQ(any_disk().read(object), "another run's");
}

TEST_F(CkptBucket, AStoreWithoutConditionalWritesIsRefusedUnlessThisIsTheOnlyWriter) {
  make();
  there.set_faults([](const storage::SeenRequest& request) {
    return request.conditional ? storage::Fault::kNotImplemented : storage::Fault::kNone;
  });
  EXPECT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a"}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("501"), HasSubstr("--store-single-writer")));
  EXPECT_EQ(ckpt({"ls", bucket + "/a"}), 1) << output();
  EXPECT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a", "--store-single-writer"}), 0)
      << output();
  EXPECT_EQ(ckpt({"verify", bucket + "/a"}), 0) << output();
}

TEST_F(CkptBucket, ReshardAndImportWriteThereAndExportReadsIt) {
  const std::string source = make();
  const std::string cut = bucket + "/cut/ckpt-00000007";
  ASSERT_EQ(ckpt({"reshard", source, "--shards", "3", "--out", cut}), 0) << output();
  EXPECT_EQ(ckpt({"verify", cut}), 0) << output();
  EXPECT_EQ(ckpt({"diff", source, cut}), 0) << output();
  ASSERT_EQ(ckpt({"export", cut, file("arrays.safetensors"), "--untouched", "keys"}), 0)
      << output();
  ASSERT_EQ(ckpt({"import", file("arrays.safetensors"), "--out", bucket + "/imported"}), 0)
      << output();
  EXPECT_EQ(ckpt({"diff", source, bucket + "/imported"}), 0) << output();
  EXPECT_EQ(ckpt({"reshard", cut, "--shards", "1", "--out", cut}), 1) << "something is there";
}

// Nothing may be made in a folder "s3:" of this machine, nor in the place of what others write.
TEST_F(CkptBucket, WhatCannotBeDoneThereIsWrongUseAndSaysWhatCan) {
  make();
  ASSERT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a"}), 0) << output();
  const auto objects = there.objects();
  for (const auto& [arguments, cure] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"consolidate", bucket + "/a"}, "reshard"},
           {{"reshard", bucket + "/a", "--shards", "2"}, "--out"},
           {{"merge", bucket + "/a"}, "--out"},
           {{"repair", bucket + "/a", "--out", file("sound")}, "client of S3"},
           {{"export", bucket + "/a", bucket + "/x.npz"}, "files of this machine"},
           {{"import", bucket + "/x.npz", "--out", file("x")}, "files of this machine"}}) {
    EXPECT_EQ(ckpt(arguments), 2) << output();
    EXPECT_THAT(output(), HasSubstr(cure)) << arguments[0];
  }
  EXPECT_TRUE(there.objects() == objects);
}

TEST_F(CkptBucket, PruneRemovesRowsThatNoOtherNamesAndKeepsWhatARunMayNeed) {
  make({.id = 1, .session = 5});
  make_delta(make({.id = 2, .session = 6}), file("checkpoints/ckpt-00000003"));
  make({.id = 4, .session = 6});
  ASSERT_EQ(ckpt({"copy", file("checkpoints"), bucket + "/a"}), 0) << output();
  const std::string killed = "rows-0000000000000006-00000009";
  any_disk().write_atomically(bucket + "/a/" + killed + "/ps-0-shard-0/1.sst", "x");
  EXPECT_EQ(ckpt({"prune", bucket + "/a", "--keep-every", "3", "--dry-run", "--json"}), 0);
  EXPECT_EQ(json()["removed"].size(), 1u);
  ASSERT_EQ(ckpt({"prune", bucket + "/a", "--keep-every", "3", "--json"}), 0) << output();
  EXPECT_THAT(list(bucket + "/a"), AllOf(Contains("ckpt-00000001"), Contains(killed)))
      << "the newest of its session, and what may be under way";
  EXPECT_THAT(list(bucket + "/a"), AllOf(Not(Contains("ckpt-00000002")), SizeIs(3 + 4 + 1)))
      << "and all four folders of rows: the delta has those of the second";
  EXPECT_EQ(ckpt({"verify", bucket + "/a"}), 0) << output();
  ASSERT_EQ(ckpt({"prune", bucket + "/a", "--keep-last", "1", "--unfinished", "--json"}), 0);
  EXPECT_EQ(json()["leftovers"].size(), 3u) << output();
  EXPECT_THAT(list(bucket + "/a"),
              ElementsAre("ckpt-00000001", "ckpt-00000004", StartsWith("rows-0000000000000005-"),
                          StartsWith("rows-0000000000000006-")));
  EXPECT_EQ(ckpt({"verify", bucket + "/a"}), 0) << output();
}

TEST_F(CkptTest, PruneOfWhatIsUnfinishedWantsTheFolderForItself) {
  make();
  folder_.write("checkpoints/ckpt-00000009/ps-0-shard-0/1.sst", "x");
  {
    const auto training =
        storage::lock_folder(system_disk(), file("checkpoints"), system_clock(), Duration::zero());
    EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--unfinished"}), 1);
    EXPECT_THAT(output(), HasSubstr("once that run has ended"));
  }
  EXPECT_EQ(ckpt({"prune", file("checkpoints"), "--unfinished"}), 0) << output();
  EXPECT_THAT(system_disk().list(file("checkpoints")), ElementsAre("LOCK", "ckpt-00000001"));
}

}  // namespace
}  // namespace cairn::tools::ckpt
