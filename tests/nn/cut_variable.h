// A variable cut over shards, pushed to as a worker does: for tests of what the update rules do
// there.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/rows/layout.h"
#include "storage/row_block.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::nn {

using ps::Floats;
using ps::Ids;

// A gradient as a worker sends it: rows of equal ids summed, ids ascending. Dense: every row.
struct Gradient {
  std::map<std::int64_t, Floats> rows;
  bool dense = false;
};

// One variable over as many shards as there are ranges; pushed to as a worker does.
class CutVariable {
 public:
  CutVariable(const std::shared_ptr<const VariableSpec>& spec, const UpdateRule& rule,
              const std::vector<RowRange>& ranges)
      : spec_(spec), rule_(rule), ranges_(ranges) {
    for (const RowRange& range : ranges)
      shards_.push_back(std::make_unique<ps::ShardHarness>(
          std::vector<ps::TableConfig>{{0, spec, rule, {{0, range}}}}));
  }

  void push(const Gradient& gradient, float learning_rate) {
    ++closure_;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      Ids ids;
      Floats values;
      for (const auto& [row, value] : gradient.rows)
        if (row >= ranges_[i].begin && row < ranges_[i].end) {
          ids.push_back(row - ranges_[i].begin);
          values.insert(values.end(), value.begin(), value.end());
        }
      if (ids.empty() && !gradient.dense && !reaches_every_part(rule_.kind)) continue;
      push(*shards_[i], gradient.dense ? Ids{} : ids, values, gradient.dense, learning_rate);
    }
  }

  Floats read() {
    Floats all;
    for (const auto& shard : shards_)
      for (float value : shard->pull_whole(0)) all.push_back(value);
    return all;
  }

  // The records of a checkpoint, after a way through their bytes.
  std::vector<ps::Shard::FrozenRecord> saved() {
    std::vector<ps::Shard::FrozenRecord> records;
    for (const auto& shard : shards_) {
      shard->shard.mark(kCheckpoint);
      for (const auto& record : shard->frozen(kCheckpoint))
        records.push_back(through_bytes(record));
      shard->shard.drop_mark(kCheckpoint);
    }
    return records;
  }
  // Restored into a variable cut otherwise.
  CutVariable moved(const std::vector<RowRange>& ranges) {
    const std::vector<ps::Shard::FrozenRecord> records = saved();
    CutVariable other(spec_, rule_, ranges);
    for (const auto& shard : other.shards_) ps::restore(shard->shard, records);
    other.closure_ = closure_;
    return other;
  }

 private:
  void push(ps::ShardHarness& shard, const Ids& ids, const Floats& values, bool whole,
            float learning_rate) const {
    const ps::UpdateHeader header{0,     0,     static_cast<std::uint32_t>(ids.size()),
                                  whole, rule_, learning_rate};
    shard.shard.push(
        {shard.step(closure_), {}, {&header, 1}, ids, std::as_bytes(std::span(values))});
  }
  static ps::Shard::FrozenRecord through_bytes(const ps::Shard::FrozenRecord& record) {
    const std::string key = storage::encode(record.first);
    ps::Shard::FrozenRecord read{storage::decode_key(key), record.second};
    if (const auto* rows = std::get_if<storage::StoredRows>(&record.second))
      read.second = storage::decode_rows(key, storage::encode(key, *rows));
    if (const auto* table = std::get_if<storage::TableRecord>(&record.second))
      read.second = storage::decode_table(key, storage::encode(key, *table));
    return read;
  }

  static constexpr std::uint64_t kCheckpoint = 1;
  std::shared_ptr<const VariableSpec> spec_;
  UpdateRule rule_;
  std::vector<RowRange> ranges_;
  std::vector<std::unique_ptr<ps::ShardHarness>> shards_;
  std::uint64_t closure_ = 0;
};

}  // namespace cairn::nn
