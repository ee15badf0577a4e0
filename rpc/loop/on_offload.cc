#include "rpc/loop/on_offload.h"

#include "rpc/loop/error_wire.h"

namespace cairn::rpc {
namespace {

struct Waiter {
  explicit Waiter(kj::Own<kj::PromiseFulfiller<void>> fulfiller) : fulfiller(kj::mv(fulfiller)) {}
  kj::Own<kj::PromiseFulfiller<void>> fulfiller;
};

}  // namespace

std::exception_ptr error_of(const std::function<void()>& work) {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

kj::Promise<void> on_offload(Reactor& reactor, Offload& offload, std::size_t lane,
                             std::function<void()> work) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  // The waiter belongs to the loop: the reactor keeps it, so that it never dies on the other
  // thread. A reactor that ends lets go of it before the last posted work runs, hence the weak
  // pointer.
  auto waiter = std::make_shared<Waiter>(kj::mv(paf.fulfiller));
  const std::weak_ptr<Waiter> weak = waiter;
  reactor.keep(std::move(waiter));
  auto job = [work = std::move(work), weak, &reactor, mailbox = reactor.mailbox()]() mutable {
    const std::exception_ptr error = error_of(work);
    work = nullptr;  // its objects end before the answer
    // The mailbox drops this once the reactor has gone, so `reactor` is valid wherever it runs.
    mailbox->post([weak, error, &reactor] {
      const std::shared_ptr<Waiter> kept = weak.lock();
      if (kept == nullptr) return;
      if (error == nullptr)
        kept->fulfiller->fulfill();
      else
        kept->fulfiller->reject(to_kj(error));
      reactor.release(kept.get());
    });
  };
  offload.submit(lane, std::move(job));
  return kj::mv(paf.promise);
}

}  // namespace cairn::rpc
