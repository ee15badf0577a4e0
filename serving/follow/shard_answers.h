// A shard's answers to a reader (rpc/cairn.capnp: describe, changes), verified.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/graph/variable.h"
#include "core/rows/layout.h"
#include "core/rows/variable_store.h"
#include "rpc/cairn.capnp.h"
#include "serving/follow/row_stream.h"

namespace cairn::serving {

// The tables of a shard: parts of variables, by the variable's number and the part's index.
struct ShardDescription {
  using Id = std::pair<VariableId, std::uint32_t>;
  struct Part {
    std::shared_ptr<const VariableSpec> variable;
    RowRange rows;
    std::size_t row_bytes() const {
      return static_cast<std::size_t>(variable->dim()) * dtype_bytes(variable->dtype);
    }
  };
  std::uint64_t number = 0, session = 0, seed = 0;
  std::map<Id, Part> parts;
};

struct ShardChanges {
  std::vector<RowChanges> changes;
  std::set<ShardDescription::Id> begun, completed;
  std::size_t bytes = 0;
};

// Errors  InvalidArgument: what no shard of this release answers.   Thread  any.
ShardDescription read_description(wire::Shard::DescribeResults::Reader in);
ShardChanges read_changes(wire::Shard::ChangesResults::Reader in,
                          const ShardDescription& description);

}  // namespace cairn::serving
