// A shard that has few rows in memory and the others in a store, whose answers come when a test
// says so.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/row_log/memory_cold_store.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {

// A hashed variable of 2^40 ids.
inline std::shared_ptr<const VariableSpec> hashed_variable(const std::string& name,
                                                           std::int64_t dim,
                                                           const RowPolicy& policy = {}) {
  VariableSpec spec{.name = name,
                    .shape = {std::int64_t{1} << 40, dim},
                    .initializer = Initializer::uniform(-1, 1)};
  spec.hashed = true;
  spec.policy = policy;
  return std::make_shared<const VariableSpec>(std::move(spec));
}

// Work that a store does later, when a test says so.
struct Later {
  std::deque<std::function<void()>> work;
  void do_one(std::size_t which) {
    const auto at = work.begin() + static_cast<std::ptrdiff_t>(which);
    const std::function<void()> one = std::move(*at);
    work.erase(at);
    one();
  }
  void do_all() {
    while (!work.empty()) do_one(0);
  }
};

struct TieredShard {
  explicit TieredShard(std::vector<TableConfig> tables, SaveMemory save = {},
                       std::size_t memory_bytes = 1)
      : harness(std::move(tables), options(save, memory_bytes)) {}

  ShardOptions options(SaveMemory save, std::size_t memory_bytes) {
    ShardOptions made{.lineage = 100, .save_memory = save};
    made.tiering.memory_bytes = memory_bytes;
    made.tiering.make_store = [this](const std::string&, std::size_t row_bytes,
                                     storage::Moved moved) {
      storage::MemoryColdStoreOptions store{.row_bytes = row_bytes, .moves_after = 7};
      store.later = [this](std::function<void()> work) { later.work.push_back(std::move(work)); };
      store.room = room;
      return std::make_unique<storage::MemoryColdStore>(std::move(store), std::move(moved));
    };
    return made;
  }
  std::uint64_t rows_elsewhere() const {
    return harness.shard.counters().tier.rows_elsewhere.load();
  }

  Later later;
  std::size_t room = 1 << 20;
  ShardHarness harness;
};

}  // namespace cairn::ps
