// Step: one run of a plan, without input or output of its own. It computes until it needs something
// from outside, says what, and goes on when it is asked again:
//
//   Step step(plan, workspace, places, context, inputs);
//   for (;;) {
//     const Step::Next needed = step.next();
//     if (auto* pull = std::get_if<Step::Pull>(&needed))
//       ...  fill pull->reads
//     else if (auto* push = std::get_if<Step::Push>(&needed))
//       ...  apply push->updates
//     else if (auto* reduce = std::get_if<Step::AllReduce>(&needed))
//       ...  begin reduce->reductions, and go on at once
//     else if (auto* await = std::get_if<Step::Await>(&needed))
//       ...  wait for those begun with await->ticket, and with tickets before it
//     else
//       break;
//   }
//   step.outputs()
//
// So whoever drives it decides what waits for what: a lane's coroutine awaits its shards and its
// turn to compute, run() calls a store.
// A plan of a graph without all_reduce, or for one replica, asks for no AllReduce and no Await.
//
// A check of numerics that fails stops what is computed from the checked value, or from the check's
// result, and nothing else: no such update is pushed, updates that do not depend on it are. The
// error is raised in the place of the first all-reduce, or the first pull by such ids, that depends
// on it, else in the place of Finished: a step with a failed check has no outputs.
//   Thread  one at a time. Several steps may be between two calls of next() at once, each with its
//           own Workspace.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/exec/executor.h"
#include "core/exec/plan.h"
#include "core/exec/workspace.h"

namespace cairn {

struct RuleRates;

class Step {
 public:
  // Rows to be read: every `value` is to be filled before next() is called again.
  struct Pull {
    std::span<Read> reads;
  };
  // Changes to be made before next() is called again. The values stay where they are until then.
  // Updates with `on_device` are only announced (UpdatePlaces::wants_told()): the next call of
  // next() applies those that the store has not left out.
  struct Push {
    std::span<Update> updates;
  };
  // Reductions to begin, in this order after all begun before, on every replica alike. next() may
  // be called again at once; it computes what does not depend on them. Tickets count from 0. The
  // list is valid until next() is called again, what the reductions point to until they have been
  // awaited. That is the host's memory: of a device with memory of its own the shares are copied
  // out, and what they have come to is copied in when it has been awaited. With sum_on() they stay
  // on the device, which has begun to sum them already, and the reductions point nowhere.
  struct AllReduce {
    std::int32_t ticket = 0;
    std::span<const Reduction> reductions;
  };
  // The reductions of this ticket, and of all before it, must have ended before next() is called
  // again.
  struct Await {
    std::int32_t ticket = 0;
  };
  struct Finished {};
  using Next = std::variant<Pull, Push, AllReduce, Await, Finished>;

  // `places` outlives the step.
  //   Errors  InvalidArgument: the plan all-reduces over another number of replicas than
  //           `context` says.
  Step(std::shared_ptr<const Plan> plan, Workspace& workspace, UpdatePlaces& places,
       const StepContext& context, RunInputs inputs);
  // A step may be given up at any time. What it had pushed, or begun to reduce, may still be on its
  // way: its memory is then not used again.
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Before the first next(): this replica's member, which outlives the step, of a group of the
  // devices on which the replicas' runs compute. That a ticket has been awaited then means that all
  // replicas have begun it; a step that ends otherwise than by Finished leaves the group unusable.
  void sum_on(DeviceMember& member) { member_ = &member; }

  // Computes up to what it needs next. Not to be called again after Finished, nor after an error.
  //   Errors  those of the operations; InvalidArgument: an id outside its variable, or a check of
  //           numerics that failed (see above).
  Next next();
  const StepContext& context() const { return context_; }
  // Will next() compute, or only say that the step has finished?
  bool computes_next() const { return bound_ == nullptr || wave_ + 1 < plan_->waves.size(); }
  const std::vector<Tensor>& outputs() const { return outputs_; }  // once it has finished

 private:
  struct FailedCheck {
    std::int32_t node = 0;      // the first that failed
    float value = 0;            // what it found
    std::string message;        // empty: not known yet
    std::vector<bool> stopped;  // by node: depends on this check, or on another that failed
  };
  void bind();
  const std::byte* place_within(std::int32_t value) const;
  void set_outside_values();
  void give(std::int32_t value, const Tensor& tensor);
  void give_rounded(std::int32_t value, const Tensor& tensor);
  bool lies_as_constant(std::int32_t value) const;
  void send_constants();
  void bring(std::int32_t value);
  void bring_what_host_reads();
  void bring_for_reads();
  void bring_for_update(const BoundUpdate& update);
  void bring_shares();
  void wait_for_copies();
  const std::byte* on_host(std::int32_t value);
  void place_updates();
  void make_step_key();
  void compute();
  void run_instruction(const Instruction& instruction);
  void check_values(const Instruction& instruction);
  std::span<Read> reads();
  void request(std::size_t group);
  void after_pull();
  bool serve(std::size_t group);
  void serve_whole(const DeviceRows::Held& held, std::size_t group);
  void serve_rows(const DeviceRows::Held& held, std::size_t group);
  void look_up(std::int32_t read, const RowKernels::GatherRun& run);
  DType dtype_of_rows(std::int32_t read) const;
  // `ids`: what they are of, if not of the values that the graph has for it.
  void enqueue_lookups(LookupsTogether& prepared, std::optional<DType> ids = {});
  DeviceRows::Held* hold(std::size_t variable);  // of the graph
  void serve_cached(DeviceRows::Held& held, std::size_t group);
  const std::byte* find_cached(DeviceRows::Held& held, std::int32_t variable, const TensorType& ids,
                               const std::byte* at);
  bool has_only_batch(std::size_t wave, std::size_t group) const;
  std::vector<Tensor> columns_of(const ReadGroup& group,
                                 const std::vector<std::vector<Element>>& elements) const;
  void prepare_later();
  const std::byte* places_of(BoundUpdate& update, DeviceRows::Held& held);
  static TensorType type_here(const DeviceRows::Held& held);
  bool stays_as_read(std::int32_t read) const;
  std::span<const std::int32_t> id_readers(std::int32_t update) const;
  bool has_ids_of_read(const BoundUpdate& update) const;
  TensorType ids_type(std::int32_t update) const;
  TensorType joined_type(std::span<const std::int32_t> readers) const;
  const std::byte* ids_here(BoundUpdate& update);
  const std::byte* join_ids(std::span<const std::int32_t> readers,
                            std::shared_ptr<std::byte>& joined);
  void find_own_ids(BoundUpdate& update);
  DeviceRows::Held* held_for(const BoundUpdate& update);
  void send_rates(std::span<BoundUpdate> updates);
  void enqueue_updates(std::span<BoundUpdate* const> updates);
  void enqueue_update(BoundUpdate& update);
  void enqueue_together(std::span<BoundUpdate* const> updates);
  RowKernels::UpdateRun update_run(BoundUpdate& update);
  RowKernels::UpdateOf update_of(const BoundUpdate& update);
  std::int64_t rows_here(const BoundUpdate& update);
  bool is_sparse(std::int32_t update) const;
  bool is_value_read(std::int32_t update) const;
  bool made_here(const BoundUpdate& update);
  Update told_update(const BoundUpdate& update);
  void after_push();
  void make_updates_here();
  bool may_record() const;
  bool rate_is_given(std::int32_t update) const;
  std::vector<const std::byte*> rows_on_device();
  bool run_recorded();
  void enqueue_all();
  float learning_rate(std::int32_t update);
  void expand(std::size_t group);
  bool deals_here(const ReadGroup& group) const;
  void deal_out(std::size_t group);
  bool sums_here(const BoundUpdate& update) const;
  const ReadHere& source_of(const BoundUpdate& update) const;
  UniqueIds& ids_of_source(const BoundUpdate& update);
  void prepare_sums(std::span<BoundUpdate* const> updates);
  void begin_sums();
  RowKernels::UpdateRun values_of(const BoundUpdate& update, std::int64_t dim);
  RowKernels::GatherRun run_of_lookup(std::int32_t read, const RowBlock& block,
                                      const std::byte* ids);
  void look_up_rows(std::int32_t read, const RowBlock& block, const std::byte* ids);
  std::span<Update> updates();
  Update make_update(BoundUpdate& update);
  Tensor dense_value(std::int32_t update);
  Tensor host_tensor(std::int32_t update, const TensorType& type);
  Tensor sum_rows(BoundUpdate& update, const UniqueIds& ids, const UpdateRule& rule);
  std::span<const Reduction> reductions();
  void begin_on_device(std::span<Reduction> reductions);
  void take_in_reduced(std::int32_t ticket);
  void fail_check(std::int32_t node, const float* values, std::int64_t count);
  void stop_dependents(std::int32_t check);
  void describe_failed_check();
  void raise_failed_check() const;
  bool stops(std::int32_t node) const;
  bool by_stopped_ids(std::int32_t read) const;
  std::string blame();
  Next finish();
  void collect_outputs();
  void let_go();
  Tensor output(std::int32_t value);
  const Tensor* outside_tensor(std::int32_t value) const;

  const Node& node(std::int32_t i) const { return plan_->graph.nodes[static_cast<std::size_t>(i)]; }
  std::int32_t input(std::int32_t i, std::size_t k) const {
    return plan_->value(node(i).inputs[k]);
  }
  const std::byte* data(std::int32_t value) const {
    return space_.pointers[static_cast<std::size_t>(bound_->root(value))];
  }
  std::byte* arena_at(std::int64_t offset) const { return arena_.get() + offset; }
  const GraphVariable& variable_of(std::int32_t i) const;
  VariableId stored_variable(std::int32_t i) const;  // the store's number for it
  const std::shared_ptr<std::byte>& owner_of(std::int32_t value) const;

  std::shared_ptr<const Plan> plan_;
  Workspace::State& space_;
  UpdatePlaces& places_;
  // Lends the store's rows to the device. If null, all reads and updates are requests to the store.
  RowLender* lender_ = nullptr;
  const StepContext context_;
  RunInputs inputs_;
  Tensor step_key_;  // undefined: the graph does not ask for it
  BoundPlan* bound_ = nullptr;
  std::shared_ptr<std::byte> arena_;
  // values that lie where the store wants them, and not in the arena
  std::vector<std::pair<std::int32_t, std::shared_ptr<std::byte>>> placed_;
  std::size_t wave_ = 0;
  bool pushed_ = false, finished_ = false;
  std::int32_t tickets_begun_ = 0, tickets_awaited_ = 0;
  // If the device has its own memory: what is reduced, by ticket. Empty once it was copied back in.
  std::vector<std::vector<std::pair<std::int32_t, Tensor>>> shares_on_host_;
  DeviceMember* member_ = nullptr;       // null: what is reduced meets in the host's memory
  std::unique_ptr<FailedCheck> failed_;  // null: every check so far has passed
  std::vector<Tensor> outputs_;
};

}  // namespace cairn
