// The cluster that the coordinator's recorded cases run on, and its answers in the form of the
// recording.
#pragma once
#include <array>
#include <functional>

#include "core/base/json.h"
#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn::testing {

inline Array integer(std::int32_t value) { return Tensor::scalar(value); }

inline Json json_of(const Tensor& tensor) {
  Json data = Json::array();
  auto add = [&](auto values) {
    for (auto value : values) data.push_back(value);
  };
  if (tensor.dtype() == DType::kFloat32) add(tensor.values<float>());
  if (tensor.dtype() == DType::kInt32) add(tensor.values<std::int32_t>());
  if (tensor.dtype() == DType::kInt64) add(tensor.values<std::int64_t>());
  return {{"dtype", dtype_name(tensor.dtype())}, {"shape", tensor.shape().dims()}, {"data", data}};
}

// The reference's name for what `call` throws; null if it throws nothing.
inline Json error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidArgumentError&) {
    return "InvalidArgumentError";
  } catch (const OutOfRangeError&) {
    return "OutOfRangeError";
  } catch (const CancelledError&) {
    return "CancelledError";
  } catch (const std::exception& error) {
    return error.what();
  }
  return nullptr;
}

// Three ps and two workers, as the recordings were made on.
struct Cluster {
  SimulatedCluster cluster{{.ps = 3, .workers = 2}};
  ClusterCoordinator coordinator{cluster.strategy()};
  Variable v = cluster.strategy().create_variable({.name = "v", .shape = {}});
  Variable table = cluster.strategy().create_variable({.name = "table", .shape = {4, 1}});
  Function seven = cluster.strategy().function([] { return integer(7); });
  Function add = cluster.strategy().function([this] { v.assign_add(Array(1.0f)); });
  Function look = cluster.strategy().function([this](Array rows) { return table.gather(rows); });

  RemoteValue schedule_ok() { return coordinator.schedule(seven); }
  RemoteValue schedule_failing() {
    return coordinator.schedule(look,
                                {Tensor::of<std::int64_t>({1}, std::array<std::int64_t, 1>{9})});
  }
  float value_of_v() { return v.read().eval().item<float>(); }
  Json fetched(const RemoteValue& value) { return json_of(value.get(kPatience)); }
};

}  // namespace cairn::testing
