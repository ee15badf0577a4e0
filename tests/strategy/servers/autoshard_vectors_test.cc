// autoshard.json and dataset_policy.json: which part of the data each of several workers reads, and
// how batches are cut among replicas.
#include <fstream>

#include "data/dataset/auto_shard.h"
#include "data/dataset/dataset_iterator.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "tests/storage/fixture.h"
#include "tests/strategy/in_sync_kinds.h"
#include "tests/strategy/vector_cases.h"

namespace cairn {
namespace {

using testing::fail_unknown;
using testing::refused;

AutoShardPolicy policy_of(const Json& in) {
  const std::string name = in.at("policy");
  for (const AutoShardPolicy each :
       {AutoShardPolicy::kAuto, AutoShardPolicy::kFile, AutoShardPolicy::kData,
        AutoShardPolicy::kOff, AutoShardPolicy::kHint})
    if (name_of(each) == name) return each;
  throw InvalidArgumentError("no test knows the policy " + name);
}

Json numbers_of(const Tensor& tensor) {
  if (tensor.shape().rank() == 0) return tensor.item<std::int64_t>();
  const auto values = tensor.values<std::int64_t>();
  return std::vector<std::int64_t>(values.begin(), values.end());
}

Json read(const Dataset& dataset) {
  Json all = Json::array();
  const auto iterator = open(dataset);
  while (auto element = iterator->next()) all.push_back(numbers_of(element->front()));
  return all;
}

// The elements of a worker's pipeline, as many a step as it has replicas. Where the data ends
// between two of them, the others come away empty-handed.
Json in_steps(const Json& elements, std::size_t replicas) {
  Json steps = Json::array();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (i % replicas == 0) steps.push_back(Json::array());
    steps.back().push_back(elements[i]);
  }
  if (!steps.empty())
    while (steps.back().size() < replicas) steps.back().push_back(Json::array());
  return steps;
}

// Numbers from 0 on, one a line, through files of so many each.
class NumberedFiles {
 public:
  explicit NumberedFiles(const Json& counts) {
    std::int64_t next = 0;
    for (const std::int64_t count : counts.get<std::vector<std::int64_t>>()) {
      std::string lines;
      for (std::int64_t i = 0; i < count; ++i) lines += std::to_string(next++) + "\n";
      paths_.push_back(folder_.path() + "/" + std::to_string(paths_.size()));
      std::ofstream(paths_.back()) << lines;
    }
  }
  Dataset dataset() const {
    // A case has a file without a line, which the reference passes over.
    return Dataset::csv(paths_, {.columns = {{.name = "value", .dtype = DType::kInt64}}},
                        {.empty_files = EmptyFiles::kSkip});
  }

 private:
  storage::TempFolder folder_;
  std::vector<std::string> paths_;
};

// "list" and "slices_flat_map" read file after file, the others two files at once. TFRecord and
// text files are dealt out alike, and stand here as lines.
Dataset pipeline_of(const Json& in, const NumberedFiles& files) {
  const std::string reader = in.at("reader"), pipeline = in.at("pipeline");
  if (reader != "tfr" && reader != "txt")
    throw InvalidArgumentError("no test knows the reader " + reader);
  if (pipeline == "list" || pipeline == "slices_flat_map") return files.dataset();
  if (pipeline == "slices_interleave" || pipeline == "list_files")
    return files.dataset().interleave(2);
  throw InvalidArgumentError("no test knows the pipeline " + pipeline);
}

// Cairn accepts two cases that the reference refuses (docs/differences.md): too few files under
// AUTO, which falls back, and fewer elements than workers under DATA.
void expect_shards(const Json& test, const Dataset& dataset) {
  const Json &in = test.at("in"), &out = test.at("out");
  const std::int64_t workers = in.at("workers");
  const AutoShardPolicy policy = policy_of(in);
  const bool hintless = policy == AutoShardPolicy::kHint;
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    const auto shard = [&] { return auto_shard(dataset, policy, workers, worker); };
    if (hintless) {
      EXPECT_THROW(shard(), InvalidArgumentError);
    } else if (!refused(out)) {
      EXPECT_EQ(read(shard().dataset), out.at("ok").at(static_cast<std::size_t>(worker)));
    } else if (policy == AutoShardPolicy::kFile && out.at("error") == "NotFoundError") {
      EXPECT_THROW(shard(), NotFoundError);
    } else if (policy == AutoShardPolicy::kFile) {
      EXPECT_THROW(shard(), InvalidArgumentError);
    } else if (out.at("error") == "InvalidArgumentError") {
      EXPECT_EQ(shard().applied, AutoShardPolicy::kData);
      EXPECT_EQ(read(shard().dataset), read(dataset.shard(workers, worker)));
    } else {
      fail_unknown(test, "the error");
    }
  }
}

void shards_files(const Json& test) {
  const NumberedFiles files(test.at("in").at("file_counts"));
  expect_shards(test, pipeline_of(test.at("in"), files));
}

void shards_a_range(const Json& test) {
  const Dataset range = Dataset::range(test.at("in").at("range"));
  const std::int64_t batch = test.at("in").at("batch");
  expect_shards(test, batch == 0 ? range : range.batch(batch));
}

void replaces_the_hint(const Json& test) {
  const Json& in = test.at("in");
  const bool before = in.at("hint") == "before batch";
  if (!before && in.at("hint") != "after batch") return fail_unknown(test, "the hint's place");
  const Dataset range = Dataset::range(in.at("range"));
  const Dataset hinted =
      before ? range.shard_hint().batch(in.at("batch")) : range.batch(in.at("batch")).shard_hint();
  const std::int64_t workers = in.at("workers");
  Json got = Json::array();
  for (std::int64_t worker = 0; worker < workers; ++worker)
    got.push_back(read(auto_shard(hinted, AutoShardPolicy::kHint, workers, worker).dataset));
  EXPECT_EQ(got, test.at("out").at("ok"));
}

void sizes_a_worker_cuts_by(const Json& test) {
  const Json& in = test.at("in");
  const std::int64_t workers = in.at("workers");
  Json got = Json::array();
  for (std::int64_t worker = 0; worker < workers; ++worker)
    got.push_back(batch_sizes_for_worker(in.at("global_batch"),
                                         {workers, worker, in.at("replicas_per_worker")}));
  EXPECT_EQ(got, test.at("out").at("per_worker"));
}

void rebatches(const Json& test) {
  const Json& in = test.at("in");
  const Dataset batches = Dataset::range(in.at("range")).batch(in.at("batch"));
  EXPECT_EQ(read(batches.rebatch(in.at("sizes"), {.drop_remainder = in.at("drop_remainder")})),
            test.at("out").at("ok"));
}

void cuts_each_batch(const Json& test) {
  const Json& in = test.at("in");
  const Dataset batches = Dataset::range(in.at("range")).batch(in.at("batch"));
  EXPECT_EQ(read(batches.deal(in.at("replicas"), Deal::kCut)), test.at("out").at("ok"));
}

Dataset source_of(const Json& in, const NumberedFiles& files) {
  const std::string source = in.at("source");
  if (source == "range") return Dataset::range(in.at("range"));
  if (source == "files") return files.dataset();
  throw InvalidArgumentError("no test knows the source " + source);
}

Json counts_of(const Json& in) {
  return in.contains("file_counts") && !in.at("file_counts").is_null() ? in.at("file_counts")
                                                                       : Json::array();
}

void deals_out_to_workers_and_replicas(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  const NumberedFiles files(counts_of(in));
  const Dataset batches = source_of(in, files).batch(in.at("batch"));
  const std::int64_t workers = in.at("workers"), replicas = in.at("replicas_per_worker");
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    const auto pieces = [&] {
      return pieces_of_worker(batches, policy_of(in), BatchSplitter::kByPolicy,
                              {workers, worker, replicas});
    };
    if (refused(out)) {
      EXPECT_EQ(out.at("error"), "NotFoundError");
      EXPECT_THROW(pieces(), NotFoundError);
      continue;
    }
    EXPECT_EQ(in_steps(read(pieces().dataset), static_cast<std::size_t>(replicas)),
              out.at("ok").at(static_cast<std::size_t>(worker)));
  }
}

void shards_within_the_function(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out").at("workers");
  const std::int64_t workers = in.at("workers"), batch = in.at("batch");
  const Dataset range = Dataset::range(in.at("range"));
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    const InputContext context{.num_input_pipelines = workers, .input_pipeline_id = worker};
    const Json& recorded = out.at(static_cast<std::size_t>(worker));
    EXPECT_EQ(read(range.batch(batch).shard(context)), recorded.at("batch_then_shard"));
    EXPECT_EQ(read(range.shard(context).batch(batch)), recorded.at("shard_then_batch"));
    EXPECT_EQ(
        str("tf.distribute.InputContext(input pipeline id ", worker, ", total: ", workers, ")"),
        recorded.at("context"));
  }
}

TEST(Vectors, Autoshard) {
  testing::run_cases("autoshard", {{"autoshard_files", shards_files},
                                   {"autoshard_range", shards_a_range},
                                   {"autoshard_hint", replaces_the_hint},
                                   {"batch_sizes_for_worker", sizes_a_worker_cuts_by},
                                   {"rebatch", rebatches},
                                   {"legacy_rebatch", cuts_each_batch},
                                   {"multi_worker_dataset", deals_out_to_workers_and_replicas},
                                   {"from_function_sharded", shards_within_the_function}});
}

// With one worker the policy decides only how batches are cut.
void cuts_by_policy(const Json& test) {
  const Json& in = test.at("in");
  if (in.at("workers") != 1) return fail_unknown(test, "several workers");
  const NumberedFiles files(counts_of(in));
  MirroredStrategy strategy(testing::logical_cpus(in.at("replicas")));
  const DistributedDataset batches = strategy.experimental_distribute_dataset(
      source_of(in, files).batch(in.at("batch")),
      {.auto_shard_policy = policy_of(in), .batch_splitter = BatchSplitter::kByPolicy});
  Json got = Json::array();
  for (const DistributedElement& step : batches) {
    got.push_back(Json::array());
    for (const Element& of_replica : step.of_replicas())
      got.back().push_back(numbers_of(of_replica.front()));
  }
  EXPECT_EQ(got, test.at("out").at("ok"));
}

TEST(Vectors, DatasetPolicy) {
  testing::run_cases("dataset_policy", {{"one_worker", cuts_by_policy}});
}

}  // namespace
}  // namespace cairn
