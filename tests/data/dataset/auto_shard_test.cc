// Which part of a dataset each of several workers reads, and how batches are cut among replicas.
#include "data/dataset/auto_shard.h"

#include <gmock/gmock.h>

#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const BatchSplitter kSizes = BatchSplitter::kSizes, kCut = BatchSplitter::kCut;

// Ten numbers in three files: 0 to 3, 4, and 5 to 9.
class AutoShard : public ::testing::Test {
 protected:
  AutoShard() {
    write("a", "0\n1\n2\n3\n");
    write("b", "4\n");
    write("c", "5\n6\n7\n8\n9\n");
  }
  void write(const std::string& name, const std::string& lines) {
    paths_.push_back(folder_.write(name, lines));
  }
  Dataset files() const {
    return Dataset::csv(paths_, {.columns = {{.name = "value", .dtype = DType::kInt64}}});
  }
  static std::vector<std::string> shard(const Dataset& dataset, AutoShardPolicy policy,
                                        std::int64_t workers, std::int64_t worker) {
    return read_all(auto_shard(dataset, policy, workers, worker).dataset);
  }
  static std::vector<std::string> pieces(const Dataset& dataset, AutoShardPolicy policy,
                                         BatchSplitter splitter, const WorkerShare& share) {
    return read_all(pieces_of_worker(dataset, policy, splitter, share).dataset);
  }
  TempFolder folder_;
  std::vector<std::string> paths_;
};

TEST_F(AutoShard, DealsOutFilesInTurn) {
  const Dataset dataset = files().batch(10);
  EXPECT_THAT(shard(dataset, AutoShardPolicy::kFile, 2, 0),
              ElementsAre("int64[9]{0, 1, 2, 3, 5, 6, 7, 8, 9} "));
  EXPECT_THAT(shard(dataset, AutoShardPolicy::kFile, 2, 1), ElementsAre("int64[1]{4} "));
}

TEST_F(AutoShard, DealsOutElementsWhereItIsByData) {
  const Dataset dataset = files().batch(4);
  EXPECT_THAT(shard(dataset, AutoShardPolicy::kData, 2, 0),
              ElementsAre("int64[4]{0, 1, 2, 3} ", "int64[2]{8, 9} "));
  EXPECT_THAT(shard(dataset, AutoShardPolicy::kData, 2, 1), ElementsAre("int64[4]{4, 5, 6, 7} "));
  EXPECT_EQ(shard(dataset, AutoShardPolicy::kOff, 2, 1), read_all(dataset));
}

TEST_F(AutoShard, ChoosesFilesWhereThereIsOneForEveryWorkerAndTellsWhereNot) {
  const auto chosen = [](const Dataset& dataset, std::int64_t workers) {
    return auto_shard(dataset, AutoShardPolicy::kAuto, workers, 0);
  };
  EXPECT_EQ(chosen(files().batch(2), 3).applied, AutoShardPolicy::kFile);
  EXPECT_EQ(chosen(files().batch(2), 3).warning, "");
  EXPECT_EQ(chosen(files().batch(2), 4).applied, AutoShardPolicy::kData);
  EXPECT_THAT(chosen(files().batch(2), 4).warning, HasSubstr("it has 3 files for 4 workers"));
  EXPECT_EQ(chosen(Dataset::range(9).batch(2), 2).applied, AutoShardPolicy::kData);
  EXPECT_EQ(chosen(Dataset::range(9).batch(2), 2).warning, "");
}

TEST_F(AutoShard, RefusesFilesThatAreTooFewOrNone) {
  EXPECT_EQ(error_of([&] { shard(files(), AutoShardPolicy::kFile, 4, 0); }),
            "InvalidArgument: AutoShardPolicy::kFile cannot deal the dataset out: it has 3 files "
            "for 4 workers; use kData, or as many files as workers");
  EXPECT_THAT(error_of([&] { shard(Dataset::range(9), AutoShardPolicy::kFile, 2, 0); }),
              HasSubstr("NotFound: AutoShardPolicy::kFile cannot deal the dataset out: its source "
                        "is no files"));
  EXPECT_EQ(shard(Dataset::range(2), AutoShardPolicy::kFile, 1, 0).size(), 2u);
}

TEST_F(AutoShard, PutsAShardWhereTheHintIs) {
  const Dataset hinted = Dataset::range(7).shard_hint().batch(2);
  EXPECT_THAT(shard(hinted, AutoShardPolicy::kHint, 2, 1),
              ElementsAre("int64[2]{1, 3} ", "int64[1]{5} "));
  EXPECT_THAT(error_of([&] { read_all(hinted); }),
              HasSubstr("FailedPrecondition: the dataset has a shard_hint()"));
  EXPECT_THAT(
      error_of([&] { shard(hinted, AutoShardPolicy::kData, 2, 1); }),
      HasSubstr("InvalidArgument: the dataset has a shard_hint(), and AutoShardPolicy DATA"));
  EXPECT_THAT(error_of([&] { shard(Dataset::range(7), AutoShardPolicy::kHint, 2, 1); }),
              HasSubstr("InvalidArgument: AutoShardPolicy::kHint wants a shard_hint()"));
}

TEST_F(AutoShard, CutsEachBatchForTheReplicasOfAllWorkers) {
  const Dataset dataset = Dataset::range(10).batch(7);
  EXPECT_THAT(pieces(dataset, AutoShardPolicy::kData, kCut, {2, 0, 2}),
              ElementsAre("int64[2]{0, 1} ", "int64[2]{4, 5} ", "int64[1]{7} ", "int64[1]{9} "));
  EXPECT_THAT(pieces(dataset, AutoShardPolicy::kData, kCut, {2, 1, 2}),
              ElementsAre("int64[2]{2, 3} ", "int64[1]{6} ", "int64[1]{8} ", "int64[0]{} "));
}

TEST_F(AutoShard, CutsTheStreamOfAWorkersFilesBySizes) {
  const Dataset dataset = files().batch(3);
  EXPECT_THAT(pieces(dataset, AutoShardPolicy::kFile, kSizes, {2, 0, 1}),
              ElementsAre("int64[2]{0, 1} ", "int64[1]{2} ", "int64[2]{3, 5} ", "int64[1]{6} ",
                          "int64[2]{7, 8} ", "int64[1]{9} "));
  EXPECT_THAT(pieces(dataset, AutoShardPolicy::kFile, kSizes, {2, 1, 1}),
              ElementsAre("int64[1]{4} "));
}

// Whatever is chosen, the workers together read all there is, and nothing twice.
TEST_F(AutoShard, LosesNoExampleAndRepeatsNone) {
  for (const AutoShardPolicy policy : {AutoShardPolicy::kFile, AutoShardPolicy::kData})
    for (const BatchSplitter splitter : {kCut, kSizes})
      for (const std::int64_t replicas : {1, 2, 3})
        for (const std::int64_t batch : {1, 2, 4, 7, 20}) {
          std::vector<std::int64_t> seen;
          for (const std::int64_t worker : {0, 1, 2})
            for (const std::int64_t each : values_of(
                     pieces_of_worker(files().batch(batch), policy, splitter, {3, worker, replicas})
                         .dataset))
              seen.push_back(each);
          EXPECT_THAT(seen, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
              << name_of(policy) << " batch " << batch << " replicas " << replicas;
        }
}

TEST(Rebatch, CutsTheStreamOfExamplesByItsSizesAgainAndAgain) {
  const Dataset batches = Dataset::range(8).batch(3);
  EXPECT_THAT(read_all(batches.rebatch({2, 1})),
              ElementsAre("int64[2]{0, 1} ", "int64[1]{2} ", "int64[2]{3, 4} ", "int64[1]{5} ",
                          "int64[2]{6, 7} "));
  EXPECT_THAT(read_all(batches.rebatch({5})),
              ElementsAre("int64[5]{0, 1, 2, 3, 4} ", "int64[3]{5, 6, 7} "));
  EXPECT_THAT(read_all(batches.rebatch({5}, {.drop_remainder = true})),
              ElementsAre("int64[5]{0, 1, 2, 3, 4} "));
  EXPECT_THAT(read_all(Dataset::range(0).batch(3).rebatch({2})), IsEmpty());
}

TEST(Rebatch, MakesBatchesOfNoExamplesWhereTheSizeIsNone) {
  EXPECT_THAT(read_all(Dataset::range(3).batch(2).rebatch({0, 2})),
              ElementsAre("int64[0]{} ", "int64[2]{0, 1} ", "int64[0]{} ", "int64[1]{2} "));
  EXPECT_THAT(read_all(Dataset::range(2).batch(2).rebatch({2, 0})),
              ElementsAre("int64[2]{0, 1} ", "int64[0]{} "));
}

TEST(Rebatch, KnowsTheSizeOfItsBatchesWhereAllHaveOne) {
  const auto size = [](const Dataset& dataset) {
    return dataset.element_spec().columns[0].type.shape[0];
  };
  const Dataset full = Dataset::range(8).batch(4, {.drop_remainder = true});
  EXPECT_EQ(size(full.rebatch({2})), 2);
  EXPECT_EQ(size(full.rebatch({3})), Shape::kUnknown);
  EXPECT_EQ(size(full.rebatch({3}, {.drop_remainder = true})), 3);
  EXPECT_EQ(size(full.rebatch({2, 1})), Shape::kUnknown);
}

TEST(Rebatch, RefusesSizesThatMeanNothing) {
  const Dataset batches = Dataset::range(8).batch(3);
  EXPECT_THAT(error_of([&] { batches.rebatch({}); }), HasSubstr("must be above 0"));
  EXPECT_THAT(error_of([&] { batches.rebatch({0}); }), HasSubstr("must be above 0"));
  EXPECT_THAT(error_of([&] { batches.rebatch({2, -1}); }), HasSubstr("a size is -1"));
  EXPECT_THAT(error_of([] { Dataset::range(8).rebatch({2}); }), HasSubstr("batch() them first"));
}

}  // namespace
}  // namespace cairn::testing
