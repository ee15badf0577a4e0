// How batches are cut for replicas.
#include "strategy/base/dealt_iterator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Three examples with 2, 0 and 1 ids, and names.
struct Ragged {
  ElementSpec spec{{{"ids", {DType::kInt64, {Shape::kUnknown}}},
                    {"ids/row_splits", {DType::kInt64, {Shape::kUnknown}}},
                    {"name", {DType::kString, {Shape::kUnknown}}},
                    {"x", {DType::kFloat32, {Shape::kUnknown, 2}}}},
                   "x"};
  Element batch{Tensor::of<std::int64_t>({3}, std::vector<std::int64_t>{7, 8, 9}),
                Tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{0, 2, 2, 3}),
                Tensor::strings({3}, {"a", "b", "c"}),
                Tensor::of<float>({3, 2}, std::vector<float>{1, 1, 2, 2, 3, 3})};
};

TEST(CutBatch, RaggedColumnsTakeTheirExamplesValuesAndAreNumberedAnew) {
  const Ragged ragged;
  EXPECT_EQ(batch_size(ragged.spec, ragged.batch), 3);
  const Element last = cut_batch(ragged.spec, ragged.batch, 1, 3);
  EXPECT_THAT(last[0].values<std::int64_t>(), ElementsAre(9));
  EXPECT_THAT(last[1].values<std::int64_t>(), ElementsAre(0, 0, 1));
  EXPECT_THAT(last[2].string_values(), ElementsAre("b", "c"));
  EXPECT_THAT(last[3].values<float>(), ElementsAre(2, 2, 3, 3));
}

TEST(CutBatch, APieceMayHaveNoExample) {
  const Ragged ragged;
  const Element none = cut_batch(ragged.spec, ragged.batch, 3, 3);
  EXPECT_THAT(none[0].values<std::int64_t>(), IsEmpty());
  EXPECT_THAT(none[1].values<std::int64_t>(), ElementsAre(0));
  EXPECT_THAT(none[2].string_values(), IsEmpty());
  EXPECT_EQ(none[3].shape(), Shape({0, 2}));
  EXPECT_EQ(batch_size(ragged.spec, none), 0);
}

TEST(EmptyBatch, HasNoExampleAndTheOneSplitThatSaysSo) {
  const Ragged ragged;
  const Element none = empty_batch(ragged.spec);
  EXPECT_THAT(none[1].values<std::int64_t>(), ElementsAre(0));
  EXPECT_THAT(none[2].string_values(), IsEmpty());
  EXPECT_EQ(none[3].shape(), Shape({0, 2}));
}

struct Dealt {
  std::unique_ptr<Offload> offload = make_thread_offload(1);
  DealtIterator iterator;
  Dealt(const Dataset& dataset, Dealing deal, int replicas)
      : iterator(dataset, deal, replicas, *offload) {}
  const Shape& spec() const { return iterator.element_spec().columns[0].type.shape; }
};

TEST(DealtIterator, KnowsASizeThatDividesEvenly) {
  const Dataset fixed = Dataset::range(8).batch(4, {.drop_remainder = true});
  EXPECT_EQ(Dealt(fixed, Dealing::kCut, 2).spec(), Shape({2}));
  EXPECT_EQ(Dealt(fixed, Dealing::kCut, 3).spec(), Shape({Shape::kUnknown}));
  EXPECT_EQ(Dealt(fixed, Dealing::kInTurn, 3).spec(), Shape({4}));
}

// A batch of fixed size cannot be empty, so none can fill up the round.
TEST(DealtIterator, LeavesOutALastRoundOfBatchesOfFixedSizeThatIsNotFull) {
  Dealt dealt(Dataset::range(3).batch(1, {.drop_remainder = true}), Dealing::kInTurn, 2);
  EXPECT_EQ(dealt.iterator.next().size(), 2u);
  EXPECT_THROW(dealt.iterator.next(), OutOfRangeError);
}

}  // namespace
}  // namespace cairn
