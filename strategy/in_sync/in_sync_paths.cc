#include "strategy/in_sync/in_sync_paths.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>

#include "core/base/log.h"
#include "core/graph/join_replicas.h"
#include "core/graph/op_def.h"
#include "core/graph/recording.h"
#include "strategy/base/dealt_iterator.h"
#include "strategy/in_sync/replica_runtime.h"

namespace cairn {
namespace {

bool within_trace() { return TraceContext::current() != nullptr; }

// The elements that the next step of this kind will take from its datasets. The replica that comes
// to it first reads them for all; each then has its part sent to its device.
class NextOfReplicas {
 public:
  struct From {
    std::shared_ptr<const DealtIterator> data;
    std::size_t calls;
  };
  explicit NextOfReplicas(std::vector<From> from) : from_(std::move(from)) {}

  // `piece` says which of an iterator's replicas it is.
  std::vector<Tensor> of(const std::function<std::size_t(const DealtIterator&)>& piece) {
    std::lock_guard hold(mutex_);
    if (read_.empty())
      for (const From& one : from_) read_.push_back(one.data->read_ahead(one.calls));
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < from_.size(); ++i) {
      const std::vector<Tensor>& own = read_[i][piece(*from_[i].data)];
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  }

 private:
  std::mutex mutex_;  // guards all below
  const std::vector<From> from_;
  std::vector<std::vector<std::vector<Tensor>>> read_;  // by iterator and replica
};

}  // namespace

InSyncStrategy::InStep::InStep(InSyncStrategy& strategy, std::unique_ptr<ReplicaRunner> runner,
                               bool check_replicas, std::unique_ptr<VariableStore> rows)
    : strategy_(strategy),
      replicas_(strategy.replicas_),
      local_(strategy.local_),
      first_(strategy.first_),
      check_replicas_(check_replicas),
      recording_(strategy, strategy.variable_creator(), replicas_, first_, local_),
      rows_(std::move(rows)),
      group_(std::move(runner)) {}

// ---- running ----

// Within a function that is being traced, this trace is one replica's; the others' come before or
// after it. Otherwise all replicas run now.
RunResult InSyncStrategy::InStep::call_for_each_replica(Function& function,
                                                        const std::vector<RunArgument>& arguments) {
  if (within_trace()) return strategy_.recorded_part(recording_, function, arguments);
  std::vector<Call> calls;
  for (int i = 0; i < local_; ++i)
    calls.push_back({&strategy_.replica(first_ + i), arguments_now(arguments, i)});
  trace_all(function, calls);
  const RunResult result = regrouped(run_together(calls));
  std::vector<PerReplica> values;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Tensor* constant = common_constant(calls, i);
    values.push_back(constant != nullptr ? PerReplica(Array(*constant)) : result[i]);
  }
  const auto& function_of_first = calls.front().function;
  return RunResult(std::move(values),
                   OutputNames(function_of_first, &function_of_first->graph.output_names));
}

// A call: all replicas run the whole of it, and each has the same to tell.
InSyncStrategy::StepOutputs InSyncStrategy::InStep::run_step(
    Function& function, const std::vector<Argument>& arguments) {
  std::vector<Call> calls;
  for (const StrategyPlace& place : recording_.cross_places()) calls.push_back({&place, arguments});
  trace_all(function, calls);
  return std::move(run_together(calls).front());
}

// On the caller's thread, one after another: what a program's function and its layers remember is
// theirs alone.
void InSyncStrategy::InStep::trace_all(Function& function, std::vector<Call>& calls) {
  strategy_.runtime_.begin_traces();
  for (Call& call : calls) {
    const Scope open(strategy_.variable_creator(), call.place);
    call.function = function.concrete(call.arguments, strategy_.variable_creator());
  }
  require_meetings(calls);
}

// Graphs that were compared are kept, so that their addresses stay theirs.
void InSyncStrategy::InStep::require_meetings(const std::vector<Call>& calls) {
  const auto& first = calls.front().function;
  for (std::size_t i = 1; i < calls.size(); ++i) {
    const auto& own = calls[i].function;
    if (own->hash == first->hash || meet_.count({first, own}) > 0) continue;
    require_same_meetings(first->graph, own->graph, i);
    meet_.emplace(first, own);
  }
}

// The constant that output i is, on every replica; nullptr: it is computed, or they differ. Another
// process may have another one: whether reduce() must ask it cannot depend on what is here.
const Tensor* InSyncStrategy::InStep::common_constant(const std::vector<Call>& calls,
                                                      std::size_t i) const {
  if (local_ < replicas_) return nullptr;
  const Tensor* first = nullptr;
  for (const Call& call : calls) {
    const Graph& graph = call.function->graph;
    const Node& node = graph.nodes[static_cast<std::size_t>(graph.outputs[i].node)];
    if (!node.op->has(OpFlags::kConstant)) return nullptr;
    const Tensor& value = node.attributes.get<Tensor>("value");
    if (first == nullptr) first = &value;
    if (value.type() != first->type() || value.dtype() == DType::kString ||
        std::memcmp(value.raw(), first->raw(), value.bytes()) != 0)
      return nullptr;
  }
  return first;
}

// Elements are drawn before any replica starts, so that all have theirs or none.
std::vector<RunInputs> InSyncStrategy::InStep::inputs_of(const std::vector<Call>& calls) {
  const std::vector<std::int64_t> taken = calls.front().function->graph.elements_taken();
  for (const Call& call : calls)
    if (call.function->graph.elements_taken() != taken)
      throw InvalidArgumentError(
          "the replicas take different numbers of elements: get_next() must be called as often on "
          "each of them");
  std::vector<RunInputs> inputs(calls.size());
  std::vector<NextOfReplicas::From> next;
  std::size_t iterator = 0;
  for (std::size_t a = 0; a < calls.front().arguments.size(); ++a) {
    if (std::holds_alternative<Tensor>(calls.front().arguments[a])) {
      for (std::size_t i = 0; i < calls.size(); ++i)
        inputs[i].arguments.push_back(std::get<Tensor>(calls[i].arguments[a]));
      continue;
    }
    const auto dealt = std::dynamic_pointer_cast<const DealtIterator>(
        std::get<std::shared_ptr<const IteratorSource>>(calls.front().arguments[a]));
    if (!dealt)
      throw InvalidArgumentError("run: a dataset of another strategy; pass what iterate() made");
    for (RunInputs& each : inputs) each.elements.emplace_back();
    for (std::int64_t k = 0; k < taken[iterator]; ++k) {
      std::vector<Element> elements = strategy_.elements_of(*dealt);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        inputs[i].elements.back().push_back(std::move(elements[i]));
    }
    if (dealt->fetches()) next.push_back({dealt, static_cast<std::size_t>(taken[iterator])});
    ++iterator;
  }
  if (strategy_.on_devices_ && !next.empty()) {
    const auto shared = std::make_shared<NextOfReplicas>(std::move(next));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i].next = [this, shared, i] {
        return shared->of([&](const DealtIterator& from) {
          return strategy_.piece_of(from, static_cast<int>(i));
        });
      };
  }
  return inputs;
}

// Equal graphs are one plan; they differ only where the function asked for its replica. The data is
// touched last, when all else is known to fit.
std::vector<InSyncStrategy::StepOutputs> InSyncStrategy::InStep::run_together(
    const std::vector<Call>& calls) {
  std::vector<ReplicaRunner::Run> runs;
  const auto& first = calls.front().function;
  for (const Call& call : calls) {
    const bool same =
        call.function->hash == first->hash && call.function->variables == first->variables;
    runs.push_back(
        {strategy_.plan_of(same ? first : call.function, replicas_, group_->sums_on_devices()),
         {}});
  }
  std::vector<RunInputs> inputs = inputs_of(calls);
  for (std::size_t i = 0; i < calls.size(); ++i) runs[i].inputs = std::move(inputs[i]);
  const StepContext step = strategy_.next_step(*first);
  std::vector<std::vector<Tensor>> outputs = group_->run(std::move(runs), step);
  if (check_replicas_) strategy_.runtime_.require_equal_copies();
  std::vector<StepOutputs> all;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    StepOutputs& own = all.emplace_back();
    for (Tensor& value : outputs[i]) own.values.emplace_back(std::move(value));
    own.names = OutputNames(calls[i].function, &calls[i].function->graph.output_names);
  }
  return all;
}

// ---- recording a function that all replicas run ----

// Outside a trace all values of a PerReplica are at hand, whichever replica has them.
std::vector<Array> InSyncStrategy::InStep::replicas_here(const PerReplica& value) const {
  if (!within_trace()) return strategy_.LocalStrategy::replicas_here(value);
  return {value.of_replica(static_cast<std::size_t>(recording_.part_here("reduce")))};
}

Array InSyncStrategy::InStep::reduce_replicas(ReduceOp op, const std::vector<Array>& values) const {
  if (!within_trace()) return strategy_.LocalStrategy::reduce_replicas(op, values);
  return recording_.reduced(op, values.front());
}

Array InSyncStrategy::InStep::gather_replicas(const std::vector<Array>& values, int axis) const {
  if (!within_trace()) return strategy_.LocalStrategy::gather_replicas(values, axis);
  return recording_.gathered(values.front(), axis);
}

std::vector<RunValue> InSyncStrategy::InStep::local_results(const PerReplica& value) const {
  recording_.require_at_hand(value);
  return strategy_.LocalStrategy::experimental_local_results(value);
}

std::vector<Array> InSyncStrategy::InStep::all_reduce(const ReplicaContext&, ReduceOp op,
                                                      const std::vector<Array>& values) const {
  return recording_.reduced(op, values);
}

PerReplica InSyncStrategy::InStep::merge(const ReplicaContext& replica,
                                         const ReplicaContext::MergeBody& body,
                                         const std::vector<Array>& arguments) {
  return recording_.merged(replica, body, arguments);
}

// ---- data ----

ElementSpec InSyncStrategy::InStep::distributed_spec(const Dataset& dataset,
                                                     const InputOptions& options) const {
  const bool alone = local_ == replicas_;
  const ReplicaPieces pieces = pieces_here(dataset, options);
  return alone ? pieces.dataset.element_spec() : any_size_spec(dataset.element_spec());
}

WorkerShare InSyncStrategy::InStep::share() const {
  return {replicas_ / local_, first_ / local_, local_};
}

ReplicaPieces InSyncStrategy::InStep::pieces_here(const Dataset& dataset,
                                                  const InputOptions& options) const {
  if (!dataset.batched())
    throw InvalidArgumentError(
        "experimental_distribute_dataset: the dataset's elements are single examples; batch() it, "
        "by the global batch size");
  return pieces_of_worker(dataset, options.auto_shard_policy, options.batch_splitter, share());
}

// If all processes read the same batches, each cuts them as they come, so that the position in a
// checkpoint fits any number of replicas.
std::shared_ptr<const IteratorSource> InSyncStrategy::InStep::iterator_of(
    const DistributedDataset& distributed) {
  const bool alone = local_ == replicas_;
  const Dealing in_turn = alone ? Dealing::kInTurn : Dealing::kInTurnOfSome;
  const InputContext pipeline{.num_input_pipelines = share().workers,
                              .input_pipeline_id = share().worker};
  const bool fetches = distributed.options().experimental_fetch_to_device;
  if (distributed.function())
    return strategy_.dealt(read_ahead(distributed.dataset(), distributed.options(), local_),
                           in_turn, local_, fetches, pipeline);
  ReplicaPieces pieces = pieces_here(distributed.dataset(), distributed.options());
  if (!pieces.warning.empty()) log_warning(pieces.warning);
  if (pieces.cut_batches.defined())
    return strategy_.dealt(read_ahead(pieces.cut_batches, distributed.options(), 1), Dealing::kCut,
                           replicas_, fetches);
  return strategy_.dealt(read_ahead(pieces.dataset, distributed.options(), local_), in_turn, local_,
                         fetches, pipeline);
}

std::vector<Element> InSyncStrategy::InStep::next_elements(const IteratorSource& source) {
  const auto* own = dynamic_cast<const DealtIterator*>(&source);
  if (own == nullptr) throw InvalidArgumentError("get_next: an iterator of another strategy");
  return strategy_.elements_of(*own);
}

}  // namespace cairn
