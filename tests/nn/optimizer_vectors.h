// The demands of the cases of optimizers.json, in our words: the optimizer, its schedule, the names
// of its slots.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "nn/optimizers/optimizer.h"
#include "tests/core/vectors.h"

namespace cairn::nn {

inline Tensor int64_tensor_of(const Json& stored) {
  const Tensor tensor = testing::tensor_of(stored);
  if (tensor.dtype() == DType::kInt64) return tensor;
  Tensor wide(DType::kInt64, tensor.shape());
  std::copy_n(tensor.values<std::int32_t>().data(), tensor.elements(),
              wide.mutable_values<std::int64_t>().data());
  return wide;
}

inline VariableGradient gradient_of(const Variable& variable, const Json& stored) {
  if (!stored.contains("indices")) return {variable, testing::tensor_of(stored), {}};
  return {variable,
          {},
          {int64_tensor_of(stored.at("indices")), testing::tensor_of(stored.at("values")),
           variable.shape()}};
}

inline ClippingOptions clipping_of(const Json& arguments) {
  ClippingOptions made;
  if (arguments.contains("clipnorm")) made.clipnorm = arguments.at("clipnorm").get<float>();
  if (arguments.contains("clipvalue")) made.clipvalue = arguments.at("clipvalue").get<float>();
  if (arguments.contains("global_clipnorm"))
    made.global_clipnorm = arguments.at("global_clipnorm").get<float>();
  return made;
}

// Takes an argument if the case has it, else leaves the default in place.
template <typename T>
void take(const Json& arguments, const char* name, T& option) {
  if (arguments.contains(name)) option = arguments.at(name).get<T>();
}

template <typename Options>
Options common(const Json& in) {
  const Json& a = in.at("arguments");
  const std::string api = in.at("api");
  if (api != "legacy" && api != "keras2")
    throw NotFoundError("the case wants api \"" + api + "\", which this test does not know");
  Options options;
  options.clipping = clipping_of(a);
  options.api = api == "legacy" ? Api::kLegacy : Api::kKeras2;
  float rate = options.learning_rate.value();
  take(a, "learning_rate", rate);
  options.learning_rate = rate;
  if (a.contains("decay"))
    options.learning_rate = InverseTimeDecay({.initial_learning_rate = rate,
                                              .decay_steps = 1,
                                              .decay_rate = a.at("decay").get<float>()});
  return options;
}

template <typename Options>
Options with_betas(const Json& in) {
  auto options = common<Options>(in);
  take(in.at("arguments"), "beta_1", options.beta_1);
  take(in.at("arguments"), "beta_2", options.beta_2);
  take(in.at("arguments"), "epsilon", options.epsilon);
  return options;
}

inline std::unique_ptr<Optimizer> sgd_of(const Json& in) {
  auto options = common<SgdOptions>(in);
  take(in.at("arguments"), "momentum", options.momentum);
  take(in.at("arguments"), "nesterov", options.nesterov);
  return std::make_unique<Sgd>(options);
}

inline std::unique_ptr<Optimizer> adagrad_of(const Json& in) {
  auto options = common<AdagradOptions>(in);
  take(in.at("arguments"), "initial_accumulator_value", options.initial_accumulator_value);
  take(in.at("arguments"), "epsilon", options.epsilon);
  return std::make_unique<Adagrad>(options);
}

inline std::unique_ptr<Optimizer> rmsprop_of(const Json& in) {
  auto options = common<RmsPropOptions>(in);
  const Json& a = in.at("arguments");
  take(a, "rho", options.rho);
  take(a, "momentum", options.momentum);
  take(a, "epsilon", options.epsilon);
  take(a, "centered", options.centered);
  return std::make_unique<RmsProp>(options);
}

inline std::unique_ptr<Optimizer> adam_of(const Json& in) {
  auto options = with_betas<AdamOptions>(in);
  take(in.at("arguments"), "amsgrad", options.amsgrad);
  return std::make_unique<Adam>(options);
}

inline std::unique_ptr<Optimizer> nadam_of(const Json& in) {
  auto options = with_betas<NadamOptions>(in);
  take(in.at("arguments"), "schedule_decay", options.schedule_decay);
  return std::make_unique<Nadam>(options);
}

inline std::unique_ptr<Optimizer> adadelta_of(const Json& in) {
  auto options = common<AdadeltaOptions>(in);
  take(in.at("arguments"), "rho", options.rho);
  take(in.at("arguments"), "epsilon", options.epsilon);
  return std::make_unique<Adadelta>(options);
}

inline std::unique_ptr<Optimizer> ftrl_of(const Json& in) {
  auto options = common<FtrlOptions>(in);
  const Json& a = in.at("arguments");
  take(a, "learning_rate_power", options.learning_rate_power);
  take(a, "initial_accumulator_value", options.initial_accumulator_value);
  take(a, "l1_regularization_strength", options.l1_regularization_strength);
  take(a, "l2_regularization_strength", options.l2_regularization_strength);
  take(a, "beta", options.beta);
  take(a, "l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  return std::make_unique<Ftrl>(options);
}

// Throws what the optimizer throws; NotFound for an unknown one.
inline std::unique_ptr<Optimizer> optimizer_of(const Json& in) {
  const std::string kind = in.at("optimizer");
  if (kind == "SGD") return sgd_of(in);
  if (kind == "Adagrad") return adagrad_of(in);
  if (kind == "RMSprop") return rmsprop_of(in);
  if (kind == "Adam") return adam_of(in);
  if (kind == "Adamax") return std::make_unique<Adamax>(with_betas<AdamaxOptions>(in));
  if (kind == "Nadam") return nadam_of(in);
  if (kind == "Adadelta") return adadelta_of(in);
  if (kind == "Ftrl") return ftrl_of(in);
  throw NotFoundError("the case wants optimizer \"" + kind + "\", which this test does not know");
}

// Our name of a recorded slot ("rms", or "RMSprop/velocity/Variable" of the newer optimizers);
// empty: not a slot of the variable.
inline std::string slot_name(const std::string& optimizer, std::string recorded) {
  if (recorded == "iteration") return "";
  if (const auto slash = recorded.find('/'); slash != std::string::npos)
    recorded = recorded.substr(slash + 1, recorded.rfind('/') - slash - 1);
  if (optimizer == "SGD") return "momentum";
  if (optimizer == "Adamax" && recorded == "v") return "u";
  static const std::map<std::string, std::string> kOurs = {{"velocity", "rms"},
                                                           {"mg", "mean"},
                                                           {"average_gradient", "mean"},
                                                           {"accum_grad", "gradients"},
                                                           {"accum_var", "updates"},
                                                           {"accumulated_grad", "gradients"},
                                                           {"accumulated_delta_var", "updates"}};
  const auto found = kOurs.find(recorded);
  return found == kOurs.end() ? recorded : found->second;
}

// Float32 sums in another order: near zero what counts is the size of the tensor's other elements.
inline void expect_near(std::span<const float> got, const Json& want, double relative,
                        const std::string& what) {
  const Tensor tensor = testing::tensor_of(want);
  const auto values = tensor.values<float>();
  ASSERT_EQ(got.size(), values.size()) << what;
  float largest = 0;
  for (float value : values) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(testing::near(got[i], values[i], relative, 4e-7 * largest))
        << what << " element " << i << ": " << got[i] << ", not " << values[i];
}

}  // namespace cairn::nn
