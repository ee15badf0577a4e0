// Model: a network that trains, judges and predicts in a few lines, under every strategy.
//
//   MirroredStrategy strategy({"cpu:0", "cpu:1"});
//   auto scope = strategy.scope();
//   nn::Mlp tower({.units = {128, 10}});
//   Model model([&](const Array& x) { return tower(x); });
//   model.compile({.optimizer = "adam",
//                  .loss = nn::Loss("sparse_categorical_crossentropy", {.from_logits = true}),
//                  .metrics = {"accuracy"}});
//   History history = model.fit(images, labels, {.epochs = 5, .batch_size = 64});
//   Logs judged = model.evaluate(test_images, test_labels);
//   Tensor logits = model.predict(test_images);
//
// A network is a function of features that calls layers: it is called with recording arrays, once
// for each kind of step, and variables are made at the first call. What the program does by hand
// with Strategy::function(), run() and schedule(), the model does by itself.
//
// The strategy is the one whose scope was open when the model was made; it and whatever the network
// refers to must outlive the model. Where several processes train together, each has the model and
// makes the same calls.
//   Data    batches of the global batch size. A finite dataset is repeated, epoch by epoch. With
//           parameter servers each batch goes to one closure (Visitation::kExactlyOnce). A dataset
//           function is called for each input pipeline instead: with parameter servers for each
//           lane, else in each process. Its batches are for one replica each
//           (InputContext::get_per_replica_batch_size), and replicas take them in turn.
//   Errors  FailedPrecondition: it was not compiled. InvalidArgument: data, network and options do
//           not fit. And those of the strategy's steps.
//   Thread  one, as the strategy's.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/function.h"
#include "core/graph/variable.h"
#include "data/dataset/dataset.h"
#include "model/callback.h"
#include "model/compile.h"
#include "model/history.h"
#include "model/saved/saved_model.h"
#include "strategy/base/distributed_dataset.h"

namespace cairn {

class Strategy;
class StepRunner;
class StepFunctions;

// How much fit() and evaluate() print on the standard output.
enum class Verbose : std::uint8_t {
  kSilent,
  kEpochs,  // a line for each epoch
};

// An option that says nothing of the data given is InvalidArgument: those of arrays beside a
// dataset, which has its own batches and weights, and those of the validation without one.
struct FitOptions {
  std::int64_t epochs = 1;         // the number of the last epoch, plus one
  std::int64_t initial_epoch = 0;  // of the first
  // 0: all batches of the data, which is then counted. Must be given for data without an end.
  std::int64_t steps_per_epoch = 0;
  std::optional<std::int64_t> batch_size = {};  // of arrays; unset: 32
  std::optional<bool> shuffle = {};        // arrays, before each epoch, by `seed`; unset: they are
  std::optional<std::uint64_t> seed = {};  // unset: 0
  // One weight per example of arrays, [n] or [n, 1]. It multiplies the example's loss, and metrics
  // count the example by it. A dataset has a column that compile() names instead.
  Tensor sample_weight = {};
  // The weights of classes, for a model with one output. A weight multiplies the losses of the
  // class's examples, and metrics count them by it. A class that is not named weighs 1; one that
  // the label cannot have is InvalidArgument.
  std::map<std::int64_t, float> class_weight = {};
  // The data on which the model is judged after every `validation_freq` epochs.
  Dataset validation_data = {};
  double validation_split = 0;  // of arrays: the last share of them, instead
  std::int64_t validation_freq = 1;
  std::int64_t validation_steps = 0;  // 0: all of it
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  Verbose verbose = Verbose::kEpochs;
};

struct EvaluateOptions {
  std::optional<std::int64_t> batch_size = {};  // of arrays; unset: 32
  std::int64_t steps = 0;                       // 0: all batches
  Tensor sample_weight = {};                    // of arrays, as in FitOptions
  std::vector<std::shared_ptr<Callback>> callbacks = {};
};

class Model {
 public:
  // A function of the dataset's features, or of its only one, that returns an Array, or, for
  // several outputs, Outputs.
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Model>) explicit Model(
      F network, std::string name = "model")
      : Model(std::move(name), adapted(std::move(network))) {}
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void compile(CompileOptions options);
  nn::Optimizer& optimizer();
  const std::string& name() const;
  Strategy& strategy();

  // Trains for the epochs from `initial_epoch` up to `epochs`. Arrays become a dataset of the
  // columns "x" and "y", the label.
  //   Errors  the first of a step, of a callback, or of the validation; on_train_end() of
  //           the callbacks runs before it is raised.
  History fit(const Dataset& batches, const FitOptions& options = {});
  // The function knows how its data ends: none is repeated, and OutOfRange ends a fit() that
  // outlasts it.
  History fit(const DatasetFunction& dataset_fn, const FitOptions& options = {});
  History fit(const Tensor& x, const Tensor& y, const FitOptions& options = {});
  // The loss and the metrics on data that counts each example once.
  Logs evaluate(const Dataset& batches, const EvaluateOptions& options = {});
  Logs evaluate(const Tensor& x, const Tensor& y, const EvaluateOptions& options = {});
  // The first output for all examples, in their order: [n, ...].
  Tensor predict(const Dataset& batches);
  Tensor predict(const Tensor& x, std::int64_t batch_size = 32);
  // All outputs of each batch, in order, so that no more than a few lie in memory.
  void predict(const Dataset& batches,
               const std::function<void(const std::vector<Tensor>& outputs)>& take);
  // The same into a file, a line for each example: CSV with a header, or JSON lines if its name
  // ends in ".jsonl". An existing file is replaced only when the new one is complete. Where several
  // processes predict together, the chief writes it.
  //   Result  how many examples there were.
  //   Errors  InvalidArgument: an output without a row for each example. Those of writing.
  std::int64_t predict_to(const Dataset& batches, const std::string& file);

  // The rate of the optimizer, which a callback may have made adjustable; and another one.
  //   Errors  FailedPrecondition: it is not adjustable (nn/optimizers/optimizer_base.h).
  float learning_rate();
  void set_learning_rate(float rate);

  // The variables that the network's prediction reads, in the order of first use; known once the
  // model has been built by build(), fit(), evaluate() or predict().
  //   Errors  FailedPrecondition: it was not built.
  const std::vector<Variable>& variables() const;
  // Makes the variables for such data without running anything.
  void build(const ElementSpec& batches);
  // The graph that a prediction runs, for inspection.
  //   Errors  as of variables().
  const Graph& predict_graph() const;
  // Their values, whole: not for tables that are larger than memory.
  //   Errors  as of variables(); InvalidArgument: other numbers or shapes.
  std::vector<Tensor> get_weights() const;
  void set_weights(const std::vector<Tensor>& weights);
  // Saves what predict() computes as a folder that predicts in a program which has never seen the
  // network (model/saved/saved_model.h): of the data that the model was built for. A label is not
  // needed to predict, unless the options name one for readers of files.
  //   Errors  FailedPrecondition: it was not built. Those of save_model().
  SavedModel save(const std::string& folder, SaveModelOptions options = {});
  // The variables with their shapes, for people. Of a model that was not built, that it was not.
  std::string summary() const;

 private:
  friend class FitLoop;
  struct State;
  Model(std::string name, std::function<Outputs(const Features&)> network);
  // The only column of features.
  static const Array& only_column(const Features& features);
  template <typename F>
  static std::function<Outputs(const Features&)> adapted(F network);
  StepFunctions& functions();
  StepRunner& runner();
  Dataset from_arrays(const Tensor& x, const Tensor& y, const Tensor& weights) const;
  // `weights`: a column that is no feature but the examples' weights; empty: compile() says.
  void build_beside(ElementSpec batches, const std::string& weights);
  Logs evaluate_weighted(const Dataset& batches, const EvaluateOptions& options,
                         const std::string& weights);

  std::unique_ptr<State> state_;
};

// ---- templates ----
template <typename F>
std::function<Outputs(const Features&)> Model::adapted(F network) {
  constexpr bool kOfFeatures = std::is_invocable_v<F&, const Features&>;
  constexpr bool kOfArray = std::is_invocable_v<F&, const Array&>;
  static_assert(kOfFeatures || kOfArray,
                "A model's network takes (const Features&) or (const Array&), and returns an Array "
                "or Outputs");
  if constexpr (kOfFeatures) {
    return [network = std::move(network)](const Features& features) mutable {
      return detail::to_outputs(network(features));
    };
  } else {
    return [network = std::move(network)](const Features& features) mutable {
      return detail::to_outputs(network(only_column(features)));
    };
  }
}

}  // namespace cairn
