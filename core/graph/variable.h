// Variables, apart from where their rows live: name, type, initial value, and how replicas' values
// are combined.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/reduce_op.h"
#include "core/graph/row_policy.h"
#include "core/graph/subscript.h"
#include "core/graph/update_rule.h"
#include "core/tensor/tensor.h"

namespace cairn {

// When the copies of a variable are brought together, as tf.VariableSynchronization.
enum class Synchronization : std::uint8_t { kAuto, kNone, kOnWrite, kOnRead };

// How initial values come about: a function of (seed, variable name, row, column) alone, so any
// shard can make its own rows.
struct Initializer {
  // The numbers are those of the wire format; never renumber.
  enum class Kind : std::uint8_t {
    kZeros = 0,
    kConstant = 1,
    kUniform = 2,
    kNormal = 3,
    kTruncatedNormal = 4,
    kValue = 5
  };
  Kind kind = Kind::kZeros;
  float a = 0;  // constant: the value; uniform: lowest; normal: mean
  float b = 0;  // uniform: upper bound; normal: standard deviation
  std::uint64_t seed = 0;
  Tensor value;  // kValue: the whole initial value

  static Initializer zeros() { return {}; }
  static Initializer constant(float value) { return {Kind::kConstant, value, 0, 0, {}}; }
  static Initializer uniform(float low, float high, std::uint64_t seed = 0) {
    return {Kind::kUniform, low, high, seed, {}};
  }
  static Initializer normal(float mean, float stddev, std::uint64_t seed = 0) {
    return {Kind::kNormal, mean, stddev, seed, {}};
  }
  static Initializer truncated_normal(float mean, float stddev, std::uint64_t seed = 0) {
    return {Kind::kTruncatedNormal, mean, stddev, seed, {}};
  }
  // Glorot, Bengio, AISTATS 2010: uniform in ±sqrt(6 / (fan_in + fan_out)).
  static Initializer glorot_uniform(std::int64_t fan_in, std::int64_t fan_out,
                                    std::uint64_t seed = 0);
  // He et al., ICCV 2015: normal with deviation sqrt(2 / fan_in).
  static Initializer he_normal(std::int64_t fan_in, std::uint64_t seed = 0);
  static Initializer from(Tensor value) { return {Kind::kValue, 0, 0, 0, std::move(value)}; }
};

// Made once by a strategy and shared by all handles; every task of a cluster has the same.
struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;  // known; axis 0 numbers the rows (a scalar is one row)
  Initializer initializer;
  Aggregation aggregation = Aggregation::kNone;
  Synchronization synchronization = Synchronization::kAuto;
  bool trainable = true;
  // Rows live in a hash table: only those that were ever updated take memory, so that there may be
  // many more of them than fit (ids that are hashes). Such a variable is read and updated by rows
  // alone, and by rules that leave other rows as they are.
  bool hashed = false;
  // of a hashed variable alone
  RowPolicy policy = {};
  // All rows on one shard, whatever the partitioner says, so that a closure that is run again finds
  // there what its first run pushed, even if it names another row now.
  bool one_part = false;

  std::int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
  std::int64_t dim() const { return shape.row_elements(); }  // elements a row
};

// InvalidArgument naming the variable: no name, an unknown dimension, an initializer that does not
// fit the type, a hashed one of rank below 2 or with a given initial value, or a policy for rows
// that is impossible, or of a variable that is not hashed.
void verify_spec(const VariableSpec& spec);
// InvalidArgument naming a hashed variable that would be read as a whole, or whose update would
// take all of its rows: a dense one, or one under a rule that changes rows without a gradient too.
void verify_whole_read(const VariableSpec& spec);
void verify_update(const VariableSpec& spec, const UpdateRule& rule, bool sparse);

// Writes the initial values of rows [begin, begin + count) to `out`, `dim` elements a row, rows
// `out_stride` elements apart. `key_seed` is the strategy's seed. The same values come out however
// the rows are cut.
//   Thread  any.
void initialize_rows(const VariableSpec& spec, std::uint64_t key_seed, std::int64_t begin,
                     std::int64_t count, std::int64_t out_stride, std::byte* out);

// A user's handle to a variable that some strategy made. Copies mean the same variable. Reads and
// updates are recorded: into the function being traced, or else at once through the store of the
// strategy that made it (eager).
class Variable {
 public:
  Variable() = default;
  explicit Variable(std::shared_ptr<const VariableSpec> spec, class EagerRuntime* runtime = nullptr)
      : spec_(std::move(spec)), runtime_(runtime) {}

  const VariableSpec& spec() const { return *spec_; }
  const std::string& name() const { return spec_->name; }
  const Shape& shape() const { return spec_->shape; }
  bool defined() const { return spec_ != nullptr; }

  Array read() const;  // the whole value
  operator Array() const { return read(); }
  // Rows by id: ids int32 or int64 of any shape S -> [S..., row shape], in the order asked. An id
  // outside [0, rows) is an InvalidArgument when run.
  Array gather(const Array& ids) const;
  // A part of it, as Python's v[...] (core/graph/subscript.h), to be read or assigned to.
  //   Errors  InvalidArgument: an index out of bounds, a step of 0, too many subscripts.
  class VariablePart at(const std::vector<Subscript>& subscripts) const;
  void assign(const Array& value) const;
  void assign_add(const Array& value) const;
  void assign_sub(const Array& value) const;
  // Rows changed by id: ids int32 or int64 of any shape S, rows [S..., row shape]. Where ids are
  // equal, the changes are made one after another. Each is made where the row lies, so that changes
  // by others at the same time are not lost. With several replicas in sync the rows of all of them
  // are one change: SUM takes them as they are, MEAN divides them by the number of replicas first.
  //   Errors  InvalidArgument: rows of another shape or dtype; scatter_div of integers. When run:
  //           an id outside [0, rows).  Unimplemented: on a variable that is combined when it is
  //           read; scatter_update, scatter_min and scatter_max with aggregation SUM or MEAN.
  void scatter_add(const Array& ids, const Array& rows) const;
  void scatter_sub(const Array& ids, const Array& rows) const;
  void scatter_mul(const Array& ids, const Array& rows) const;
  void scatter_div(const Array& ids, const Array& rows) const;
  void scatter_min(const Array& ids, const Array& rows) const;
  void scatter_max(const Array& ids, const Array& rows) const;
  void scatter_update(const Array& ids, const Array& rows) const;  // of equal ids the last one wins
  // These rows of a hashed variable go for good, as its RowPolicy has others go: they read as their
  // initial values, and begin anew if they come again. With several replicas in sync those go that
  // any of them names. Ids of any shape.
  //   Errors  InvalidArgument: the variable's policy evicts nothing.
  void evict(const Array& ids) const;
  // ids [b..., k], rows [b..., k, slice shape]: at [i..., ids[i..., j]] it becomes rows[i..., j].
  // The leading dimensions b of both are those of the variable. With ids [k] this is
  // scatter_update(); with more it reads and assigns the whole variable, and what others change
  // meanwhile is lost.
  //   Errors  InvalidArgument: other shapes. When run: an id out of range.
  void batch_scatter_update(const Array& ids, const Array& rows) const;
  // An optimizer's update. Dense: `gradient` has the variable's shape; sparse: rows of
  // `slices.ids`. With several replicas in sync their gradients are summed and make one update.
  // A caller that has already summed them (sum_over_replicas()) says so by kAllReplicas.
  enum class GradientOf : std::uint8_t { kThisReplica, kAllReplicas };
  void update(const UpdateRule& rule, const Array& gradient, const Array& learning_rate,
              GradientOf whose = GradientOf::kThisReplica) const;
  void update(const UpdateRule& rule, const IndexedSlices& gradient,
              const Array& learning_rate) const;

  const std::shared_ptr<const VariableSpec>& shared_spec() const { return spec_; }
  EagerRuntime* runtime() const { return runtime_; }

 private:
  std::shared_ptr<const VariableSpec> spec_;
  EagerRuntime* runtime_ = nullptr;
};

// Some elements of a variable: what Variable::at() gives. Only the rows that it touches are read
// from where the variable lies, and only they are changed.
//   Shape   value.shape() == shape(): nothing is broadcast.
//   Cost    the numbers of the rows become part of the function, 8 bytes each; all rows in order
//           cost nothing.
//   Errors  those of the variable's own reads and updates. InvalidArgument: another shape.
//           Unimplemented: assign_add and assign_sub under aggregation, as scatter_add.
//   Thread  as the variable.
class VariablePart {
 public:
  VariablePart(Variable variable, Selection selection)
      : variable_(std::move(variable)), selection_(std::move(selection)) {}

  const Shape& shape() const { return selection_.shape; }
  Array read() const;
  operator Array() const { return read(); }
  // Where only a part of a row is assigned, the row is read and written: what others change in it
  // meanwhile is lost. Whole rows, and assign_add and assign_sub, lose nothing.
  void assign(const Array& value) const;
  void assign_add(const Array& value) const;
  void assign_sub(const Array& value) const;

 private:
  Array rows_of(const Array& value) const;
  void add(const Array& value, RuleKind kind) const;

  Variable variable_;
  Selection selection_;
};

// The sum of what the replicas in sync have in place of `x`, which goes into the gradient of
// `variable`; with one replica it is `x`. It begins as soon as `x` is computed, so that the rest of
// the backward pass hides it.
//   Errors  FailedPrecondition: cross-replica context, where no replica has a gradient of its own.
Array sum_over_replicas(const Variable& variable, const Array& x);

// A thread's place within a creator's scope, for creators that distinguish places: a strategy has
// one for its scope as such and one for each replica (strategy/base/replica_context.h). A function
// may look different in each; core compares their addresses and asks nothing else.
class ScopePlace {
 public:
  virtual ~ScopePlace() = default;
  // May a function take elements of its iterators here? Not where it speaks for several replicas,
  // each of which gets another element.
  virtual bool takes_elements() const { return true; }
};

// Where layers get their variables: the strategy whose scope is open on this thread.
class VariableCreator {
 public:
  virtual ~VariableCreator() = default;
  // A second variable of the same name gets "_1", "_2", ... appended, as in the reference.
  virtual Variable create_variable(VariableSpec spec) = 0;
  // Declares that `rule` will update the variable: its slots are created beside its rows.
  virtual void add_slots(const Variable& variable, const UpdateRule& rule) = 0;
  // The place in which a scope of this creator puts the thread by default; nullptr: the creator
  // distinguishes no places.
  virtual const ScopePlace* scope_place() const { return nullptr; }
};
// The innermost open scope of this thread; without one, the default creator.
VariableCreator& current_variable_creator();
// The place that goes with it; nullptr without a scope.
const ScopePlace* current_scope_place();
// The creator of variables made outside of any scope: LocalRuntime::of_this_process().
VariableCreator& default_variable_creator();
// Opens a scope for the life of the object. Thread: one; scopes nest.
class [[nodiscard]] Scope {
 public:
  explicit Scope(VariableCreator& creator) : Scope(creator, creator.scope_place()) {}
  Scope(VariableCreator& creator, const ScopePlace* place);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  VariableCreator* previous_;
  const ScopePlace* previous_place_;
};

}  // namespace cairn
