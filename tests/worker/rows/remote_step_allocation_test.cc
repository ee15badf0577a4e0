// Allocations of a step over RPC, on either side: counted by standing before malloc, which is why
// this is a program of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>

#include "coordinator/cluster/shard_client.h"
#include "ps/server/ps_server.h"
#include "rpc/loop/reactor.h"
#include "storage/row_store.h"
#include "worker/rows/remote_step.h"

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
}

namespace {
std::atomic<std::int64_t> all_threads{0};
thread_local std::int64_t this_thread = 0;
void count() {
  all_threads.fetch_add(1, std::memory_order_relaxed);
  ++this_thread;
}
}  // namespace

extern "C" {
void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  count();
  return __libc_calloc(number, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count();
  return __libc_realloc(memory, bytes);
}
}

namespace cairn::worker {
namespace {

constexpr std::uint64_t kSession = 7;
constexpr VariableId kTables = 26;
constexpr std::int64_t kRows = 4096, kTouched = 2048, kDim = 16;
const UpdateRule kAdagrad{RuleKind::kAdagrad, {0.1f, 1e-7f}};

// A ps with its threads and sockets, and a worker's store on this thread.
class SteppedPs {
 public:
  SteppedPs(rpc::Transport transport, VariableId tables)
      : network_(rpc::make_socket_network(transport)),
        server_(*reactor_, *network_, *offload_, *rows_, options()) {
    auto layout = std::make_shared<Layout>();
    layout->version = layout->seed = 1;
    layout->shards = shards_of({0, server_.address().str(), 1, server_.incarnation()}, 1);
    for (VariableId v = 0; v < tables; ++v) {
      auto spec = std::make_shared<VariableSpec>();
      spec->name = str("table", v);
      spec->shape = {kRows, kDim};
      layout->variables.push_back({v, spec, kAdagrad, {{0, {0, kRows}}}});
    }
    configure(layout, tables);
    store_.identify({hello(0), RowEncoding::kRaw});
    store_.set_layout(layout);
    std::vector<std::int64_t> ids(kTouched);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(2 * i);
    const Tensor touched = Tensor::of<std::int64_t>({kTouched}, ids),
                 gradient = Tensor::zeros(DType::kFloat32, {kTouched, kDim});
    for (VariableId v = 0; v < tables; ++v) {
      reads_.push_back({v, touched, {}});
      updates_.push_back({v, kAdagrad, 0.1f, touched, gradient});
    }
  }

  void step() {
    RemoteStep remote(store_);
    StepContext context{
        .session = kSession, .sent_layout = 1, .closure = ++closure_, .incarnation = 1};
    reactor_->wait(remote.pull(context, reads_).start());
    reactor_->wait(remote.push(context, updates_).start());
    for (Read& read : reads_) read.value = {};
  }

 private:
  static ps::PsServerOptions options() {
    ps::PsServerOptions options;
    options.cluster = "test";
    options.listen = "tcp://127.0.0.1:0";
    return options;
  }
  static rpc::Hello hello(std::uint32_t endpoint, rpc::Role role = rpc::Role::kWorker) {
    rpc::Hello hello;
    hello.cluster = "test";
    hello.session = kSession;
    hello.role = role;
    hello.endpoint = endpoint;
    return hello;
  }
  void configure(const std::shared_ptr<const Layout>& layout, VariableId tables) {
    ShardClient shard(reactor_->wait(network_->connect(*reactor_, server_.address(),
                                                       hello(1, rpc::Role::kCoordinator),
                                                       std::chrono::seconds(10))),
                      0);
    reactor_->wait(shard.configure(kSession, layout, 0, tables));
    reactor_->wait(shard.announce(kSession, 1 << 20, 0));
    reactor_->wait(shard.open());
  }

  std::unique_ptr<rpc::Reactor> reactor_ = rpc::make_reactor();
  std::unique_ptr<rpc::Network> network_;
  std::unique_ptr<storage::RowStore> rows_ = storage::make_rocks_row_store();
  std::unique_ptr<Offload> offload_ = make_thread_offload(1);
  ps::PsServer server_;
  RemoteStore store_{*reactor_, *network_};
  std::uint64_t closure_ = 0;
  std::vector<Read> reads_;
  std::vector<Update> updates_;
};

struct Allocations {
  double worker = 0, both = 0;
};

Allocations of_a_step(rpc::Transport transport, VariableId tables) {
  constexpr int kSteps = 50;
  SteppedPs ps(transport, tables);
  for (int i = 0; i < 20; ++i) ps.step();
  const std::int64_t worker = this_thread, both = all_threads.load();
  for (int i = 0; i < kSteps; ++i) ps.step();
  return {static_cast<double>(this_thread - worker) / kSteps,
          static_cast<double>(all_threads.load() - both) / kSteps};
}

// The rest is nearly all Cap'n Proto's: two calls per step. A table adds the shape of its rows.
void expect_few(rpc::Transport transport, const char* name) {
  const Allocations one = of_a_step(transport, 1), many = of_a_step(transport, kTables);
  std::cout << name << ": " << many.both << " allocations a step of " << kTables << " tables, "
            << many.worker << " of them the worker's; of one table " << one.both << ", "
            << one.worker << "\n";
  EXPECT_LE(many.both, one.both + 3 * kTables);
  EXPECT_LE(many.both, 520);
}

TEST(WarmStep, HardlyAllocatesMoreForManyTablesOverTcp) { expect_few(rpc::Transport::kTcp, "tcp"); }
TEST(WarmStep, HardlyAllocatesMoreForManyTablesThroughSharedMemory) {
  expect_few(rpc::Transport::kAuto, "shared memory");
}

}  // namespace
}  // namespace cairn::worker
