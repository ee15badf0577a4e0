// Awaiting work that runs on an Offload.
#pragma once
#include <functional>

#include "core/base/offload.h"
#include "rpc/reactor.h"

namespace cairn::ps {

// Runs `work` on `lane` and resolves on the reactor's thread: with what `work` throws, if it does.
// Dropping the promise does not stop the work: let it own what it uses.
kj::Promise<void> on_offload(rpc::Reactor& reactor, Offload& offload, std::size_t lane,
                             std::function<void()> work);

}  // namespace cairn::ps
