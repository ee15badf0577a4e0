#include "serving/follow/row_stream.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/serving/follow/followed_ps.h"

namespace cairn::serving {
namespace {

using namespace std::chrono_literals;
using Rows = RowCopy::Rows;

const std::vector<ps::TableConfig>& tables() {
  static const std::vector<ps::TableConfig> all = {
      ps::whole_table(0, ps::variable("dense", {4, 2}), ps::sgd()), hashed_table(1, "hashed")};
  return all;
}

TEST(RowStream, ACopyHasTheRowsThatWereChangedBeforeItCameAndThoseThatChangeAfterwards) {
  FollowedPs cluster;
  ps::ShardClient first = cluster.open_client(0, tables()), second = cluster.open_client(1, {});
  push_rows(first, 1, 1, {5, 1'000'000'000'000}, 2);

  RowStream stream(cluster.options());
  RowCopy copy;
  EXPECT_TRUE(follow_until(stream, copy, [&](RowCopy&) { return stream.state().complete; }));
  EXPECT_EQ(copy.of("hashed"), (Rows{{5, {1, 1}}, {1'000'000'000'000, {1, 1}}}));
  EXPECT_EQ(copy.of("dense"), Rows());

  push_rows(first, 2, 1, {5, 6}, 2);
  push_rows(first, 3, 0, {2}, 2);
  const Rows hashed{{5, {2, 2}}, {6, {1, 1}}, {1'000'000'000'000, {1, 1}}};
  const Rows dense{{2, {1, 1}}};
  EXPECT_TRUE(follow_until(stream, copy, [&](RowCopy& now) {
    return now.of("hashed") == hashed && now.of("dense") == dense;
  }));
  EXPECT_EQ(stream.state().step, 3);
  EXPECT_EQ(stream.state().seed, 42u);
  EXPECT_TRUE(stream.state().away.empty());
}

TEST(RowStream, NamesAWrongClusterAsWhatItIs) {
  FollowedPs cluster;
  RowStreamOptions options = cluster.options();
  options.cluster = "another";
  RowStream stream(options);
  RowChanges changes;
  const auto ask = [&] {
    for (int i = 0; i < 600; ++i) stream.next(changes, 100ms);
  };
  EXPECT_THROW(ask(), FailedPreconditionError);
}

}  // namespace
}  // namespace cairn::serving
