#include "tests/simulation/program.h"

#include <algorithm>
#include <span>

#include "core/graph/ops.h"
#include "core/graph/update_rule.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"

namespace cairn::simulation {
namespace {

constexpr const char* kFlightsFile = "examples/data/nycflights13/flights.csv.gz";
// The data has more values than the dense table has rows, so that the hashed one still gets new
// rows when many closures are done.
constexpr std::int64_t kValuesPerRow = 4;
// odd: distinct values have distinct rows of all 2^36
constexpr std::int64_t kHashFactor = 0x1e3779b97;

Dataset flights() {
  CsvSchema schema{.header = true};
  std::vector<std::string> names{"year",    "month",  "day",   "sched_dep_time",
                                 "carrier", "flight", "origin"};
  for (const auto& name : names) schema.columns.push_back({.name = name, .dtype = DType::kString});
  return Dataset::csv(kFlightsFile, schema)
      .features({FeatureColumn::crossed(names, kFlightRows, "value")})
      .batch(kFlightBatch);
}

Dataset data_of(const Scenario& scenario) {
  return scenario.job == Job::kFlights
             ? flights()
             : Dataset::range(scenario.rows * kValuesPerRow).repeat().batch(1);
}

// The flights in one stream, or, under odd seeds, in a part for each worker.
PerWorkerDatasetHandle dealt_out(ParameterServerStrategy& strategy, ClusterCoordinator& coordinator,
                                 const Scenario& scenario) {
  if (scenario.job != Job::kFlights)
    return coordinator.create_shared_dataset(data_of(scenario), "data");
  const auto policy = scenario.seed % 2 == 1 ? AutoShardPolicy::kData : AutoShardPolicy::kAuto;
  return coordinator.create_per_worker_dataset(
      strategy.experimental_distribute_dataset(
          data_of(scenario), {.auto_shard_policy = policy, .visitation = Visitation::kExactlyOnce}),
      "data");
}

CountedTable counted_table(const Scenario& scenario, std::int64_t rows, std::int64_t factor) {
  const std::int64_t parts = scenario.spread == Spread::kEveryShard
                                 ? scenario.ps * static_cast<std::int64_t>(scenario.shards)
                                 : 1;
  return {rows, factor, split_rows(rows, parts)};
}

// The values of the elements of one epoch, or of as many as there are closures; `begins[n]`: where
// those of element n begin.
struct Epoch {
  std::vector<std::int64_t> values;
  std::vector<std::size_t> begins;

  std::span<const std::int64_t> element(std::uint64_t ordinal) const {
    const std::size_t n = ordinal % (begins.size() - 1);
    return std::span(values).subspan(begins[n], begins[n + 1] - begins[n]);
  }
};

Epoch read_epoch(const Scenario& scenario) {
  const std::int64_t elements =
      scenario.job == Job::kFlights ? kFlightClosures : scenario.rows * kValuesPerRow;
  Epoch epoch;
  auto all = open(data_of(scenario));
  for (std::int64_t i = 0; i < std::min(elements, scenario.closures); ++i) {
    epoch.begins.push_back(epoch.values.size());
    const Element element = *all->next();  // its only column is the value
    const auto values = element.front().values<std::int64_t>();
    epoch.values.insert(epoch.values.end(), values.begin(), values.end());
  }
  epoch.begins.push_back(epoch.values.size());
  return epoch;
}

Epoch epoch_of(const Scenario& scenario) {
  if (scenario.job != Job::kFlights || scenario.closures < kFlightClosures)
    return read_epoch(scenario);
  static const Epoch flights = read_epoch(scenario);  // reading them takes half a second
  return flights;
}

void make_rows(RowCounts& counts, std::vector<std::int64_t> rows) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (const std::int64_t row : rows) counts.emplace_back(row, 0);
}

void count(RowCounts& counts, const CountedTable& table, std::int64_t value) {
  for (const RowRange& range : table.ranges) {
    const std::pair<std::int64_t, std::int64_t> first{table.row_of(value, range), 0};
    ++std::lower_bound(counts.begin(), counts.end(), first)->second;
  }
}

Array ones(std::int64_t rows, std::int64_t dim) {
  return Array(Tensor::of<float>({rows, dim},
                                 std::vector<float>(static_cast<std::size_t>(rows * dim), 1.0f)));
}

constexpr std::int64_t kLateRows = 12;

// Some of each part's, be the variable hashed.
Array late_rows() {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < kLateRows; ++i) ids.push_back(i * (kHashedRows / kLateRows));
  return Array(Tensor::of<std::int64_t>({kLateRows}, ids));
}

// An optimizer that goes down by a gradient of -1 adds one.
void add_one(const Variable& variable, const Array& one, Updates updates) {
  if (updates == Updates::kAssigned) return variable.assign_add(one);
  variable.update({.kind = RuleKind::kSgd}, neg(one), Array(1.0f));
}

void add_one(const Variable& table, const Array& ids, const Array& one, Updates updates) {
  if (updates == Updates::kAssigned) return table.scatter_add(ids, one);
  table.update({.kind = RuleKind::kSgd}, IndexedSlices{ids, neg(one), table.shape()}, Array(1.0f));
}

}  // namespace

void schedule(Program& program, const Scenario& scenario, std::int64_t begin, std::int64_t end) {
  if (scenario.job == Job::kFlights && end == scenario.closures) end += kBeyondTheEnd;
  for (std::int64_t i = begin; i < end; ++i)
    program.coordinator.schedule(program.add, {program.data});
}

std::int64_t total(const RowCounts& counts, RowRange rows) {
  std::int64_t sum = 0;
  for (const auto& [row, number] : counts)
    if (row >= rows.begin && row < rows.end) sum += number;
  return sum;
}
std::int64_t total(const RowCounts& counts) { return total(counts, {0, kHashedRows}); }

Array CountedTable::rows_of(const Array& values) const {
  std::vector<Array> all;
  for (const RowRange& range : ranges)
    all.push_back(floor_mod(values * Array(factor), Array(range.size())) + Array(range.begin));
  return all.size() == 1 ? all.front() : concat(all, 0);
}

CountedTable dense_table(const Scenario& scenario) {
  return counted_table(scenario, scenario.rows, 1);
}
CountedTable hashed_table(const Scenario& scenario) {
  return counted_table(scenario, kHashedRows, kHashFactor);
}

Program::Program(ParameterServerStrategy& strategy, const Scenario& scenario)
    : coordinator(strategy) {
  v = strategy.create_variable({.name = "v", .shape = {}, .initializer = Initializer::zeros()});
  w = strategy.create_variable({.name = "w", .shape = {}, .initializer = Initializer::zeros()});
  rows = strategy.create_variable(
      {.name = "rows", .shape = {scenario.rows, 1}, .initializer = Initializer::zeros()});
  if (scenario.wide > 0)
    wide = strategy.create_variable(
        {.name = "wide", .shape = {scenario.wide}, .initializer = Initializer::zeros()});
  hashed = strategy.create_variable({.name = "hashed",
                                     .shape = {kHashedRows, scenario.hashed.dim},
                                     .initializer = Initializer::zeros(),
                                     .hashed = true});
  data = dealt_out(strategy, coordinator, scenario);
  add = strategy.function([this, scenario](Iterator input) {
    const Updates updates = scenario.updates;
    add_one(v, Array(1.0f), updates);
    if (scenario.wide > 0) add_one(wide, reshape(ones(1, scenario.wide), {scenario.wide}), updates);
    add_one(w, Array(1.0f), updates);
    const Array values = input.get_next().features["value"];
    const Array row_ids = dense_table(scenario).rows_of(values),
                hashed_ids = hashed_table(scenario).rows_of(values);
    add_one(rows, row_ids, expand_dims(cast(ones_like(row_ids), DType::kFloat32), 1), updates);
    Array one =
        expand_dims(cast(ones_like(hashed_ids), DType::kFloat32), 1) * ones(1, scenario.hashed.dim);
    // so that the closure pulls
    if (updates == Updates::kByRule) one = one + hashed.gather(hashed_ids) * Array(0.0f);
    add_one(hashed, hashed_ids, one, updates);
  });
}

Due due(const Scenario& scenario,
        const std::vector<std::pair<std::uint64_t, std::uint64_t>>& elements) {
  const Epoch epoch = epoch_of(scenario);
  const CountedTable dense = dense_table(scenario), hashed = hashed_table(scenario);
  Due due;
  for (std::int64_t row = 0; row < dense.rows; ++row) due.rows.emplace_back(row, 0);
  std::vector<std::int64_t> touched;
  for (const std::int64_t value : epoch.values)
    for (const RowRange& range : hashed.ranges) touched.push_back(hashed.row_of(value, range));
  make_rows(due.hashed, std::move(touched));
  for (const auto& [begin, end] : elements)
    for (std::uint64_t ordinal = begin; ordinal < end; ++ordinal)
      for (const std::int64_t value : epoch.element(ordinal)) {
        count(due.rows, dense, value);
        count(due.hashed, hashed, value);
      }
  return due;
}

Due due(const Scenario& scenario) {
  return due(scenario, {{0, static_cast<std::uint64_t>(scenario.closures)}});
}

Values zero_values(const Scenario& scenario) {
  const Due none = due(scenario, {});
  return {0, 0, none.rows, none.hashed,
          std::vector<std::int64_t>(static_cast<std::size_t>(scenario.wide), 0)};
}

Values values_of(const Program& program, const Due& all) {
  Values values;
  values.v = static_cast<std::int64_t>(program.v.read().eval().item<float>());
  values.w = static_cast<std::int64_t>(program.w.read().eval().item<float>());
  const Tensor rows = program.rows.read().eval();
  for (const float one : rows.values<float>())
    values.rows.emplace_back(values.rows.size(), static_cast<std::int64_t>(one));
  if (program.wide.defined()) {
    const Tensor wide = program.wide.read().eval();
    for (const float one : wide.values<float>())
      values.wide.push_back(static_cast<std::int64_t>(one));
  }
  std::vector<std::int64_t> ids;
  for (const auto& [row, number] : all.hashed) ids.push_back(row);
  const Tensor hashed =
      program.hashed
          .gather(Array(Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids)))
          .eval();
  const auto elements = hashed.values<float>();
  const auto dim = static_cast<std::size_t>(program.hashed.spec().dim());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto row = elements.subspan(i * dim, dim);
    if (std::any_of(row.begin(), row.end(), [&row](float one) { return one != row.front(); }))
      throw DataLossError(str("the elements of hashed row ", ids[i], " differ"));
    values.hashed.emplace_back(ids[i], static_cast<std::int64_t>(row.front()));
  }
  return values;
}

// Some are dense, and others hashed.
Variable LateVariables::declare(ParameterServerStrategy& strategy, std::size_t number) {
  const bool hashed = number % 2 == 1;
  return strategy.create_variable({.name = str("late-", number),
                                   .shape = {hashed ? kHashedRows : kLateRows, 1},
                                   .initializer = Initializer::zeros(),
                                   .hashed = hashed});
}

Array LateVariables::value_of(std::size_t number) {
  return ones(kLateRows, 1) * Array(static_cast<float>(2 + number));
}

void LateVariables::make(ParameterServerStrategy& strategy, std::int64_t done, std::int64_t all) {
  if (begun_ >= static_cast<std::size_t>(wanted_)) return;
  if (done * (wanted_ + 1) < all * static_cast<std::int64_t>(begun_ + 1)) return;
  const std::size_t number = begun_++;
  made_.push_back(declare(strategy, number));
  if (made_.back().spec().hashed)
    made_.back().scatter_update(late_rows(), value_of(number));
  else
    made_.back().assign(value_of(number));
  assigned_ = begun_;
}

void LateVariables::begin_again(ParameterServerStrategy& strategy, bool journal) {
  end();
  if (!journal) {
    begun_ = assigned_ = 0;
    return;
  }
  for (std::size_t number = 0; number < begun_; ++number)
    made_.push_back(declare(strategy, number));
}

std::vector<std::string> LateVariables::judge() const {
  std::vector<std::string> complaints;
  for (std::size_t number = 0; number < std::min(assigned_, made_.size()); ++number) {
    const Variable& variable = made_[number];
    const Tensor values =
        (variable.spec().hashed ? variable.gather(late_rows()) : variable.read()).eval();
    for (const float value : values.values<float>()) {
      if (value == static_cast<float>(2 + number)) continue;
      complaints.push_back(
          str("'", variable.spec().name, "' holds ", value, ", and was given ", 2 + number));
      break;
    }
  }
  return complaints;
}

}  // namespace cairn::simulation
