// A cluster on which variables lie as they did where cases were recorded, and where that is.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "testing/simulated_cluster.h"

namespace cairn::testing {

// A cluster that places in turns, after `before` variables.
struct Turns {
  Turns(int ps, std::shared_ptr<const Partitioner> partitioner, std::uint64_t before = 0)
      : cluster({.ps = ps,
                 .workers = 1,
                 .strategy = {.partitioner = std::move(partitioner),
                              .placement = Placement::kRoundRobin}}) {
    for (std::uint64_t i = 0; i < before; ++i) create("before", {});
  }
  Variable create(const std::string& name, Shape shape) {
    return cluster.strategy().create_variable({.name = name, .shape = std::move(shape)});
  }
  VariableRegistry& registry() { return cluster.strategy().host().engine().registry(); }
  std::string device(ShardId shard) {
    const auto layout = registry().layout();
    if (shard >= layout->shard_count()) return "nowhere";
    return "job:ps/task:" + std::to_string(layout->shards[shard].primary.ps);
  }
  std::vector<Part> parts(const Variable& variable) {
    return registry().layout()->find(variable.name())->parts;
  }
  std::string device(const Variable& variable) { return device(parts(variable).at(0).shard); }

  // As the vectors write a variable. The names of parts are the reference's: Cairn's parts have
  // none.
  Json describe(const Variable& variable) {
    const auto all = parts(variable);
    const Shape& shape = variable.shape();
    Json described = {{"sharded", all.size() > 1}, {"shape", shape.dims()}};
    if (all.size() == 1) {
      described["device"] = device(all[0].shard);
      described["name"] = variable.name() + ":0";
      return described;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<std::int64_t> offset(static_cast<std::size_t>(shape.rank()), 0);
      offset[0] = all[i].rows.begin;
      described["shards"].push_back(
          {{"shape", shape.with_dim(0, all[i].rows.size()).dims()},
           {"device", device(all[i].shard)},
           {"name", variable.name() + "/part_" + std::to_string(i) + ":0"},
           {"offset", offset}});
    }
    return described;
  }

  SimulatedCluster cluster;
};

}  // namespace cairn::testing
