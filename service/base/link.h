// Link: one connection to one server of the data service, made anew after a loss.
//   Thread  the loop's. A call on a link must be dropped before the link goes.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task.h"
#include "rpc/net/connection.h"
#include "rpc/net/hello.h"
#include "rpc/net/network.h"

namespace cairn::service {

struct LinkOptions {
  Duration connect_deadline = std::chrono::seconds(5);  // of one attempt
  Duration call_deadline = std::chrono::seconds(30);    // of one call that is answered within 1 s
  Duration pause_min = std::chrono::milliseconds(20);   // between attempts, doubled up to
  Duration pause_max = std::chrono::milliseconds(500);
  // How long ask() repeats a call to a server that is away.
  Duration patience = std::chrono::seconds(60);
};

class Link {
 public:
  using Shared = std::shared_ptr<rpc::Connection>;

  // `name` is what messages call the other side: "the dispatcher".
  Link(rpc::Reactor& reactor, rpc::Network& network, rpc::Address address, rpc::Hello hello,
       std::string name, LinkOptions options = {});
  ~Link();

  // The standing connection, or the result of one attempt to make one. Callers that come during an
  // attempt share it.
  //   Errors  those of Network::connect.
  rpc::Task<Shared> connection();
  // Ends the link's connection, unless it is another one by now.
  void close(const Shared& connection);
  void close();

  // The value of call(client), which is made again while the other side is away: so only for calls
  // that are safe to repeat.
  //   Errors  Unavailable: it has been away for `patience`; names it, and `cure`. Else those of the
  //           call.
  template <typename Client, typename Value>
  rpc::Task<Value> ask(std::function<rpc::Task<Value>(Client)> call, std::string doing);
  // Before the next attempt; `pause` is doubled.
  kj::Promise<void> wait_a_little(Duration& pause);
  [[noreturn]] void give_up(const std::string& doing, const ErrorParts& last) const;

  const std::string& name() const { return name_; }  // "the dispatcher at tcp://..."
  const LinkOptions& options() const { return options_; }

 private:
  struct Dialling;
  rpc::Task<void> dial();

  rpc::Reactor& reactor_;
  rpc::Network& network_;
  const rpc::Address address_;
  const rpc::Hello hello_;
  const std::string name_;
  const LinkOptions options_;
  Shared live_;
  std::unique_ptr<Dialling> dialling_;
};

// ---- templates ----
template <typename Client, typename Value>
rpc::Task<Value> Link::ask(std::function<rpc::Task<Value>(Client)> call, std::string doing) {
  const Duration began = reactor_.now();
  Duration pause = options_.pause_min;
  for (;;) {
    ErrorParts last;
    Shared used;
    try {
      used = co_await connection();
      auto client = used->bootstrap_any().template castAs<typename Client::Calls>();
      auto answer = reactor_.with_deadline(call(client), options_.call_deadline,
                                           str(doing, ", asking ", name_));
      Value value = co_await kj::mv(answer);
      co_return value;
    } catch (const UnavailableError&) {
      last = error_parts(std::current_exception());
    } catch (const DeadlineExceededError&) {
      last = error_parts(std::current_exception());
      close(used);
    }
    if (reactor_.now() - began >= options_.patience) give_up(doing, last);
    auto waited = wait_a_little(pause);
    co_await kj::mv(waited);
  }
}

}  // namespace cairn::service
