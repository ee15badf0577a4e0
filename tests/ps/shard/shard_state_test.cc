// Rows with their slots, for a lane that keeps a copy of a whole variable.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/ps/server/server_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Floats rows_of(const VerifiedState& state) {
  Floats out(state.bytes() / sizeof(float));
  state.read(reinterpret_cast<std::byte*>(out.data()));
  return out;
}

class ShardState : public testing::Test {
 protected:
  VerifiedState read(VariableId variable, std::int64_t begin, std::uint32_t rows,
                     std::uint32_t part = 0, std::uint64_t session = ShardHarness::kSession) {
    return shard.shard.read_state({session, ShardHarness::kEpoch, variable, part, begin, rows});
  }
  template <typename E>
  void expect_refused(VariableId variable, std::int64_t begin, std::uint32_t rows,
                      const std::string& text) {
    try {
      read(variable, begin, rows);
      ADD_FAILURE() << "nothing was refused";
    } catch (const E& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }
  static std::shared_ptr<const VariableSpec> hashed() {
    VariableSpec spec{.name = "hashed", .shape = {1000, 2}};
    spec.hashed = true;
    return std::make_shared<const VariableSpec>(std::move(spec));
  }
  ShardHarness shard{{whole_table(0, variable("a", {4, 2}), adagrad(0.5f)),
                      whole_table(1, variable("many", {20'000, 3}), adam()),
                      whole_table(2, variable("plain", {3}), sgd()),
                      whole_table(3, hashed(), sgd()),
                      whole_table(4, variable("wide", {2, 1'500'000}), sgd()),
                      whole_table(5, variable("scalar", {}), adam())}};
};

TEST_F(ShardState, EachRowComesWithItsSlotsBehindIt) {
  shard.push(shard.step(1), 0, {1, 3}, {1, 2, 3, 4}, adagrad(0.5f));
  const VerifiedState state = read(0, 1, 2);
  const Floats rows = rows_of(state), values = shard.pull(0, {1, 2});
  EXPECT_THAT(rows,
              ElementsAre(values[0], values[1], 1.5f, 4.5f, values[2], values[3], 0.5f, 0.5f));
  EXPECT_EQ(state.updates(), 1);
}

TEST_F(ShardState, IsTheSameHoweverItsRowsLieInMemory) {
  for (std::uint64_t closure = 1; closure <= 3; ++closure) {
    shard.push_whole(shard.step(closure), 1, Floats(60'000, 0.5f), adam());
    shard.push_whole(shard.step(closure, 1), 5, {0.5f}, adam());
  }
  const Floats scalar = rows_of(read(5, 0, 1)), row = rows_of(read(1, 19'999, 1));
  ASSERT_EQ(scalar.size(), 3u);
  ASSERT_EQ(row.size(), 9u);
  for (std::size_t slot = 0; slot < 3; ++slot)
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(row[3 * slot + i], scalar[slot]);
  EXPECT_EQ(read(1, 0, 1).updates(), 3);
}

TEST_F(ShardState, OfNoRowsIsTheNumberOfUpdates) {
  shard.push_whole(shard.step(1), 5, {1}, adam());
  const VerifiedState state = read(5, 1, 0);
  EXPECT_EQ(state.bytes(), 0u);
  EXPECT_EQ(state.updates(), 1);
}

TEST_F(ShardState, TellsWhetherThePartWasWrittenInBetween) {
  const std::uint64_t before = read(0, 0, 1).written();
  shard.push(shard.step(1), 2, {0}, {1});
  EXPECT_EQ(read(0, 2, 1).written(), before);
  shard.push(shard.step(2), 0, {3}, {1, 1}, adagrad(0.5f));
  EXPECT_NE(read(0, 2, 1).written(), before);
}

TEST_F(ShardState, OfRowsThatThePartHasNotIsRefused) {
  const auto more = std::numeric_limits<std::uint32_t>::max();
  for (const auto& [begin, rows] : {std::pair<std::int64_t, std::uint32_t>{-1, 1},
                                    {0, 5},
                                    {5, 0},
                                    {4, 1},
                                    {std::numeric_limits<std::int64_t>::max(), more},
                                    {std::numeric_limits<std::int64_t>::min(), more}})
    expect_refused<InvalidArgumentError>(0, begin, rows, "of the 4 rows of this part (0 to 4)");
}

TEST_F(ShardState, OfMoreThanFourMegabytesIsRefusedUnlessItIsOneRow) {
  EXPECT_EQ(read(4, 1, 1).bytes(), 6'000'000u);
  expect_refused<InvalidArgumentError>(4, 0, 2, "ask for fewer at once");
}

TEST_F(ShardState, OfAHashedVariableIsRefused) {
  expect_refused<InvalidArgumentError>(3, 0, 1, "'hashed' is hashed: it has no whole");
}

TEST_F(ShardState, IsRefusedWhereAPullWouldBe) {
  EXPECT_THROW(read(9, 0, 1), NotFoundError);
  EXPECT_THROW(read(0, 0, 1, 1), NotFoundError);
  EXPECT_THROW(read(0, 0, 1, 0, ShardHarness::kSession + 1), FailedPreconditionError);
  shard.shard.begin_restore();
  EXPECT_THROW(read(0, 0, 1), UnavailableError);
}

TEST_F(ShardState, IsOfAnotherIncarnationAfterARestore) {
  const ShardVersion before = shard.shard.version();
  restore(shard.shard, {});
  read(0, 0, 4);
  EXPECT_NE(shard.shard.version().lineage, before.lineage);
}

// ---- over the wire ----

kj::Promise<capnp::Response<wire::Shard::ReadStateResults>> ask(wire::Shard::Client& shard,
                                                                std::uint32_t rows) {
  auto request = shard.readStateRequest();
  request.setEpoch(ShardHarness::kEpoch.number);
  request.setSession(ShardHarness::kSession);
  request.setBegin(1);
  request.setRows(rows);
  return request.send();
}

TEST(ShardStateService, AnswersWithRowsSmallAndLarge) {
  SimulatedPs ps;
  ShardClient client = ps.client();
  client.configure(
      {whole_table(0, variable("w", {3000, 16}, Initializer::uniform(-1, 1)), adagrad(0.25f))});
  client.open();
  client.push(1, 0, Floats(48'000, 1), 0, adagrad(0.25f));
  const Floats values = client.pull(0);
  for (const std::uint32_t rows : {1u, 2999u}) {
    auto reply = client.wait(ask(client.shard, rows));
    ASSERT_EQ(reply.getRows().size(), rows * 2 * 64u);
    EXPECT_EQ(reply.getUpdates(), 1);
    EXPECT_EQ(reply.getWritten(), 2u);
    EXPECT_EQ(reply.getVersion().getCounter(), 1u);
    for (std::uint32_t i = 0; i < rows; ++i) {
      Floats row(32);
      std::memcpy(row.data(), reply.getRows().begin() + i * 128u, 128);
      for (std::size_t j = 0; j < 16; ++j) {
        ASSERT_EQ(row[j], values[16 * (i + 1) + j]);
        ASSERT_EQ(row[16 + j], 1.25f);
      }
    }
  }
}

TEST(ShardStateService, IsForWorkers) {
  SimulatedPs ps;
  ShardClient client = ps.client();
  client.configure({whole_table(0, variable("w", {3}), sgd())});
  client.open();
  EXPECT_NO_THROW(client.wait(ask(client.shard, 2)));
  try {
    client.wait(ask(client.ruled, 2));
    ADD_FAILURE() << "a coordinator was answered";
  } catch (const PermissionDeniedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Shard.readState is for the worker"));
  }
}

}  // namespace
}  // namespace cairn::ps
