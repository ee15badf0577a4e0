// Shards without a ps around them, and a checkpoint of three of them.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/shard_service.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {

inline constexpr std::uint64_t kRun = 7;
inline constexpr std::int64_t kDenseRows = 6000, kWidth = 16, kManyRows = std::int64_t{1} << 42;

// A dense variable under Adam and a hashed one under lazy Adam: part `part` of `parts` of each.
inline std::vector<TableConfig> two_tables(std::int64_t parts, std::int64_t part) {
  VariableSpec dense{
      .name = "dense", .shape = {kDenseRows, kWidth}, .initializer = Initializer::uniform(-1, 1)};
  VariableSpec hashed{
      .name = "hashed", .shape = {kManyRows, kWidth}, .initializer = Initializer::uniform(-1, 1)};
  hashed.hashed = true;
  const auto cut = [&](std::int64_t rows) {
    return PartConfig{static_cast<std::uint32_t>(part),
                      split_rows(rows, parts)[static_cast<std::size_t>(part)]};
  };
  const UpdateRule lazy{RuleKind::kLazyAdam, adam().constants};
  return {{0, std::make_shared<const VariableSpec>(dense), adam(), {cut(kDenseRows)}},
          {1, std::make_shared<const VariableSpec>(hashed), lazy, {cut(kManyRows)}}};
}

// A shard of a ps, without the ps.
struct LoneShard {
  LoneShard(storage::RowStore& store, Offload& offload, std::int64_t parts = 1,
            std::int64_t part = 0, TieringOptions tiering = {})
      : reactor(rpc::make_reactor()),
        host(std::make_shared<ShardHost>(
            *reactor, ShardOptions{.lineage = 100, .tiering = std::move(tiering)}, offload, 0, 1,
            store, str("ps-", part, "-shard-0"))),
        tables(two_tables(parts, part)) {
    host->shard.configure({kRun, 1, 42, tables});
    host->shard.announce(kRun, std::uint64_t{1} << 32, 0);
  }

  void train(std::uint64_t closure) {
    for (const TableConfig& table : tables) {
      const PartConfig part = table.parts[0];
      Random random(closure + static_cast<std::uint64_t>(part.rows.begin));
      Ids ids(3000);
      for (std::int64_t& id : ids)
        id = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(part.rows.size())));
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      Floats values(ids.size() * kWidth);
      for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
      StepContext step;
      step.sent_layout = 1;
      step.session = kRun;
      step.closure = closure;
      step.incarnation = 1;
      step.push_number = table.variable;
      const UpdateHeader header{table.variable, part.index, static_cast<std::uint32_t>(ids.size()),
                                false,          table.rule, 0.1f};
      host->shard.push({step, {}, {&header, 1}, ids, std::as_bytes(std::span(values))});
    }
  }

  void save(const std::string& folder) {
    host->shard.mark(1);
    reactor->wait(save_shard(host, 1, folder));
  }
  RestoredRows restore(const std::string& folder, const std::vector<std::string>& databases) {
    return reactor->wait(restore_shard(host, folder, databases, {}));
  }

  // Every row that a checkpoint of this shard would hold, with its slots, by variable and number.
  using Held = std::map<std::pair<std::string, std::int64_t>, std::vector<std::byte>>;
  void add_held(Held& held) {
    host->shard.mark(2);
    host->shard.begin_save(2);
    while (const auto record = host->shard.next_frozen(2)) {
      const auto* rows = std::get_if<storage::StoredRows>(&record->second);
      for (std::size_t i = 0; rows != nullptr && i < rows->offsets.size(); ++i) {
        const auto* at = rows->data.data() + i * rows->row_bytes();
        held[{record->first.variable,
              rows->first_row + static_cast<std::int64_t>(rows->offsets[i])}] = {
            at, at + rows->row_bytes()};
      }
    }
    host->shard.drop_mark(2);
  }

  std::unique_ptr<rpc::Reactor> reactor;
  std::shared_ptr<ShardHost> host;
  std::vector<TableConfig> tables;
};

struct SavedByThree {
  SavedByThree(storage::RowStore& store, Offload& offload, std::string where)
      : folder(std::move(where)) {
    for (std::int64_t part = 0; part < 3; ++part) {
      LoneShard shard(store, offload, 3, part);
      shard.host->shard.open();
      for (std::uint64_t closure = 1; closure < 5; ++closure) shard.train(closure);
      shard.save(folder);
      shard.add_held(rows);
      databases.push_back(shard.host->database);
    }
  }
  std::string folder;
  std::vector<std::string> databases;
  LoneShard::Held rows;
};

// Work that was submitted waits until the test runs it.
class HeldOffload final : public Offload {
 public:
  void submit(std::size_t, std::function<void()> work) override {
    if (on_submit) on_submit();
    held.push_back(std::move(work));
  }
  bool run_one() {
    if (held.empty()) return false;
    const auto work = std::move(held.front());
    held.pop_front();
    work();
    return true;
  }
  std::deque<std::function<void()>> held;
  std::function<void()> on_submit;
};

}  // namespace cairn::ps
