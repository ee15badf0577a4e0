// The kinds of strategies as classes of Python's.
#pragma once
#include <memory>
#include <utility>

#include "core/rows/layout.h"
#include "owner.h"
#include "strategy/strategies.h"

namespace cairn::python {

struct OneDevice : StrategyObject {
  using StrategyObject::StrategyObject;
};
struct InSync : StrategyObject {
  using StrategyObject::StrategyObject;
};
struct Mirrored : InSync {
  using InSync::InSync;
};
struct Mesh : Mirrored {
  using Mirrored::Mirrored;
};
struct Central : InSync {
  using InSync::InSync;
};
struct MultiWorker : InSync {
  using InSync::InSync;
};
struct Servers : StrategyObject {
  using StrategyObject::StrategyObject;
};
struct Hybrid : Servers {
  using Servers::Servers;
};

// Owns the strategy that `make` returns; making it may wait for a cluster.
template <typename Make>
SharedOwner owner_from(Make&& make, nb::object beside = {}) {
  auto owner = std::make_shared<Owner>(released(std::forward<Make>(make)), std::move(beside));
  remember(owner);
  return owner;
}

// Where the variables of a strategy on parameter servers lie now.
Layout layout_of(const StrategyObject& servers);

void bind_in_sync(nb::module_& m);
void bind_servers(nb::module_& m);
void bind_make_strategy(nb::module_& m);

}  // namespace cairn::python
