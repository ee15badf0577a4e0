// Slots of optimizers among the tensors of a TensorFlow bundle, as far as their names say so.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/update_rule.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools::ckpt {

// The rule of a variable, whose slots are arrays NAME/SLOT now.
struct BundleSlots {
  UpdateRule rule;
  std::vector<std::string> slots;
  std::int64_t updates = 0;  // how often the optimizer had run
};

// Finds the slots of every variable and gives them the names that `rule` has for them. TensorFlow
// 2 marks slots and names them alike under several optimizers: "accumulator" is Adagrad's, "linear"
// beside it Ftrl's and "vhat" beside "m" and "v" Adam's with AMSGrad, but "m" and "v" alone belong
// to Adam, Adamax and Nadam. TensorFlow 1 names them by the optimizer: NAME/Adagrad, NAME/Adam and
// NAME/Adam_1, NAME/Ftrl and NAME/Ftrl_1. Adam's are taken only if the bundle says how many steps
// there were, since the rule depends on it.
//   optimizer  empty, or "adam" or "lazy_adam": whose "m" and "v" are.
//   Errors     InvalidArgument: another optimizer; DataLoss: the count of steps cannot be read.
//   Result     by variable; an array that is in none of them is a variable of its own.
std::map<std::string, BundleSlots> take_bundle_slots(ArrayListing& listing,
                                                     const std::string& optimizer);

}  // namespace cairn::tools::ckpt
