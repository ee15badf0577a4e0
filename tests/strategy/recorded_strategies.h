// The common parts of recorded cases of strategies: their names, values and outcomes.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strategy/base/one_device_strategy.h"
#include "tests/strategy/in_sync_kinds.h"
#include "tests/strategy/vector_cases.h"

namespace cairn::testing {

// The tolerance for a single operation: sums over replicas depend on their order.
inline constexpr double kOneOperation = 2e-6;

// Nothing is computed in float64: the reference's mean of integers is a float32 here.
inline DType dtype_of(const Json& recorded) {
  const std::string name = recorded.at("dtype");
  return name == "float64" ? DType::kFloat32 : parse_dtype(name);
}

inline void expect_value(const Json& recorded, const Tensor& got) {
  EXPECT_EQ(got.dtype(), dtype_of(recorded));
  EXPECT_EQ(got.shape(), shape_of(recorded.at("shape")));
  if (got.dtype() == DType::kFloat32) {
    const auto values = got.values<float>();
    return expect_near(recorded, {values.begin(), values.end()}, kOneOperation, 1e-6);
  }
  if (got.dtype() != DType::kInt32) FAIL() << "no test compares " << got.to_string();
  const auto values = got.values<std::int32_t>();
  EXPECT_EQ(Json(std::vector<std::int32_t>(values.begin(), values.end())), recorded.at("data"));
}

// A recorded outcome: a value, or an error of a bad argument, which is InvalidArgument here.
inline void expect_outcome(const Json& out, const std::function<Tensor()>& call) {
  if (!refused(out)) return expect_value(out.at("ok"), call());
  const std::string error = out.at("error");
  if (error != "ValueError" && error != "InvalidArgumentError")
    FAIL() << "no test knows the error " << error;
  EXPECT_THROW(call(), InvalidArgumentError);
}

// A scalar or a list of numbers, in the recorded dtype.
inline Tensor numbers(const Json& value, const std::string& dtype) {
  const bool list = value.is_array();
  return tensor_of({{"dtype", dtype},
                    {"shape", list ? Json::array({value.size()}) : Json::array()},
                    {"data", list ? value : Json::array({value})}});
}

// The methods of a variable, by the names that cases have.
inline void assign(const Variable& v, const std::string& method, const Array& value) {
  if (method == "assign") return v.assign(value);
  if (method == "assign_add") return v.assign_add(value);
  if (method == "assign_sub") return v.assign_sub(value);
  throw InvalidArgumentError("no test knows the method " + method);
}
inline void scatter(const Variable& v, const std::string& method, const Array& ids,
                    const Array& rows) {
  if (method == "scatter_add") return v.scatter_add(ids, rows);
  if (method == "scatter_sub") return v.scatter_sub(ids, rows);
  if (method == "scatter_mul") return v.scatter_mul(ids, rows);
  if (method == "scatter_div") return v.scatter_div(ids, rows);
  if (method == "scatter_min") return v.scatter_min(ids, rows);
  if (method == "scatter_max") return v.scatter_max(ids, rows);
  if (method == "scatter_update") return v.scatter_update(ids, rows);
  if (method == "batch_scatter_update") return v.batch_scatter_update(ids, rows);
  throw InvalidArgumentError("no test knows the method " + method);
}

// A strategy by the name and the number of replicas that a case has.
class RecordedStrategy {
 public:
  explicit RecordedStrategy(const Json& in)
      : RecordedStrategy(in.at("strategy").get<std::string>(), in.value("replicas", 1)) {}
  RecordedStrategy(const std::string& name, int replicas) {
    if (name == "mirrored")
      owned_ = std::make_unique<MirroredStrategy>(logical_cpus(replicas));
    else if (name == "central")
      owned_ = std::make_unique<CentralStorageStrategy>(logical_cpus(replicas));
    else if (name == "one_device")
      owned_ = std::make_unique<OneDeviceStrategy>();
    else if (name != "default")
      throw InvalidArgumentError("no test knows the strategy " + name);
  }
  Strategy& operator*() { return owned_ ? *owned_ : default_strategy(); }

 private:
  std::unique_ptr<Strategy> owned_;  // null: the default strategy
};

// The value of each replica, or the one value there is for all of them.
inline std::vector<Tensor> local_tensors(Strategy& strategy, const PerReplica& value) {
  std::vector<Tensor> tensors;
  for (const RunValue& own : strategy.experimental_local_results(value))
    tensors.push_back(own.tensor());
  return tensors;
}

}  // namespace cairn::testing
