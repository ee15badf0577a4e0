// cairn.Model.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset/dataset.h"
#include "forks.h"
#include "functions.h"
#include "kept.h"
#include "model/model.h"
#include "owner.h"

namespace cairn::python {

class PythonModel {
 public:
  // `strategy`: a Strategy; None: the one whose scope is open. `own`: close() ends it.
  PythonModel(nb::handle network, const std::string& name, const nb::object& strategy, bool own);
  ~PythonModel() { end_here(model_); }
  PythonModel(const PythonModel&) = delete;
  PythonModel& operator=(const PythonModel&) = delete;

  //   Errors  FailedPrecondition: its strategy has been closed, or the collector of cycles took it.
  Model& get();
  nb::handle network() const;
  const std::string& name() const { return name_; }
  //   Errors  FailedPrecondition: it was not compiled.
  std::shared_ptr<nn::Optimizer> optimizer();
  const SharedOwner& owner() const { return owner_; }
  // cairn.Strategy; None: the process's own, of a program without one.
  nb::object strategy() const;
  void close();

  // Takes options, and answers for the Python objects in them.
  void compile(CompileOptions options, Kept kept);
  // Names the columns of such data that are no features: outputs' labels, by the outputs' names,
  // and the weights of examples. `weights`: the column of arrays' weights; empty: there is none.
  // Steps are recorded anew where that changes. Then makes the variables, if there are none yet.
  void prepare(const Dataset& batches, const std::string& weights = "");
  // The same without data: the columns are all features.
  void build(const ElementSpec& batches);
  // Data as the strategy's workers can read it (tables_folder.h).
  Dataset travelling(const Dataset& dataset) const;
  // The results of a prediction, in the nest that the network returned.
  nb::object around(const std::vector<nb::object>& leaves) const {
    return seen_->results.around(output_names(), leaves);
  }
  // The names of a prediction's outputs; a single one may have none.
  std::vector<std::string> output_names() const;

  int traverse(visitproc visit, void* argument) const;
  void clear();

 private:
  // Shared by this object and the network as C++ calls it.
  struct Seen {
    std::set<std::string> hidden;  // columns that are no features
    Results results;
    bool takes_features = false;  // also where there is one column
  };
  void choose_labels(const ElementSpec& batches, const std::string& weights);
  static Outputs call(const SharedReference& network, Seen& seen, const std::string& name,
                      const Features& features);

  std::string name_;
  Kept network_, compiled_, strategy_;
  SharedReference callable_, strategy_object_;
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
  std::optional<CompileOptions> wanted_;
  std::string applied_;  // a text of what prepare() chose
  bool own_strategy_;
  SharedOwner owner_;  // goes after the model
  std::unique_ptr<Model> model_;
};

// Parts of the class, which are bound in other files.
using ModelClass = nb::class_<PythonModel>;
void bind_compile(ModelClass& model);
void bind_fit(ModelClass& model);
void bind_weights(ModelClass& model);

}  // namespace cairn::python
