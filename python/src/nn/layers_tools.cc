// cairn.nn: what layers share, and what layers of Python's own are made with.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>

#include "layer_object.h"
#include "nn/base/step_members.h"
#include "nn/nn.h"

namespace cairn::python {
namespace {

// A C++ scope for a `with` block.
template <typename Scope, typename... A>
class Block {
 public:
  explicit Block(A... arguments) : arguments_(arguments...) {}
  void enter() {
    if (open_ != nullptr) throw FailedPreconditionError("this scope is open already");
    open_ = std::apply([](auto... each) { return std::make_unique<Scope>(each...); }, arguments_);
  }
  void exit() { open_.reset(); }
  Scope& get() const {
    if (open_ == nullptr) throw FailedPreconditionError("this scope is not open");
    return *open_;
  }

 private:
  std::tuple<A...> arguments_;
  std::unique_ptr<Scope> open_;
};

// `enter`: the signature of __enter__, which returns the block itself.
template <typename B>
void bind_block(nb::class_<B>& block, const char* enter) {
  block
      .def(
          "__enter__",
          [](nb::handle self) {
            nb::cast<B&>(self).enter();
            return nb::borrow(self);
          },
          nb::sig(enter))
      .def(
          "__exit__", [](B& self, nb::args) { self.exit(); }, "error"_a,
          nb::sig("def __exit__(self, *error: object) -> None"));
}

using Training = Block<nn::TrainingScope, bool>;
using Members = Block<nn::StepMembers, std::int64_t>;
using Added = Block<nn::AddedLosses>;

void bind_scopes(nb::module_& m) {
  nb::class_<Training> training(
      m, "TrainingScope",
      R"(Layers are recorded for training within it; Model opens it itself.

>>> with cairn.nn.TrainingScope():
...     cairn.nn.is_training()
True)");
  training.def(nb::init<bool>(), "training"_a = true);
  bind_block(training, "def __enter__(self) -> TrainingScope");
  m.def("is_training", &nn::is_training,
        "Whether layers are recorded for training.\n\n>>> cairn.nn.is_training()\nFalse");
  nb::class_<Members> members(m, "StepMembers",
                              "So many runs make one step together, without being replicas in "
                              "sync.\n\n>>> with cairn.nn.StepMembers(2):\n...     pass");
  members.def(nb::init<std::int64_t>(), "members"_a);
  bind_block(members, "def __enter__(self) -> StepMembers");
  nb::class_<Added> added(m, "AddedLosses", R"(Collects what layers add to the loss within it.

>>> with cairn.nn.AddedLosses() as added:
...     cairn.nn.add_loss("own", 3.0)
...     [term.item() for term in added.terms]
[3.0])");
  added.def(nb::init<>());
  bind_block(added, "def __enter__(self) -> AddedLosses");
  added.def_prop_ro(
      "terms", [](const Added& self) { return self.get().terms(); },
      "Scalars, in the order in which they were added.");
  m.def(
      "add_loss",
      [](const std::string& key, ArrayLike loss) {
        nn::add_loss(key, cast(Array(loss), DType::kFloat32));
      },
      "key"_a, "loss"_a,
      "Adds a scalar to the loss of the model that is being recorded; of equal keys the first "
      "counts.\n\n>>> cairn.nn.add_loss(\"own\", 3.0)");
}

void bind_functions_of_arrays(nb::module_& m) {
  m.def(
      "activation",
      [](const std::string& name, ArrayLike x) { return nn::activation(name)(Array(x)); }, "name"_a,
      "x"_a,
      "An activation by its name.\n\n>>> cairn.nn.activation(\"relu\", [-1.0, "
      "2.0]).numpy()\narray([0., 2.], dtype=float32)");
  m.def(
      "per_example", [](ArrayLike x, const std::string& what) { return nn::per_example(x, what); },
      "x"_a, "what"_a = "x",
      "[b, 1] and [b] both as [b].\n\n>>> cairn.nn.per_example([[1.0], [2.0]]).shape\n(2,)");
  m.def(
      "clip_by_norm", [](ArrayLike x, float norm) { return nn::clip_by_norm(x, norm); }, "x"_a,
      "norm"_a,
      "x, scaled so that its norm is at most this.\n\n>>> cairn.nn.clip_by_norm([3.0, 4.0], "
      "1.0).numpy()\narray([0.6, 0.8], dtype=float32)");
  m.def(
      "global_norm", [](ArrayList arrays) { return nn::global_norm(arrays); }, "arrays"_a,
      "The norm of all elements of several arrays.\n\n>>> cairn.nn.global_norm([[3.0], "
      "[4.0]]).item()\n5.0");
  m.def(
      "clip_by_global_norm",
      [](ArrayList arrays, float norm) { return nn::clip_by_global_norm(arrays, norm); },
      "arrays"_a, "norm"_a,
      "Several arrays, scaled so that their global norm is at most this.\n\n>>> "
      "cairn.nn.clip_by_global_norm([[3.0], [4.0]], 1.0)[0].numpy()\narray([0.6], dtype=float32)");
}

// ---- for layers of Python's own (cairn/layers.py) ----

OwnedVariable add_weight(const std::string& name, ShapeLike shape, InitializerLike initializer,
                         DTypeLike dtype, bool trainable, std::uint64_t seed) {
  const Shape dims = shape;
  const int rank = dims.rank();
  // A kernel's inputs and outputs, as the reference counts them: the last two axes, each times the
  // size of those before them.
  std::int64_t field = 1, in = 1, out = 1;
  for (int axis = 0; axis + 2 < rank; ++axis) field *= dims[axis];
  if (rank == 1) in = out = dims[0];
  if (rank >= 2) in = field * dims[rank - 2], out = field * dims[rank - 1];
  std::optional<Initializer> initial = initializer.maybe(in, out, seed);
  if (!initial) initial = Initializer::glorot_uniform(in, out, seed);
  VariableSpec spec{
      .name = name, .dtype = dtype, .shape = dims, .initializer = *initial, .trainable = trainable};
  VariableCreator& creator = current_variable_creator();
  return {recorded_or_run([&] { return creator.create_variable(std::move(spec)); }),
          owner_of(creator)};
}

void bind_own_layers(nb::module_& m) {
  nb::class_<nn::LayerName>(m, "_LayerName")
      .def(nb::init<std::string, std::string>(), "chosen"_a, "kind"_a)
      .def("get", &nn::LayerName::get);
  m.def("_add_weight", &add_weight, "name"_a, "shape"_a, "initializer"_a, "dtype"_a, "trainable"_a,
        "seed"_a);
  m.def("_scope_key", [] { return reinterpret_cast<std::uintptr_t>(&current_variable_creator()); });
  m.def(
      "_add_weight_loss",
      [](const OwnedVariable& variable, RegularizerLike regularizer) {
        Kept kept;
        const Variable& of = variable.get();
        nn::add_weight_loss(regularizer.in(kept), of, recorded_or_run([&] { return of.read(); }));
      },
      "variable"_a, "regularizer"_a);
}

}  // namespace

void bind_layer_tools(nb::module_& m) {
  bind_scopes(m);
  bind_functions_of_arrays(m);
  bind_own_layers(m);
}

}  // namespace cairn::python
