// A small model on a shard, and pushes that train it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {

inline constexpr std::int64_t kRows = 5000;  // several blocks

inline std::vector<TableConfig> model(UpdateRule rule, std::int64_t parts = 1,
                                      std::int64_t part = 0) {
  std::vector<TableConfig> tables;
  const auto add = [&](VariableId id, std::shared_ptr<const VariableSpec> spec) {
    const std::vector<RowRange> ranges = split_rows(spec->rows(), parts);
    if (part < static_cast<std::int64_t>(ranges.size()))
      tables.push_back(
          {id,
           spec,
           rule,
           {{static_cast<std::uint32_t>(part), ranges[static_cast<std::size_t>(part)]}}});
  };
  add(0, variable("embedding", {kRows, 16}, Initializer::uniform(-1, 1)));
  add(1, variable("bias", {kRows}, Initializer::uniform(-1, 1)));
  add(2, variable("kernel", {7, 3, 2}, Initializer::uniform(-1, 1)));
  return tables;
}

// Pushes that touch some rows of every table, different for each closure.
inline void train(ShardHarness& shard, std::uint64_t closure, UpdateRule rule) {
  Ids ids;
  for (std::int64_t row = static_cast<std::int64_t>(closure % 7); row < kRows; row += 11)
    ids.push_back(row);
  Floats rows(ids.size() * 16), scalars(ids.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<float>((i * closure) % 13) - 6;
  for (std::size_t i = 0; i < scalars.size(); ++i) scalars[i] = static_cast<float>(i % 5) - 2;
  shard.push(shard.step(closure, 0), 0, ids, rows, rule, {}, 0.1f);
  shard.push(shard.step(closure, 1), 1, ids, scalars, rule, {}, 0.1f);
  shard.push_whole(shard.step(closure, 2), 2, Floats(42, static_cast<float>(closure)), rule);
}

}  // namespace cairn::ps
