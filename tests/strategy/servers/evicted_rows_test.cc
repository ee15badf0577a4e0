// Rows that a program has evicted: the same under each strategy.
#include <gmock/gmock.h>

#include "nn/layers/embedding_table.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr RowPolicy kByNameAlone{.evictable = true};

Tensor ids(std::initializer_list<std::int64_t> all) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(all.size())}, all);
}

// One element for each of so many rows.
Tensor rows_of(std::int64_t count, float value) {
  return Tensor::of<float>({count, 1}, std::vector<float>(static_cast<std::size_t>(count), value));
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

Variable table_of_sevens(Strategy& strategy, const RowPolicy& policy = kByNameAlone) {
  return strategy.create_variable({.name = "table",
                                   .shape = {std::int64_t{1} << 40, 1},
                                   .initializer = Initializer::constant(7),
                                   .hashed = true,
                                   .policy = policy});
}

void expect_evicted_rows_begin_anew(Strategy& strategy) {
  auto scope = strategy.scope();
  const Variable table = table_of_sevens(strategy);
  const Tensor some = ids({3, 1LL << 39, 5}), ones = rows_of(3, 1.0f);
  table.scatter_add(some, ones);
  table.evict(ids({5, 3, 44}));
  EXPECT_THAT(values_of(table.gather(some).eval()), ElementsAre(7, 8, 7));
  table.scatter_add(some, ones);
  EXPECT_THAT(values_of(table.gather(some).eval()), ElementsAre(8, 9, 8));
}

TEST(EvictedRows, BeginAnewUnderEachStrategy) {
  OneDeviceStrategy one;
  expect_evicted_rows_begin_anew(one);
  MirroredStrategy mirrored{logical_cpus(2)};
  expect_evicted_rows_begin_anew(mirrored);
  CentralStorageStrategy central{logical_cpus(2)};
  expect_evicted_rows_begin_anew(central);
  SimulatedCluster cluster({.ps = 2, .workers = 1});
  expect_evicted_rows_begin_anew(cluster.strategy());
}

TEST(EvictedRows, AreThoseThatAnyReplicaNames) {
  MirroredStrategy strategy{logical_cpus(2)};
  auto scope = strategy.scope();
  const Variable table = table_of_sevens(strategy);
  table.scatter_add(ids({1, 2, 3, 4}), rows_of(4, 1.0f));
  Function step = strategy.function([&](const Array& own) { table.evict(own); });
  strategy.run(step, {PerReplica({Array(ids({1, 2})), Array(ids({2, 4}))})});
  EXPECT_THAT(values_of(table.gather(ids({1, 2, 3, 4})).eval()), ElementsAre(7, 7, 8, 7));
}

TEST(EvictedRows, OfAnEmbeddingTableAreThoseOfItsKeys) {
  OneDeviceStrategy strategy;
  auto scope = strategy.scope();
  const nn::EmbeddingTable table(
      {.dim = 1, .initializer = Initializer::zeros(), .policy = kByNameAlone});
  table(ids({1}));  // makes its variable
  const std::int64_t row = table.row_of(123'456'789'012);
  table.table().scatter_add(ids({row}), rows_of(1, 2.0f));
  EXPECT_THAT(values_of(table(ids({123'456'789'012})).eval()), ElementsAre(2));
  table.evict(ids({123'456'789'012}));
  EXPECT_THAT(values_of(table(ids({123'456'789'012})).eval()), ElementsAre(0));
}

TEST(EvictedRows, AreRefusedToAVariableThatKeepsItsRows) {
  OneDeviceStrategy strategy;
  auto scope = strategy.scope();
  const Variable keeps = table_of_sevens(strategy, {.admit_after = 2});
  const Variable dense = strategy.create_variable({.name = "dense", .shape = {4, 1}});
  for (const Variable& variable : {keeps, dense})
    EXPECT_THAT([&] { variable.evict(ids({1})); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("rows_max or steps_to_live")));
}

}  // namespace
}  // namespace cairn::testing
