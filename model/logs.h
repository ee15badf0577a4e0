// Logs: the loss and the metrics of an epoch, a batch or an evaluation, by name.
#pragma once
#include <map>
#include <string>

namespace cairn {

// "loss" and the metrics by name ("auc", "recall@10"). Of a model whose outputs have names they are
// OUTPUT_METRIC, and OUTPUT_loss if there are several outputs. Those of the validation data have
// "val_" before them. The learning rate, if it is adjustable, is "learning_rate".
//
// A map, except that a name that it does not have is an error instead of a 0.
class Logs : public std::map<std::string, double> {
 public:
  using std::map<std::string, double>::map;

  //   Errors  InvalidArgument: there is none of that name; names the nearest.
  double operator[](const std::string& name) const { return at(name); }
  double at(const std::string& name) const;
  // Replaces a value, or adds one: callbacks report values of their own so.
  void set(const std::string& name, double value) { insert_or_assign(name, value); }
};

}  // namespace cairn
