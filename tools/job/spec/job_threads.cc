#include "tools/job/spec/job_threads.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/processors.h"
#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/manifest.h"

namespace cairn::tools {
namespace {

// How many pipelines the checkpoint has of its training data, which is dealt out to the lanes: a
// position is named after its dataset and its pipeline, "train/3".
int pipelines_of(const std::string& checkpoint) {
  std::map<std::string, int> counts;
  for (const auto& position : storage::read_manifest(storage::any_disk(), checkpoint).datasets)
    ++counts[position.pipeline.substr(0, position.pipeline.rfind('/'))];
  int most = 0;
  for (const auto& [name, count] : counts) most = std::max(most, count);
  return most;
}

// 0: the data was not dealt out to lanes, or to others than these workers could have.
int lanes_of(const std::string& checkpoint, const Job& job) {
  const bool one_stream =
      job.data.visitation == "exactly_once" || job.strategy.consistency == "synchronous";
  const int pipelines = one_stream || checkpoint.empty() ? 0 : pipelines_of(checkpoint);
  return pipelines % job.cluster.workers == 0 ? pipelines / job.cluster.workers : 0;
}

}  // namespace

LaneChoice choose_threads(Job& job, std::size_t processors, std::size_t tasks,
                          const std::string& checkpoint) {
  JobCluster& cluster = job.cluster;
  if (cluster.shards != kAutoThreads && cluster.lanes != kAutoThreads) return LaneChoice::kByJob;
  const ThreadChoice shards = share_of_processors(processors, tasks, shards_bound());
  if (cluster.shards == kAutoThreads) cluster.shards = static_cast<int>(shards.threads);
  cluster.threads_why = shards.why;
  if (cluster.lanes != kAutoThreads) return LaneChoice::kByJob;
  const ThreadChoice lanes = share_of_processors(
      processors, tasks, lanes_bound(static_cast<std::size_t>(cluster.workers)));
  cluster.lanes = static_cast<int>(lanes.threads);
  cluster.threads_why = lanes.why;
  LaneChoice choice = lanes.bounded ? LaneChoice::kForRun : LaneChoice::kShare;
  if (job.strategy.kind == "hybrid") {
    cluster.lanes = 1;  // where it is not read
  } else if (const int before = lanes_of(checkpoint, job); before > 0) {
    cluster.lanes = before;
    cluster.threads_why += "; lanes as in the checkpoint";
    choice = LaneChoice::kForRun;
  } else if (job.strategy.consistency == "synchronous") {
    while (job.data.batch % (std::int64_t{cluster.workers} * cluster.lanes) != 0 &&
           cluster.lanes > 1)
      --cluster.lanes;
    if (cluster.lanes < static_cast<int>(lanes.threads)) {
      cluster.threads_why += "; fewer lanes, so that data.batch is a multiple of all of them";
      choice = LaneChoice::kForRun;
    }
  }
  return choice;
}

std::string auto_as_number(std::string text) {
  return text == "auto" ? std::to_string(kAutoThreads) : text;
}

std::string threads_text(const JobCluster& cluster) {
  return str(cluster.shards, cluster.shards == 1 ? " shard" : " shards", " per ps, ", cluster.lanes,
             cluster.lanes == 1 ? " lane" : " lanes", " per worker (",
             cluster.threads_why.empty() ? "as the job says" : cluster.threads_why, ")");
}

}  // namespace cairn::tools
