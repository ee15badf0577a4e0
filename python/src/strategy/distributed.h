// Datasets and values that a strategy has dealt out to its replicas.
#pragma once
#include "options.h"
#include "strategy/base/distributed_dataset.h"
#include "strategy/base/distributed_values.h"

namespace cairn::python {

struct Distributed {
  DistributedDataset dataset;
  SharedOwner owner;
};
struct Elements {
  DistributedIterator iterator;
  SharedOwner owner;
};

// A PerReplica, or an array that is every replica's.
PerReplica per_replica_of(nb::handle value);
// A PerReplica, or the Array if it is bare.
nb::object value_of(const PerReplica& value);

void bind_distributed(nb::module_& m);
void bind_distributing(nb::class_<StrategyObject>& strategy);
// Contexts of replicas, and what code asks that must know how it is distributed.
void bind_replicas(nb::module_& m, nb::class_<StrategyObject>& strategy);

}  // namespace cairn::python
