#include "nn/optimizers/optimizer_names.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <vector>

#include "core/tensor/element.h"
#include "nn/optimizers/optimizer.h"

namespace cairn::nn {
namespace {

using Make = std::function<std::shared_ptr<Optimizer>()>;

template <typename O>
Make make() {
  return [] { return std::make_shared<O>(); };
}

const std::map<std::string, Make>& known() {
  static const std::map<std::string, Make> all = {{"sgd", make<Sgd>()},
                                                  {"adam", make<Adam>()},
                                                  {"rmsprop", make<RmsProp>()},
                                                  {"adagrad", make<Adagrad>()},
                                                  {"adamax", make<Adamax>()},
                                                  {"adadelta", make<Adadelta>()},
                                                  {"nadam", make<Nadam>()},
                                                  {"ftrl", make<Ftrl>()},
                                                  {"lazy_adam", make<LazyAdam>()},
                                                  {"rowwise_adagrad", make<RowwiseAdagrad>()}};
  return all;
}

}  // namespace

std::shared_ptr<Optimizer> make_optimizer(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto found = known().find(lower);
  if (found != known().end()) return found->second();
  std::vector<std::string> names;
  for (const auto& [each, made] : known()) names.push_back(each);
  const std::string near = nearest_name(lower, names);
  throw InvalidArgumentError(str("there is no optimizer \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace cairn::nn
