#include "tests/simulation/program.h"

#include "core/ops.h"
#include "data/dataset.h"
#include "data/dataset_iterator.h"

namespace cairn::simulation {
namespace {

constexpr const char* kFlightsFile = "examples/data/nycflights13/flights.csv.gz";

Dataset flights() {
  CsvSchema schema{.header = true};
  std::vector<std::string> names{"year", "month", "day", "sched_dep_time", "carrier", "flight", "origin"};
  for (const auto& name : names) schema.columns.push_back({.name = name, .dtype = DType::kString});
  return Dataset::csv(kFlightsFile, schema).features({FeatureColumn::crossed(names, kFlightRows, "value")}).batch(kFlightBatch);
}

Dataset data_of(const Scenario& scenario) {
  return scenario.job == Job::kFlights ? flights() : Dataset::range(scenario.rows).repeat().batch(1);
}

std::vector<std::int64_t> count_rows(const Scenario& scenario) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(scenario.rows), 0);
  auto all = open(data_of(scenario));
  for (std::int64_t i = 0; i < scenario.closures; ++i) {
    const Element element = *all->next();  // its only column is the row's number
    for (std::int64_t id : element.front().values<std::int64_t>()) ++rows[static_cast<std::size_t>(id)];
  }
  return rows;
}

}  // namespace

Program::Program(ParameterServerStrategy& strategy, const Scenario& scenario) : coordinator(strategy) {
  v = strategy.create_variable({.name = "v", .shape = {}, .initializer = Initializer::zeros()});
  w = strategy.create_variable({.name = "w", .shape = {}, .initializer = Initializer::zeros()});
  rows = strategy.create_variable({.name = "rows", .shape = {scenario.rows, 1}, .initializer = Initializer::zeros()});
  if (scenario.wide > 0) wide = strategy.create_variable({.name = "wide", .shape = {scenario.wide}, .initializer = Initializer::zeros()});
  data = coordinator.create_shared_dataset(data_of(scenario), "data");
  add = strategy.function([this, many = scenario.wide](Iterator input) {
    v.assign_add(Array(1.0f));
    if (many > 0) wide.assign_add(Array(Tensor::of<float>({many}, std::vector<float>(static_cast<std::size_t>(many), 1))));
    w.assign_add(Array(1.0f));
    Array ids = input.get_next().features["value"];
    rows.scatter_add(ids, expand_dims(cast(ones_like(ids), DType::kFloat32), 1));
  });
}

Values values_of(const Program& program) {
  Values values;
  values.v = static_cast<std::int64_t>(program.v.read().eval().item<float>());
  values.w = static_cast<std::int64_t>(program.w.read().eval().item<float>());
  auto read = [](const Variable& variable) {
    std::vector<std::int64_t> numbers;
    Tensor all = variable.read().eval();
    for (float one : all.values<float>()) numbers.push_back(static_cast<std::int64_t>(one));
    return numbers;
  };
  values.rows = read(program.rows);
  if (program.wide.defined()) values.wide = read(program.wide);
  return values;
}

std::vector<std::int64_t> expected_rows(const Scenario& scenario) {
  if (scenario.job != Job::kFlights || scenario.closures < kFlightClosures) return count_rows(scenario);
  static const std::vector<std::int64_t> flights = count_rows(scenario);  // reading them takes half a second
  return flights;
}

}  // namespace cairn::simulation
