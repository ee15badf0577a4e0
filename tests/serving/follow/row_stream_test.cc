#include "serving/follow/row_stream.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "serving/follow/row_reader.h"
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

// A ps that has memory for a few rows, and the others in row logs.
TEST(RowStream, RowsThatLieOnADiskComeToo) {
  const std::string folder = testing::TempDir() + "row_stream_logs";
  ps::PsServerOptions options = ps::server_options("tcp://127.0.0.1:0", 1);
  options.shard.tiering.memory_bytes = 1;
  options.shard.tiering.rows_min = 64;
  options.row_log_folder = folder;
  FollowedPs cluster(options);
  ps::ShardClient client = cluster.open_client(0, tables());
  std::uint64_t closure = 0;
  Rows all;
  for (std::int64_t first = 0; first < 2000; first += 50) {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = first; row < first + 50; ++row) rows.push_back(row);
    push_rows(client, ++closure, 1, rows, 2);
    for (const std::int64_t row : rows) all[row] = {1, 1};
  }

  RowStream stream(cluster.options());
  RowCopy copy;
  EXPECT_TRUE(follow_until(stream, copy, [&](RowCopy&) { return stream.state().complete; }));
  EXPECT_GT(cluster.server->counters(0).tier.rows_elsewhere.load(), 1000u);
  EXPECT_EQ(copy.of("hashed"), all);

  for (std::int64_t row = 0; row < 2000; row += 100) {
    push_rows(client, ++closure, 1, {row, row + 1}, 2);
    all[row] = all[row + 1] = {2, 2};
  }
  EXPECT_TRUE(follow_until(stream, copy, [&](RowCopy& now) { return now.of("hashed") == all; }));

  RowReader reader(cluster.options());
  const std::vector<std::int64_t> wanted{0, 3, 1999, 5000};
  std::vector<float> out(8);
  const RowsWanted rows{"hashed", wanted, reinterpret_cast<std::byte*>(out.data())};
  EXPECT_TRUE(reader.read({&rows, 1}, 30s).complete());
  EXPECT_EQ(out, (std::vector<float>{2, 2, 1, 1, 1, 1, 0, 0}));
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
