#include "serving/model/served_model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/exec/executor.h"
#include "core/graph/op_def.h"
#include "model/saved/model_file.h"
#include "serving/model/saved_rows.h"
#include "serving/model/served_rows.h"

namespace cairn::serving {
namespace {

// A table of fewer bytes is copied with each version: a list of places would gain nothing.
constexpr std::size_t kPooledBytesMin = std::size_t{1} << 20;
constexpr std::size_t kPooledRowBytesMin = 16;

using Rows = std::shared_ptr<const ServedRows>;

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

Rows pooled_rows(const SavedRowsReader& weights, const VariableSpec& spec, Rows before) {
  PooledRowsBuilder rows(std::make_shared<VariableSpec>(spec), weights.seed(), std::move(before));
  weights.read(spec,
               [&](std::int64_t row, const std::byte* values) { rows.put(row, values); });
  return rows.finish();
}

// What one computing thread reads a version through.
class ServedStore final : public VariableStore {
 public:
  ServedStore(const std::vector<VariableSpec>& specs, const std::vector<Rows>& rows)
      : specs_(specs), rows_(rows) {}

  void pull(const StepContext&, std::span<Read> reads) override {
    for (Read& read : reads) {
      const VariableSpec& spec = specs_[read.variable];
      const ServedRows& rows = *rows_[read.variable];
      if (!read.ids.defined()) {
        read.value = rows.whole();
        continue;
      }
      read.value = Tensor(spec.dtype, spec.shape.with_dim(0, read.ids.shape()[0]));
      rows.read(read.ids.values<std::int64_t>(), read.value.mutable_raw(), scratch_);
    }
  }
  // A saved model's graph changes no variable: save_model() refuses one that does.
  void push(const StepContext&, std::span<Update> updates) override {
    CAIRN_CHECK(updates.empty(), "a served model changes a variable");
  }

 private:
  const std::vector<VariableSpec>& specs_;
  const std::vector<Rows>& rows_;
  std::vector<std::int64_t> scratch_;
};

}  // namespace

struct ServedModel::State {
  struct Lane {
    explicit Lane(const State& of) : store(of.model.variables, of.rows) {}
    Workspace workspace;
    ServedStore store;
    std::uint64_t runs = 0;
  };
  SavedModel model;
  std::vector<Rows> rows;  // by variable
  std::shared_ptr<const Plan> plan;
  std::vector<std::unique_ptr<Lane>> lanes;  // by computing thread
};

ServedModel::ServedModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServedModel::~ServedModel() = default;

std::shared_ptr<const ServedModel> ServedModel::load(const std::string& folder,
                                                     const ServeOptions& options) {
  auto state = std::make_unique<State>();
  state->model = read_saved_model(folder);
  const SavedRowsReader weights(folder + "/" + kWeightsFolder);
  std::map<std::string, Rows> before;
  if (options.before != nullptr)
    for (std::size_t i = 0; i < options.before->state_->rows.size(); ++i)
      before[options.before->about().variables[i].name] = options.before->state_->rows[i];
  std::vector<VariableId> bound;
  for (const VariableSpec& spec : state->model.variables) {
    bound.push_back(static_cast<VariableId>(bound.size()));
    state->rows.push_back(is_pooled(spec) ? pooled_rows(weights, spec, before[spec.name])
                                          : whole_rows(weights, spec));
  }
  state->plan = make_plan(read_model_graph(state->model), std::move(bound));
  for (int i = 0; i < options.threads; ++i)
    state->lanes.push_back(std::make_unique<State::Lane>(*state));
  return std::shared_ptr<const ServedModel>(new ServedModel(std::move(state)));
}

const SavedModel& ServedModel::about() const { return state_->model; }

// Runs in an evaluation's context, as LoadedModel does.
std::vector<Tensor> ServedModel::predict(const Element& batch, int thread) const {
  State::Lane& lane = *state_->lanes.at(static_cast<std::size_t>(thread));
  StepContext step;
  step.global_step = -1;
  step.closure = ++lane.runs;
  std::vector<std::vector<Element>> elements(1);
  elements.front() = {batch};
  return run(state_->plan, lane.workspace, lane.store, step, {}, std::move(elements));
}

ServedModel::Memory ServedModel::memory() const {
  Memory memory;
  for (const Rows& rows : state_->rows) {
    memory.bytes += rows->bytes();
    memory.shared += rows->shared_bytes();
  }
  return memory;
}

}  // namespace cairn::serving
