// Awaiting work that runs on an Offload: how a loop has files read and written without being
// blocked.
//
//   co_await on_offload(reactor, offload, lane, [writer, rows] { writer.write(rows); });
#pragma once
#include <exception>
#include <functional>

#include "core/base/offload.h"
#include "rpc/loop/reactor.h"

namespace cairn::rpc {

// Runs `work` and catches what it throws; null: nothing. For work that is submitted to an Offload
// directly, which must not throw.
//   Thread  any.
std::exception_ptr error_of(const std::function<void()>& work);

// Runs `work` on `lane` and resolves on the reactor's thread: with what `work` throws, if it does.
// Dropping the promise does not stop the work: let it own what it uses.
kj::Promise<void> on_offload(Reactor& reactor, Offload& offload, std::size_t lane,
                             std::function<void()> work);

}  // namespace cairn::rpc
