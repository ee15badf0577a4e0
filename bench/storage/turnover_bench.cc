// A stream of new ids through one shard's table: of a variable that keeps all of its rows, and of
// such as do not. Half of the ids come again and again.
#include <algorithm>
#include <set>
#include <utility>

#include "bench/benches.h"
#include "core/base/clock.h"
#include "core/base/random.h"
#include "ps/shard/shard.h"

namespace cairn::bench {
namespace {

constexpr std::int64_t kStreamDim = 16, kStreamKnown = 200'000;
constexpr std::size_t kStreamBatch = 4096;
constexpr std::uint64_t kStreamSession = 1;

struct Streamed {
  double rows_a_second = 0, megabytes = 0;
  std::uint64_t rows = 0, gone = 0, dropped = 0;
};

Streamed stream(const RowPolicy& policy, std::int64_t new_ids, std::uint64_t seed) {
  VariableSpec spec{.name = "table",
                    .shape = {std::int64_t{1} << 42, kStreamDim},
                    .initializer = Initializer::uniform(-0.05f, 0.05f)};
  spec.hashed = true;
  spec.policy = policy;
  const UpdateRule rule{RuleKind::kAdagrad, {0.1f, 1e-7f}};
  ps::Shard shard(system_clock(), {.lineage = 1});
  shard.configure(
      {kStreamSession,
       1,
       42,
       {{0, std::make_shared<const VariableSpec>(spec), rule, {{0, {0, spec.rows()}}}}}});
  shard.announce(kStreamSession, std::uint64_t{1} << 48, 0);
  shard.open();
  Random random(seed);
  const std::vector<float> gradients(kStreamBatch * kStreamDim, 0.01f);
  std::vector<std::int64_t> ids;
  double seconds = 0;
  std::uint64_t rows = 0, closure = 0;
  for (std::int64_t next = 0; next < new_ids;) {
    ids.clear();
    while (ids.size() < kStreamBatch) {
      // A row's number is a hash of its id.
      const std::int64_t id = ids.size() % 2 == 0
                                  ? kStreamKnown + next++
                                  : static_cast<std::int64_t>(random.below(kStreamKnown));
      ids.push_back(static_cast<std::int64_t>(mix_bits(static_cast<std::uint64_t>(id) + 1) >> 22));
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    StepContext step;
    step.session = kStreamSession;
    step.sent_layout = 1;
    step.closure = ++closure;
    step.incarnation = 1;
    const ps::UpdateHeader header{0, 0, static_cast<std::uint32_t>(ids.size()), false, rule, 0.01f};
    const auto begin = Stopwatch::now();
    shard.push({step,
                {},
                {&header, 1},
                ids,
                std::as_bytes(std::span(gradients).first(ids.size() * kStreamDim))});
    seconds += seconds_since(begin);
    rows += ids.size();
    if (closure % 1024 == 0) shard.announce(kStreamSession, std::uint64_t{1} << 48, closure);
  }
  const ps::ShardCounters& counted = shard.counters();
  return {static_cast<double>(rows) / seconds, static_cast<double>(counted.bytes.load()) / 1e6,
          counted.rows.load(), counted.turnover.gone.load(), counted.turnover.dropped.load()};
}

}  // namespace

void bench_turnover(const Options& options, Limits&, Report& report) {
  const std::int64_t new_ids = options.storage.table_rows;
  const auto measure = [&](const std::string& what, const RowPolicy& policy) {
    const Streamed streamed = stream(policy, new_ids, options.seed);
    const auto name = [&](const char* figure) { return str("turnover: ", what, ", ", figure); };
    report.figure(name("rows/s"), streamed.rows_a_second);
    report.figure(name("MB at the end"), streamed.megabytes);
    report.figure(name("rows at the end"), static_cast<double>(streamed.rows));
    report.figure(name("rows that went"), static_cast<double>(streamed.gone));
    report.figure(name("gradients dropped"), static_cast<double>(streamed.dropped));
    return streamed.rows_a_second;
  };
  const double all = measure("all rows", {});
  const double some = measure("rows_max 400,000", {.rows_max = 400'000});
  measure("steps_to_live 100", {.steps_to_live = 100});
  measure("admit_after 2", {.admit_after = 2, .sketch_rows = 1 << 22});
  report.figure("turnover: rows_max, of all rows", some / all);
}

}  // namespace cairn::bench
