#include "tools/job/spec/job_threads.h"

#include <gmock/gmock.h>

#include "core/disk/disk.h"
#include "storage/manifest.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {

using testing::HasSubstr;

Job job_of(int ps, int workers) {
  Job job;
  job.cluster.ps = ps;
  job.cluster.workers = workers;
  return job;
}

TEST(JobThreads, WhatIsLeftToTheMachineIsItsShareOfTheProcessors) {
  Job job = job_of(2, 2);
  EXPECT_EQ(choose_threads(job, 16, 4, ""), LaneChoice::kShare);
  EXPECT_EQ(job.cluster.shards, 4);
  EXPECT_EQ(job.cluster.lanes, 4);
  EXPECT_EQ(threads_text(job.cluster),
            "4 shards per ps, 4 lanes per worker (16 processors for 4 tasks of this host)");
}

TEST(JobThreads, WhatTheJobSaysStays) {
  Job job = job_of(1, 1);
  job.cluster.shards = 3;
  choose_threads(job, 16, 2, "");
  EXPECT_EQ(job.cluster.shards, 3);
  EXPECT_EQ(job.cluster.lanes, 8);
  job.cluster.threads_why.clear();
  job.cluster.lanes = 1;
  EXPECT_EQ(choose_threads(job, 16, 2, ""), LaneChoice::kByJob);
  EXPECT_EQ(threads_text(job.cluster), "3 shards per ps, 1 lane per worker (as the job says)");
}

TEST(JobThreads, SynchronousStepsHaveAsManyLanesAsDivideTheBatch) {
  Job job = job_of(2, 2);
  job.strategy.consistency = "synchronous";
  job.data.batch = 64;
  // 2 workers of 3 lanes would not
  EXPECT_EQ(choose_threads(job, 12, 4, ""), LaneChoice::kForRun);
  EXPECT_EQ(job.cluster.lanes, 2);
  EXPECT_THAT(job.cluster.threads_why, HasSubstr("data.batch"));
}

// A worker by itself does not know how many others there are.
TEST(JobThreads, LanesThatTheNumberOfWorkersBoundsAreOfTheRun) {
  Job job = job_of(1, 4);
  EXPECT_EQ(choose_threads(job, 64, 5, ""), LaneChoice::kForRun);
  EXPECT_EQ(job.cluster.lanes, 4);
}

TEST(JobThreads, HybridReadsNoLanes) {
  Job job = job_of(2, 2);
  job.strategy.kind = "hybrid";
  choose_threads(job, 16, 4, "");
  EXPECT_EQ(job.cluster.lanes, 1);
  EXPECT_EQ(job.cluster.shards, 4);
}

// With another number its lanes would not find their places in the data, which would begin anew.
TEST(JobThreads, ARunThatGoesOnHasTheLanesOfItsCheckpoint) {
  const TempFolder folder;
  const std::string checkpoint = folder.path() + "/ckpt-00000001";
  storage::Manifest manifest;
  for (int i = 0; i < 6; ++i)
    manifest.datasets.push_back({.pipeline = str("train/", i), .state = ""});
  system_disk().make_folder(checkpoint);
  storage::commit(system_disk(), checkpoint, manifest);
  Job job = job_of(2, 2);
  EXPECT_EQ(choose_threads(job, 16, 4, checkpoint), LaneChoice::kForRun);
  EXPECT_EQ(job.cluster.lanes, 3);
  EXPECT_THAT(job.cluster.threads_why, HasSubstr("as in the checkpoint"));
  job = job_of(2, 2);
  job.data.visitation = "exactly_once";  // all lanes read one stream
  choose_threads(job, 16, 4, checkpoint);
  EXPECT_EQ(job.cluster.lanes, 4);
  job = job_of(2, 4);  // 6 pipelines are of no 4 workers
  choose_threads(job, 16, 8, checkpoint);
  EXPECT_EQ(job.cluster.lanes, 2);
}

}  // namespace
}  // namespace cairn::tools
