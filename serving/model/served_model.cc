#include "serving/model/served_model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "core/exec/executor.h"
#include "core/graph/op_def.h"
#include "model/saved/graph_part.h"
#include "model/saved/model_file.h"
#include "serving/model/live_rows.h"
#include "serving/model/ps_tables.h"
#include "serving/model/saved_rows.h"
#include "serving/model/served_rows.h"
#include "serving/model/stored_tables.h"

namespace cairn::serving {
namespace {

// A table of fewer bytes is copied with each version: a list of places would gain nothing.
constexpr std::size_t kPooledBytesMin = std::size_t{1} << 20;
constexpr std::size_t kPooledRowBytesMin = 16;

using Rows = std::shared_ptr<const ServedRows>;

// By variable: whether the graph reads it as a whole, which of a list of places is a copy at every
// run.
std::vector<bool> read_as_wholes(const Graph& graph) {
  std::vector<bool> whole(graph.variables.size());
  for (const Node& node : graph.nodes)
    if (node.op->name == "read_variable")
      whole.at(static_cast<std::size_t>(node.attributes.get<std::int64_t>("variable"))) = true;
  return whole;
}

bool is_pooled(const VariableSpec& spec) {
  if (spec.hashed) return true;
  const std::size_t row = static_cast<std::size_t>(spec.dim()) * dtype_bytes(spec.dtype);
  return spec.shape.rank() > 1 && row >= kPooledRowBytesMin &&
         row * static_cast<std::size_t>(spec.rows()) >= kPooledBytesMin;
}

Rows whole_rows(const SavedRowsReader& weights, const VariableSpec& spec) {
  Tensor value(spec.dtype, spec.shape);
  const std::size_t bytes = static_cast<std::size_t>(spec.dim()) * dtype_bytes(spec.dtype);
  initialize_rows(spec, weights.seed(), 0, spec.rows(), spec.dim(), value.mutable_raw());
  weights.read(spec, [&](std::int64_t row, const std::byte* values) {
    std::memcpy(value.mutable_raw() + static_cast<std::size_t>(row) * bytes, values, bytes);
  });
  return std::make_shared<WholeRows>(std::move(value));
}

// The column at `i`, as a message names it.
std::string column_text(const std::vector<ColumnSpec>& columns, std::size_t i) {
  if (i >= columns.size()) return "nothing more";
  return str('"', columns[i].name, "\" ", columns[i].type.to_string());
}

void verify_columns(const std::vector<ColumnSpec>& before, const std::vector<ColumnSpec>& next,
                    const char* verb) {
  for (std::size_t i = 0; i < std::max(before.size(), next.size()); ++i)
    if (const std::string was = column_text(before, i), is = column_text(next, i); was != is)
      throw InvalidArgumentError(str("it has another signature than the version that serves: it ",
                                     verb, ' ', is, ", and ", "that one ", verb, ' ', was,
                                     "; serve it under another name, or start the server anew"));
}

// A version that takes or gives other columns than the one before would break its clients.
void verify_signature(const SavedModel& before, const SavedModel& next) {
  verify_columns(before.input.columns, next.input.columns, "takes");
  verify_columns(before.outputs, next.outputs, "gives");
}

// The rows of all variables. Those in pools take their places after everything has been read, so
// that a version which fails half way leaves the one before as it was.
std::vector<Rows> rows_of(const SavedRowsReader& weights, const std::vector<VariableSpec>& specs,
                          const std::vector<bool>& wholes, std::map<std::string, Rows> before,
                          const StoredTables& stored,
                          const std::shared_ptr<ReadCounters>& counters) {
  std::vector<Rows> all(specs.size());
  std::vector<std::pair<std::size_t, std::unique_ptr<PooledRowsBuilder>>> pooled;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const VariableSpec& spec = specs[i];
    if (Rows rows = stored.rows_of(i); rows != nullptr) {
      all[i] = std::move(rows);
      continue;
    }
    if (!spec.hashed && (wholes.at(i) || !is_pooled(spec))) {
      all[i] = whole_rows(weights, spec);
      continue;
    }
    auto rows = std::make_unique<PooledRowsBuilder>(std::make_shared<VariableSpec>(spec),
                                                    weights.seed(), before[spec.name], counters);
    weights.read(spec, [&](std::int64_t row, const std::byte* values) { rows->put(row, values); });
    pooled.emplace_back(i, std::move(rows));
  }
  for (auto& [i, rows] : pooled) all[i] = rows->finish();
  return all;
}

using LiveOf = std::map<std::string, std::shared_ptr<LiveRows>>;

// The store through which one computing thread reads a version.
class ServedStore final : public VariableStore {
 public:
  ServedStore(const std::vector<VariableSpec>& specs, const std::vector<Rows>& rows)
      : specs_(specs), rows_(rows) {}

  void pull(const StepContext&, std::span<Read> reads) override {
    wanted_.clear();
    PsTables* ps = nullptr;
    for (Read& read : reads) {
      const VariableSpec& spec = specs_[read.variable];
      const ServedRows& rows = *rows_[read.variable];
      if (!read.ids.defined()) {
        read.value = rows.whole();
        continue;
      }
      read.value = Tensor(spec.dtype, spec.shape.with_dim(0, read.ids.shape()[0]));
      const auto ids = read.ids.values<std::int64_t>();
      if (PsTables* const on = rows.on_ps(); on != nullptr) {
        ps = on;
        wanted_.push_back({&spec, ids, read.value.mutable_raw()});
        continue;
      }
      rows.read(ids, read.value.mutable_raw(), scratch_);
    }
    if (ps != nullptr) stale += ps->read(wanted_);
  }
  // A saved model's graph changes no variable: save_model() refuses one that does.
  void push(const StepContext&, std::span<Update> updates) override {
    CAIRN_CHECK(updates.empty(), "a served model changes a variable");
  }

  std::int64_t stale = 0;  // rows so far that did not come from the ps in time

 private:
  const std::vector<VariableSpec>& specs_;
  const std::vector<Rows>& rows_;
  std::vector<std::int64_t> scratch_;
  std::vector<PsTables::Wanted> wanted_;
};

}  // namespace

struct ServedModel::State {
  // Makes plan and lanes, once model and rows are there.
  void make_ready(Graph graph, std::size_t threads);

  struct Lane {
    explicit Lane(const State& of) : store(of.model.variables, of.rows) {}
    Workspace workspace;
    ServedStore store;
    std::uint64_t runs = 0;
  };
  SavedModel model;
  std::shared_ptr<MemoryBudget::Hold> hold;  // before the rows: it ends after them
  std::vector<Rows> rows;                    // by variable
  LiveOf live;                               // the same, of a live model, but for those on ps
  std::shared_ptr<PsTables> ps;              // null: no table is on one
  std::shared_ptr<const Plan> plan;
  bool by_example = false;
  std::vector<std::unique_ptr<Lane>> lanes;  // by computing thread

  void take_rows(const SavedRowsReader& weights, const Graph& graph,
                 const std::shared_ptr<ReadCounters>& counters, const ServeOptions& options);
  // `weights`: null, there are none.
  void take_live_rows(const SavedRowsReader* weights, const Graph& graph,
                      const std::shared_ptr<ReadCounters>& counters, const ServeOptions& options);
};

void ServedModel::State::take_rows(const SavedRowsReader& weights, const Graph& graph,
                                   const std::shared_ptr<ReadCounters>& counters,
                                   const ServeOptions& options) {
  std::map<std::string, Rows> before;
  if (options.before != nullptr) {
    const State& of = *options.before->state_;
    verify_signature(of.model, model);
    for (std::size_t i = 0; i < of.rows.size(); ++i)
      before[of.model.variables[i].name] = of.rows[i];
  }
  StoredTables stored(weights, model.variables, graph, is_pooled,
                      {options.memory, counters,
                       options.before != nullptr ? options.before->state_->hold.get() : nullptr,
                       str("the model in ", model.folder)});
  hold = stored.take_hold();
  const std::vector<bool> wholes = read_as_wholes(graph);
  try {
    rows = rows_of(weights, model.variables, wholes, before, stored, counters);
  } catch (const ResourceExhaustedError&) {
    // Versions that are kept, by labels or by requests, hold the places of the tables' pools: this
    // version begins pools of its own.
    if (before.empty()) throw;
    rows = rows_of(weights, model.variables, wholes, {}, stored, counters);
  }
}

void ServedModel::State::take_live_rows(const SavedRowsReader* weights, const Graph& graph,
                                        const std::shared_ptr<ReadCounters>& counters,
                                        const ServeOptions& options) {
  const std::uint64_t seed = weights == nullptr ? 0 : weights->seed();
  const std::vector<bool> wholes = read_as_wholes(graph);
  std::vector<VariableSpec> tables;
  for (std::size_t i = 0; i < model.variables.size() && options.ps != nullptr; ++i)
    if (!wholes.at(i) && is_pooled(model.variables[i])) tables.push_back(model.variables[i]);
  if (!tables.empty())
    ps = std::make_shared<PsTables>(
        tables, seed,
        PsTablesOptions{
            .where = options.ps, .patience = options.ps_patience, .counters = counters});
  for (const VariableSpec& spec : model.variables) {
    if (std::ranges::find(tables, spec.name, &VariableSpec::name) != tables.end()) {
      rows.push_back(std::make_shared<PsRows>(spec, ps));
      continue;
    }
    auto made = std::make_shared<LiveRows>(spec, seed, counters);
    if (weights != nullptr)
      weights->read(spec, [&](std::int64_t row, const std::byte* values) {
        made->put({&row, 1}, values);
      });
    rows.push_back(made);
    live[spec.name] = std::move(made);
  }
}

void ServedModel::State::make_ready(Graph graph, std::size_t threads) {
  std::vector<VariableId> bound(rows.size());
  std::iota(bound.begin(), bound.end(), VariableId{0});
  plan = make_plan(std::move(graph), std::move(bound));
  by_example = std::ranges::all_of(model.outputs, [](const ColumnSpec& output) {
    return output.type.shape.rank() > 0 && output.type.shape[0] == Shape::kUnknown;
  });
  for (std::size_t i = 0; i < threads; ++i) lanes.push_back(std::make_unique<Lane>(*this));
}

ServedModel::ServedModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServedModel::~ServedModel() = default;

std::shared_ptr<const ServedModel> ServedModel::load(const std::string& folder,
                                                     const ServeOptions& options) {
  auto state = std::make_unique<State>();
  state->model = read_saved_model(folder);
  std::unique_ptr<SavedRowsReader> weights;
  if (!options.untrained) {
    weights = std::make_unique<SavedRowsReader>(
        options.weights.empty() ? folder + "/" + kWeightsFolder : options.weights);
    if (!options.weights.empty()) state->model.global_step = weights->global_step();
  }
  Graph graph = read_model_graph(state->model);
  const auto counters =
      options.counters != nullptr ? options.counters : std::make_shared<ReadCounters>();
  if (options.live)
    state->take_live_rows(weights.get(), graph, counters, options);
  else
    state->take_rows(*weights, graph, counters, options);
  state->make_ready(std::move(graph), static_cast<std::size_t>(options.threads));
  return std::shared_ptr<const ServedModel>(new ServedModel(std::move(state)));
}

std::shared_ptr<const ServedModel> ServedModel::part(
    const std::vector<std::string>& outputs) const {
  auto state = std::make_unique<State>();
  state->model = state_->model;
  state->hold = state_->hold;
  state->rows = state_->rows;
  state->ps = state_->ps;
  std::vector<std::size_t> places;
  std::vector<ColumnSpec> specs;
  for (const std::string& name : outputs) {
    const auto found = std::ranges::find(state_->model.outputs, name, &ColumnSpec::name);
    if (found == state_->model.outputs.end())
      throw FailedPreconditionError(str("the model has no output \"", name, '"'));
    places.push_back(static_cast<std::size_t>(found - state_->model.outputs.begin()));
    specs.push_back(*found);
  }
  GraphPart part = part_of(plan_graph(*state_->plan), places);
  state->model.outputs = std::move(specs);
  state->model.input.columns.clear();
  for (const std::size_t column : part.columns)
    state->model.input.columns.push_back(state_->model.input.columns.at(column));
  state->make_ready(std::move(part.graph), state_->lanes.size());
  return std::shared_ptr<const ServedModel>(new ServedModel(std::move(state)));
}

const SavedModel& ServedModel::about() const { return state_->model; }
bool ServedModel::is_by_example() const { return state_->by_example; }

// Runs in an evaluation's context, as LoadedModel does.
std::vector<Tensor> ServedModel::predict(const Element& batch, int thread) const {
  State::Lane& lane = *state_->lanes.at(static_cast<std::size_t>(thread));
  StepContext step;
  step.global_step = -1;
  step.closure = ++lane.runs;
  lane.store.stale = 0;
  std::vector<std::vector<Element>> elements(1);
  elements.front() = {batch};
  return run(state_->plan, lane.workspace, lane.store, step, {}, std::move(elements));
}

std::int64_t ServedModel::stale_rows(int thread) const {
  return state_->lanes.at(static_cast<std::size_t>(thread))->store.stale;
}

std::int64_t ServedModel::ps_step() const { return state_->ps == nullptr ? 0 : state_->ps->step(); }

const LiveOf& ServedModel::live() const { return state_->live; }

ServedModel::Memory ServedModel::memory() const {
  Memory memory;
  for (const Rows& rows : state_->rows) {
    memory.bytes += rows->bytes();
    memory.shared += rows->shared_bytes();
  }
  if (state_->ps != nullptr) memory.bytes += state_->ps->bytes();
  return memory;
}

}  // namespace cairn::serving
