#include "service/base/link.h"

#include <algorithm>

#include "core/base/log.h"

namespace cairn::service {

struct Link::Dialling {
  kj::ForkedPromise<void> done;
};

Link::Link(rpc::Reactor& reactor, rpc::Network& network, rpc::Address address, rpc::Hello hello,
           std::string name, LinkOptions options)
    : reactor_(reactor),
      network_(network),
      address_(std::move(address)),
      hello_(std::move(hello)),
      name_(str(name, " at ", address_.str())),
      options_(options) {}

Link::~Link() = default;

rpc::Task<Link::Shared> Link::connection() {
  if (live_ == nullptr || !live_->connected()) {
    if (!dialling_) dialling_ = std::make_unique<Dialling>(Dialling{dial().start().fork()});
    auto done = dialling_->done.addBranch();
    co_await kj::mv(done);
  }
  co_return live_;
}

// It suspends first, so that `dialling_` is set before it can end. Its frame belongs to
// `dialling_`, which is therefore dropped on a later turn of the loop; the next caller dials anew.
rpc::Task<void> Link::dial() {
  kj::Promise<void> turn = kj::READY_NOW;
  co_await kj::mv(turn);
  std::exception_ptr failed;
  try {
    auto made = network_.connect(reactor_, address_, hello_, options_.connect_deadline);
    live_ = std::shared_ptr<rpc::Connection>(co_await kj::mv(made));
  } catch (const Error&) {
    failed = std::current_exception();
  }
  reactor_.post([old = std::shared_ptr<Dialling>(std::move(dialling_))] {});
  if (failed) std::rethrow_exception(failed);
}

void Link::close(const Shared& connection) {
  if (connection != nullptr && connection == live_) live_->close();
}

void Link::close() {
  if (live_ != nullptr) live_->close();
}

kj::Promise<void> Link::wait_a_little(Duration& pause) {
  const Duration now = pause;
  pause = std::min(2 * pause, options_.pause_max);
  return reactor_.sleep(now);
}

void Link::give_up(const std::string& doing, const ErrorParts& last) const {
  throw UnavailableError(str(doing, ": ", name_, " has been away for ",
                             fixed(std::chrono::duration<double>(options_.patience).count(), 0),
                             " s (", last.message, "); start it again, or correct its address"));
}

}  // namespace cairn::service
