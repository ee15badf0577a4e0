#include "ps/server/await_rows.h"

#include "ps/server/shard_service.h"

namespace cairn::ps {

kj::Promise<PushResult> await_rows(std::shared_ptr<ShardHost> host, std::uint64_t wait,
                                   Duration patience) {
  auto pair = kj::newPromiseAndFulfiller<PushResult>();
  // The fulfiller is shared because std::function copies what it holds, and a fulfiller cannot be
  // copied.
  const auto ended =
      std::make_shared<kj::Own<kj::PromiseFulfiller<PushResult>>>(kj::mv(pair.fulfiller));
  host->shard.on_end(wait, [ended](const WaitOutcome& outcome) {
    if (outcome.error != nullptr)
      (*ended)->reject(rpc::to_kj(outcome.error));
    else
      (*ended)->fulfill(PushResult(outcome.pushed));
  });
  // If the connection ends, the promise goes, and with it the wait: a request that can no longer be
  // answered must not be applied later. After a wait that has ended this does nothing.
  auto give_up = kj::defer([host, wait] { host->shard.give_up(wait); });
  auto late = host->reactor.sleep(patience).then([host, patience]() -> kj::Promise<PushResult> {
    return rpc::to_kj(Code::kUnavailable,
                      str(host->database, ": a request has waited ",
                          std::chrono::duration_cast<std::chrono::seconds>(patience).count(),
                          " s for ", host->shard.waits_for(), "; repeat the call"));
  });
  return pair.promise.attach(kj::mv(give_up)).exclusiveJoin(kj::mv(late));
}

}  // namespace cairn::ps
