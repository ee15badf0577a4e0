// A shard with variables, and short ways to pull from it and push to it.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/clock.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

using Floats = std::vector<float>;
using Ids = std::vector<std::int64_t>;

inline UpdateRule sgd() { return {RuleKind::kSgd, {}}; }
inline UpdateRule adagrad(float initial = 0.1f) { return {RuleKind::kAdagrad, {initial, 1e-7f}}; }
inline UpdateRule adam() { return {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}}; }

inline std::shared_ptr<const VariableSpec> variable(
    std::string name, Shape shape, Initializer initializer = Initializer::zeros()) {
  VariableSpec spec{.name = std::move(name),
                    .dtype = DType::kFloat32,
                    .shape = std::move(shape),
                    .initializer = std::move(initializer)};
  return std::make_shared<const VariableSpec>(std::move(spec));
}

// A variable as a whole on the shard.
inline TableConfig whole_table(VariableId id, std::shared_ptr<const VariableSpec> spec,
                               UpdateRule rule) {
  const std::int64_t rows = spec->rows();
  return {id, std::move(spec), rule, {{0, {0, rows}}}};
}

class ShardHarness {
 public:
  static constexpr std::uint64_t kSession = 7;
  static constexpr Epoch kEpoch = 1;

  explicit ShardHarness(std::vector<TableConfig> tables, ShardOptions options = {.lineage = 100})
      : shard(clock, options) {
    shard.configure({kSession, 1, 42, std::move(tables), kEpoch});
    shard.announce(kSession, kClosures, 0);
    shard.open();
  }
  static constexpr std::uint64_t kClosures = std::uint64_t{1} << 32;  // announced

  StepContext step(std::uint64_t closure, std::uint32_t push_number = 0,
                   std::uint64_t worker = 1) const {
    StepContext step;
    step.sent_layout = 1;
    step.session = kSession;
    step.epoch = kEpoch;
    step.closure = closure;
    step.incarnation = worker;
    step.push_number = push_number;
    return step;
  }

  Floats pull(VariableId variable, const Ids& ids) {
    const ReadHeader header{variable, 0, static_cast<std::uint32_t>(ids.size()), false};
    return pull_request({step(0), {&header, 1}, ids});
  }
  Floats pull_whole(VariableId variable) {
    const ReadHeader header{variable, 0, 0, true};
    return pull_request({step(0), {&header, 1}, {}});
  }
  Floats pull_request(const PullRequest& request) {
    VerifiedPull& pull = shard.pull(request);
    Floats out(pull.bytes() / sizeof(float));
    pull.read(reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  // The number of the whole part's last write.
  std::uint64_t written(const ReadHeader& header) {
    return shard.pull({step(0), {&header, 1}, {}}).reads()[0].table->written();
  }

  PushResult push(const StepContext& step, VariableId variable, const Ids& ids,
                  const Floats& values, UpdateRule rule = sgd(), ShardVersion pulled = {},
                  float learning_rate = 1) {
    const UpdateHeader header{variable, 0,    static_cast<std::uint32_t>(ids.size()),
                              false,    rule, learning_rate};
    return shard.push({step, pulled, {&header, 1}, ids, std::as_bytes(std::span(values))});
  }
  PushResult push_whole(const StepContext& step, VariableId variable, const Floats& values,
                        UpdateRule rule = sgd(), ShardVersion pulled = {}) {
    const UpdateHeader header{variable, 0, 0, true, rule, 1};
    return shard.push({step, pulled, {&header, 1}, {}, std::as_bytes(std::span(values))});
  }
  // The frozen records of a mark, in order.
  std::vector<Shard::FrozenRecord> frozen(std::uint64_t checkpoint) {
    shard.begin_save(checkpoint);
    std::vector<Shard::FrozenRecord> all;
    while (auto record = shard.next_frozen(checkpoint)) all.push_back(std::move(*record));
    return all;
  }

  ManualClock clock;
  Shard shard;
};

inline void restore(Shard& shard, const std::vector<Shard::FrozenRecord>& records,
                    const AppliedSet& applied = {}) {
  shard.begin_restore();
  for (const auto& [key, record] : records)
    if (const auto* table = std::get_if<storage::TableRecord>(&record)) shard.restore(*table);
  for (const auto& [key, record] : records)
    if (const auto* rows = std::get_if<storage::StoredRows>(&record))
      shard.restore(*rows, key.variable);
  shard.end_restore(applied);
  shard.open();
}

}  // namespace cairn::ps
