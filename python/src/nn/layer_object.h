// cairn.nn's layers as Python has them.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kept.h"
#include "layer_options.h"
#include "nn/layers/layers.h"
#include "owner.h"
#include "values.h"

namespace cairn::python {

// The base of all of them.
class LayerObject {
 public:
  explicit LayerObject(Kept kept) : kept_(std::move(kept)) {}
  virtual ~LayerObject() = default;
  LayerObject(const LayerObject&) = delete;
  LayerObject& operator=(const LayerObject&) = delete;

  // One type for lists of layers.
  //   Errors  TypeError: it does not take one array and give one.
  virtual nn::Layer erased() const = 0;
  virtual std::string name() const = 0;
  virtual std::vector<Variable> variables() const = 0;

  // The Python objects that it keeps, such as its layers.
  template <typename F>
  void each_kept(F&& f) const {
    kept_.each(f);
  }
  int traverse(visitproc visit, void* argument) const { return kept_.traverse(visit, argument); }
  void clear() {
    forget();
    kept_.clear();
    drop_references();
  }

 protected:
  virtual void forget() = 0;
  Kept kept_;
};

[[noreturn]] void refuse_as_layer(const std::string& name);

template <typename L>
class LayerOf final : public LayerObject {
 public:
  LayerOf(L layer, Kept kept) : LayerObject(std::move(kept)), layer_(std::move(layer)) {}
  const L& get() const {
    if (!layer_) throw FailedPreconditionError("the layer was let go of");
    return *layer_;
  }
  Kept& kept() { return kept_; }

  nn::Layer erased() const override {
    if constexpr (nn::LayerLike<L>)
      return nn::Layer(get());
    else
      refuse_as_layer(name());
  }
  std::string name() const override {
    if constexpr (requires(const L& layer) { layer.layer_name(); })
      return get().layer_name().get();
    else
      return "";
  }
  std::vector<Variable> variables() const override {
    if constexpr (requires(const L& layer) { layer.variables(); })
      return get().variables();
    else
      return {};
  }

 protected:
  void forget() override { layer_.reset(); }

 private:
  std::optional<L> layer_;
};

template <typename L>
void make_layer(LayerOf<L>* self, L layer, Kept kept) {
  new (self) LayerOf<L>(std::move(layer), std::move(kept));
}

// A call that makes the layer's variables where it is the first, and so may wait for a cluster.
template <typename L, typename... A>
auto call_layer(const LayerOf<L>& self, const A&... arguments) {
  const L& layer = self.get();
  return recorded_or_run([&] { return layer(arguments...); });
}

template <typename L>
using LayerClass = nb::class_<LayerOf<L>, LayerObject>;
template <typename L>
LayerClass<L> layer_class(nb::module_& m, const char* name, const char* doc) {
  LayerClass<L> made(m, name, nb::type_slots(collected<LayerObject>()), doc);
  if constexpr (nn::LayerLike<L>)
    made.def(
        "__call__", [](const LayerOf<L>& self, ArrayLike x) { return call_layer(self, Array(x)); },
        "x"_a);
  return made;
}

// A property that is a variable of the layer.
template <typename L>
void variable_property(LayerClass<L>& of, const char* name, Variable (L::*get)() const,
                       const char* doc) {
  of.def_prop_ro(
      name, [get](const LayerOf<L>& self) { return owned((self.get().*get)()); }, doc);
}

// Layers that a layer is made of, as objects of their own, which mean the same layers.
template <typename L>
nb::list parts_list(const std::vector<L>& layers) {
  nb::list all;
  for (const L& each : layers)
    all.append(nb::cast(new LayerOf<L>(each, Kept()), nb::rv_policy::take_ownership));
  return all;
}
nb::list owned_list(const std::vector<Variable>& variables);

// A layer of ours, the name of an activation, or anything callable as a layer is.
//   Errors  TypeError: none of these.
nn::Layer layer_of(nb::handle object, Kept& kept);
// Calls a function of Python's with arrays, while it is recorded.
template <typename... A>
nb::object call_recorded(const SharedReference& function, const A&... arguments) {
  const Acquired here;
  const Tracing tracing;
  return nb::borrow(function->get())(arguments...);
}

// The kinds of layers, in the order in which they are bound.
void bind_dense_layers(nb::module_& m);
void bind_image_layers(nb::module_& m);
void bind_embedding_layers(nb::module_& m);
void bind_sequence_layers(nb::module_& m);
void bind_combining_layers(nb::module_& m);
void bind_layer_tools(nb::module_& m);

}  // namespace cairn::python
