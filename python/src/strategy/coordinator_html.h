// A coordinator as notebooks show it: the figures of `cairn status`.
#pragma once
#include <string>

#include "strategy/servers/cluster_coordinator.h"

namespace cairn::python {

std::string coordinator_html(const ClusterCoordinator& coordinator);

}  // namespace cairn::python
