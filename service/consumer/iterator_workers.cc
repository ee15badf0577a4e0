// A consumer and its data workers: elements that come in, and what is acknowledged.
#include <algorithm>

#include "rpc/loop/error_wire.h"
#include "service/consumer/consumer_calls.h"
#include "service/consumer/iterator_core.h"

namespace cairn::service {
namespace {

using rpc::Task;

constexpr std::size_t kAcknowledgedAtOnce = 1024;
// A consumer of a group that has enough ahead asks for more after so long all the same: its worker
// keeps a job only while it is asked, and a round that never gets complete takes no room for good.
constexpr Duration kSignOfLife = std::chrono::seconds(10);
// Elements that are handed out within this time are acknowledged together: a call per element costs
// as much as the element.
constexpr Duration kAcknowledgedWithin = std::chrono::milliseconds(2);

// Another process at the same address knows nothing of what this one sent. The dispatcher will soon
// tell that it is there.
void verify_same_process(const DataWorkerPlace& place, const rpc::Connection& connection) {
  if (connection.peer().incarnation == place.incarnation) return;
  throw UnavailableError(str("the data worker at ", place.address, " was started again"));
}

}  // namespace

Task<void> DataServiceIterator::Core::read_from(Source* source) {
  Duration pause = link.pause_min, reached = reactor.now();
  for (;;) {
    ErrorParts last;
    try {
      co_await read_on(source);
      // The iterator has failed: what it was sent is for others.
      source->link->close();
      co_return;
    } catch (const UnavailableError&) {
      last = error_parts(std::current_exception());
    } catch (const DeadlineExceededError&) {
      last = error_parts(std::current_exception());
    } catch (const CancelledError&) {
      throw;
    } catch (const Error&) {
      fail();
      co_return;
    }
    // Once the connection has ended, elements that it did not acknowledge come again. Repeated
    // rounds of a group are known by their numbers.
    source->link->close();
    if (!rounds) buffer.forget(source->place);
    if (source->trouble.empty()) {
      reached = reactor.now();
      pause = link.pause_min;
    }
    source->trouble = last.message;
    if (reactor.now() - reached >= options.patience) {
      try {
        source->link->give_up("reading", last);
      } catch (const Error&) {
        fail();
      }
      co_return;
    }
    auto waited = source->link->wait_a_little(pause);
    co_await kj::mv(waited);
  }
}

// On one connection, until it ends or the iterator has failed.
Task<void> DataServiceIterator::Core::read_on(Source* source) {
  auto connection = co_await source->link->connection();
  verify_same_process(source->place, *connection);
  auto client = connection->bootstrap<wire::DataWorker>();
  const Compression compression =
      chosen(options.compression, rpc::Address::parse(source->place.address));
  // First what was handed out on an earlier connection, so that it is not sent again.
  while (!buffer.unacknowledged(source->place, 1).empty()) co_await acknowledge(source, connection);
  while (!error) {
    // Not one by one: half of what may be here comes with a call.
    const Duration until = reactor.now() + kSignOfLife;
    while (ahead(source->place) > quota() / 2 && !error && !(rounds && reactor.now() >= until)) {
      auto change = demanded->wait();
      if (rounds) change = change.exclusiveJoin(reactor.sleep(kSignOfLife));
      co_await kj::mv(change);
      if (!connection->connected()) throw UnavailableError("the connection was lost");
    }
    const std::size_t here = ahead(source->place);
    const auto most = static_cast<std::uint32_t>(quota() > here ? quota() - here : 1);
    auto answer = reactor.with_deadline(
        send_get(client, job, options.identity, options.consumer_index, most, compression, &spec),
        link.call_deadline, "waiting for elements");
    Got got = co_await kj::mv(answer);
    source->trouble.clear();
    if (!got.error.empty()) {
      fail_with(got.error, source->place);
      co_return;
    }
    for (GotElement& element : got.elements) put(source->place, std::move(element));
    if (!got.elements.empty()) changed.notify_all();
  }
}

// Some of what was handed out; it is kept until the worker has answered.
Task<void> DataServiceIterator::Core::acknowledge(Source* source, Link::Shared connection) {
  const auto numbers = buffer.unacknowledged(source->place, kAcknowledgedAtOnce);
  auto answer = reactor.with_deadline(
      send_acknowledge(connection->bootstrap<wire::DataWorker>(), job, numbers), link.call_deadline,
      "acknowledging elements");
  co_await kj::mv(answer);
  buffer.acknowledged(source->place, numbers);
  if (buffer.unacknowledged(source->place, 1).empty()) changed.notify_all();
}

// The sources' own tasks acknowledge. This only waits for them, side by side, and keeps hold of no
// source: one may be dropped meanwhile.
Task<void> DataServiceIterator::Core::settle() {
  const auto is_open = [this](const auto& entry) {
    return !buffer.unacknowledged(entry.first, 1).empty();
  };
  while (std::ranges::any_of(sources, is_open)) {
    auto change = changed.wait();
    co_await kj::mv(change);
  }
}

// Elements that are handed out while one call is under way go with the next one.
Task<void> DataServiceIterator::Core::acknowledge_on(Source* source) {
  for (;;) {
    while (buffer.unacknowledged(source->place, 1).empty()) {
      auto change = demanded->wait();
      co_await kj::mv(change);
    }
    co_await reactor.sleep(kAcknowledgedWithin);
    bool told = false;
    try {
      auto connection = co_await source->link->connection();
      verify_same_process(source->place, *connection);
      co_await acknowledge(source, connection);
      told = true;
    } catch (const UnavailableError&) {
    } catch (const DeadlineExceededError&) {
    }
    if (!told) co_await reactor.sleep(link.pause_max);
  }
}

}  // namespace cairn::service
