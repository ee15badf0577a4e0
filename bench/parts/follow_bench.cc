// A subscriber's cost to a shard that is pushed to, and how long a changed row takes to reach it:
//   cairn-bench-follow
// The first lines are of one thread that does nothing but push, a thousand random rows of a hashed
// table of a million at a time, by Adagrad: without a subscriber, with one that only is there, and
// with one that is answered every 20 ms. The last is of a ps with a network, at 200,000 rows a
// second, and a stream on another thread.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <iostream>
#include <thread>

#include "core/base/program.h"
#include "core/base/random.h"
#include "core/disk/memory_disk.h"
#include "core/graph/wire/wire.h"
#include "ps/follow/subscriptions.h"
#include "ps/server/ps_server.h"
#include "rpc/cairn.capnp.h"
#include "rpc/loop/reactor_thread.h"
#include "rpc/net/connection.h"
#include "serving/follow/row_stream.h"

namespace cairn {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr std::uint64_t kSession = 7;
constexpr std::int64_t kRows = 1'000'000, kDim = 32;
constexpr std::size_t kPushed = 1000;

double now() { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

UpdateRule rule() { return {RuleKind::kAdagrad, {0.1f, 1e-7f}}; }

std::shared_ptr<const VariableSpec> table() {
  VariableSpec spec{.name = "rows", .shape = {kRows, kDim}};
  spec.hashed = true;
  return std::make_shared<const VariableSpec>(spec);
}

std::vector<std::int64_t> draw_rows(Random& random, std::size_t count) {
  std::vector<std::int64_t> rows(count);
  for (auto& row : rows) row = static_cast<std::int64_t>(random.below(kRows));
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// ---- one thread, no network ----

class Pushing {
 public:
  Pushing() {
    shard.configure({kSession, 1, 42, {{0, table(), rule(), {{0, {0, kRows}}}}}});
    shard.announce(kSession, std::uint64_t{1} << 40, 0);
    shard.open();
    for (std::int64_t first = 0; first < kRows; first += 10'000) {
      std::vector<std::int64_t> rows(10'000);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = first + static_cast<std::int64_t>(i);
      push(rows);
    }
    request.subscriber = 3;
    request.bytes_max = ps::Subscriptions::kAnswerBytesMax;
  }
  void push(const std::vector<std::int64_t>& rows) {
    gradients.resize(std::max(gradients.size(), rows.size() * kDim), 0.01f);
    const ps::UpdateHeader header{0,     0,      static_cast<std::uint32_t>(rows.size()),
                                  false, rule(), 0.1f};
    StepContext step;
    step.sent_layout = 1;
    step.session = kSession;
    step.closure = ++closure;
    step.incarnation = 1;
    shard.push({step,
                {},
                {&header, 1},
                rows,
                std::as_bytes(std::span(gradients.data(), rows.size() * kDim))});
  }
  std::size_t ask() {
    std::size_t bytes = 0;
    for (bool more = true; more;) {
      request.described = shard.describe().described;
      const ps::ChangesAnswer answer = subscriptions.changes(request);
      request.incarnation = answer.incarnation;
      request.cursor = answer.cursor;
      bytes += answer.changed.bytes();
      more = answer.more;
    }
    return bytes;
  }
  // Rows a second; `rate`: no more than so many, of which the share of the time is told that they
  // and their subscriber took.
  double run(double seconds, bool asks, double rate, double* busy) {
    std::size_t rows = 0;
    double asked = now(), taken = 0;
    const double begin = now(), end = begin + seconds;
    for (double at = begin; at < end; at = now()) {
      if (rate > 0 && static_cast<double>(rows) > (at - begin) * rate) continue;
      const std::vector<std::int64_t> some = draw_rows(random, kPushed);
      const double before = now();
      push(some);
      rows += some.size();
      if (asks && now() - asked > 0.02) {
        asked = now();
        ask();
      }
      taken += now() - before;
    }
    const double passed = now() - begin;
    if (busy != nullptr) *busy = taken / passed;
    return static_cast<double>(rows) / taken;
  }

  ps::Shard shard{system_clock(), {.lineage = 100}};
  ps::Subscriptions subscriptions{shard, system_clock()};
  ps::ChangesRequest request;
  std::vector<float> gradients;
  std::uint64_t closure = 0;
  Random random{5};
};

void measure_cost() {
  std::vector<double> none, there, asking, busy, busy_without;
  for (int turn = 0; turn < 5; ++turn) {
    Pushing alone, idle, followed;
    idle.ask();
    followed.ask();
    double share = 0;
    none.push_back(alone.run(1, false, 0, nullptr));
    there.push_back(idle.run(1, false, 0, nullptr));
    asking.push_back(followed.run(1, true, 0, nullptr));
    alone.run(1, false, 200'000, &share);
    busy_without.push_back(share);
    followed.run(1, true, 200'000, &share);
    busy.push_back(share);
  }
  const auto median = [](std::vector<double>& all) {
    std::ranges::sort(all);
    return all[all.size() / 2];
  };
  const double alone = median(none);
  std::cout << "pushed rows/s of a busy thread: " << alone / 1e6 << " M; with a subscriber that "
            << "asks for nothing " << median(there) / alone << " of that, with one that asks every "
            << "20 ms " << median(asking) / alone << "\n"
            << "at 200,000 rows/s the shard's thread is busy for " << 100 * median(busy_without)
            << " % of the time, with a subscriber for " << 100 * median(busy) << " %\n";
}

// ---- a ps, a worker and a stream ----

class Ps {
 public:
  Ps() {
    control.run([&] {
      ps::PsServerOptions options;
      options.cluster = "bench";
      server =
          std::make_unique<ps::PsServer>(control.reactor(), *network, *offload, *store, options);
    });
    coordinator = dial(rpc::Role::kCoordinator);
    worker = dial(rpc::Role::kWorker);
    auto chief = coordinator->bootstrap<wire::Shard>();
    auto configure = chief.configureRequest();
    configure.setSession(kSession);
    configure.setLayoutVersion(1);
    configure.setSeed(42);
    auto out = configure.initTables(1)[0];
    wire::write(out.initSpec(), *table());
    wire::write(out.initRule(), rule());
    out.initParts(1)[0].setEnd(kRows);
    reactor->wait(kj::Promise<void>(configure.send().ignoreResult()));
    auto announce = chief.announceRequest();
    announce.setSession(kSession);
    announce.setClosuresBelow(std::uint64_t{1} << 40);
    reactor->wait(kj::Promise<void>(announce.send().ignoreResult()));
    reactor->wait(kj::Promise<void>(chief.openRequest().send().ignoreResult()));
  }
  ~Ps() {
    control.run([&] { server.reset(); });
  }
  std::unique_ptr<rpc::Connection> dial(rpc::Role role) {
    rpc::Hello hello;
    hello.cluster = "bench";
    hello.role = role;
    hello.session = role == rpc::Role::kCoordinator ? kSession : 0;
    hello.incarnation = 1;
    hello.endpoint = 1;
    return reactor->wait(network->connect(*reactor, server->address(), hello, 5s));
  }
  // The step is that of the closure.
  void push(const std::vector<std::int64_t>& rows) {
    auto request = worker->bootstrap<wire::Shard>().pushRequest();
    auto step = request.initStep();
    step.setSession(kSession);
    step.setSentLayout(1);
    step.setIncarnation(1);
    step.setClosure(++closure);
    step.setGlobalStep(static_cast<std::int64_t>(closure));
    auto header = request.initHeaders(1)[0];
    header.setRows(static_cast<std::uint32_t>(rows.size()));
    header.setLearningRate(0.1f);
    wire::write(header.initRule(), rule());
    request.setIds({reinterpret_cast<const kj::byte*>(rows.data()), rows.size() * 8});
    gradients.resize(std::max(gradients.size(), rows.size() * kDim), 0.01f);
    request.setValues(
        {reinterpret_cast<const kj::byte*>(gradients.data()), rows.size() * kDim * sizeof(float)});
    reactor->wait(kj::Promise<void>(request.send().ignoreResult()));
  }

  std::unique_ptr<rpc::Reactor> reactor = rpc::make_reactor();
  std::unique_ptr<rpc::Network> network = rpc::make_socket_network();
  MemoryDisk disk;
  std::unique_ptr<Offload> offload = make_inline_offload();
  std::unique_ptr<storage::RowStore> store = storage::make_memory_row_store(disk);
  rpc::ReactorThread control{"ps"};
  std::unique_ptr<ps::PsServer> server;
  std::unique_ptr<rpc::Connection> coordinator, worker;
  std::vector<float> gradients;
  std::uint64_t closure = 0;
};

// Rows below kMarks are pushed once each, and only those.
constexpr std::int64_t kMarks = 1000;

void measure_latency() {
  Ps ps;
  std::vector<std::atomic<double>> pushed(kMarks);
  std::vector<double> took;
  std::atomic<bool> done = false;
  std::size_t rows = 0;
  std::thread follower([&] {
    RowStream stream({.ps = {ps.server->address().str()}, .cluster = "bench"});
    RowChanges changes;
    while (took.size() < kMarks && !done) {
      if (!stream.next(changes, 100ms)) continue;
      rows += changes.rows.size();
      for (const std::int64_t row : changes.rows)
        if (row < kMarks && pushed[static_cast<std::size_t>(row)] > 0)
          took.push_back(now() - pushed[static_cast<std::size_t>(row)]);
    }
  });
  Random random(7);
  const double begin = now();
  std::size_t sent = 0;
  for (std::int64_t mark = 0; mark < kMarks; ++mark) {
    // A thousand rows and a marked one, two hundred times a second.
    while (static_cast<double>(sent) > (now() - begin) * 200'000)
      std::this_thread::sleep_for(200us);
    std::vector<std::int64_t> some = draw_rows(random, kPushed);
    std::erase_if(some, [](std::int64_t row) { return row < kMarks; });
    some.insert(some.begin(), mark);
    pushed[static_cast<std::size_t>(mark)] = now();
    ps.push(some);
    sent += some.size();
  }
  const double rate = static_cast<double>(sent) / (now() - begin);
  std::this_thread::sleep_for(2s);
  done = true;
  follower.join();
  std::ranges::sort(took);
  std::cout << "from a push to RowStream::next() at " << rate << " rows/s, of " << took.size()
            << " marked rows: median " << took[took.size() / 2] * 1e3 << " ms, p99 "
            << took[took.size() * 99 / 100] * 1e3 << " ms, at most " << took.back() * 1e3 << " ms; "
            << rows << " rows came" << std::endl;
}

}  // namespace
}  // namespace cairn

int main() {
  return cairn::run_program("cairn-bench-follow", [] {
    cairn::measure_cost();
    cairn::measure_latency();
    return 0;
  });
}
