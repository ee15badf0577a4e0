// What a step costs on a ps: random rows of 26 tables pulled, gradients pushed; over each transport, and in this thread with no
// messages at all. The difference is the price of distribution.
#include <unistd.h>

#include <algorithm>
#include <deque>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "coordinator/shard_client.h"
#include "core/json.h"
#include "core/random.h"
#include "ps/shard.h"
#include "rpc/network.h"
#include "rpc/reactor.h"
#include "worker/remote_store.h"

namespace cairn::bench {
namespace {

constexpr std::size_t kTables = 26, kRowsAStep = 2048, kIdSets = 16;
constexpr std::int64_t kRows = 1'000'000, kDim = 16;
constexpr std::uint64_t kSession = 1;
constexpr float kLearningRate = 0.01f;
const UpdateRule kAdagrad{RuleKind::kAdagrad, {}};

struct StepData {
  std::vector<Tensor> ids;  // a table each, ascending and distinct
  std::vector<Tensor> gradients;
  std::vector<std::int64_t> all_ids;  // the same, end to end
  std::vector<float> all_gradients;
};

StepData step_data(std::uint64_t seed) {
  Random random(seed);
  StepData data;
  for (std::size_t t = 0; t < kTables; ++t) {
    std::vector<std::int64_t> ids;
    while (ids.size() < kRowsAStep) {
      ids.push_back(static_cast<std::int64_t>(random.below(kRows)));
      if (ids.size() < kRowsAStep) continue;
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    }
    std::vector<float> gradient(kRowsAStep * kDim);
    for (float& each : gradient) each = static_cast<float>(random.uniform() - 0.5);
    data.all_ids.insert(data.all_ids.end(), ids.begin(), ids.end());
    data.all_gradients.insert(data.all_gradients.end(), gradient.begin(), gradient.end());
    data.ids.push_back(Tensor::of<std::int64_t>({static_cast<std::int64_t>(kRowsAStep)}, ids));
    data.gradients.push_back(Tensor::of<float>({static_cast<std::int64_t>(kRowsAStep), kDim}, gradient));
  }
  return data;
}

const std::vector<StepData>& all_steps() {
  static const std::vector<StepData> steps = [] {
    std::vector<StepData> made;
    for (std::uint64_t i = 0; i < kIdSets; ++i) made.push_back(step_data(1 + i));
    return made;
  }();
  return steps;
}

std::shared_ptr<const VariableSpec> table_spec(std::size_t number) {
  auto spec = std::make_shared<VariableSpec>();
  spec->name = str("table", number);
  spec->shape = {kRows, kDim};
  spec->initializer = Initializer::uniform(-0.05f, 0.05f, number);
  return spec;
}

StepContext step_context(std::uint64_t number) {
  StepContext step;
  step.session = kSession;
  step.layout_version = 1;
  step.closure = number;
  step.incarnation = 1;
  step.low_watermark = number > 64 ? number - 64 : 0;
  return step;
}

// The shard itself, called in this thread.
class InProcess {
 public:
  InProcess() : shard_(system_clock(), {}) {
    ps::Configuration configuration{kSession, 1, 1, {}, false};
    for (std::size_t t = 0; t < kTables; ++t) {
      const auto variable = static_cast<VariableId>(t);
      configuration.tables.push_back({variable, table_spec(t), kAdagrad, {{0, {0, kRows}}}});
      reads_.push_back({variable, 0, kRowsAStep, false});
      updates_.push_back({variable, 0, kRowsAStep, false, kAdagrad, kLearningRate});
    }
    shard_.configure(configuration);
    shard_.open();
  }
  double run(int steps) {
    const auto begin = Stopwatch::now();
    for (int i = 0; i < steps; ++i) step();
    return seconds_since(begin);
  }

 private:
  void step() {
    const StepData& data = all_steps()[next_ % kIdSets];
    const StepContext context = step_context(++next_);
    const ps::PullRequest pull{context, reads_, data.all_ids};
    pulled_.resize(shard_.pull_bytes(pull));
    const ps::Version version = shard_.pull(pull, pulled_.data());
    shard_.push({context, version, updates_, data.all_ids, std::as_bytes(std::span(data.all_gradients))});
  }

  ps::Shard shard_;
  std::vector<ps::ReadHeader> reads_;
  std::vector<ps::UpdateHeader> updates_;
  std::uint64_t next_ = 0;
  std::vector<std::byte> pulled_;
};

// A cairn-ps, and this process as the only worker: `depth` steps under way at once, on one thread.
class OverTheWire {
 public:
  OverTheWire(const std::string& transport, int shards) : transport_(transport) {
    tools::LocalClusterOptions wanted;
    wanted.ps = 1;
    wanted.workers = 1;  // the fewest of a cluster; it stays idle
    wanted.shards = shards;
    wanted.transport = transport;
    wanted.dir = folder_.path() + "/run";
    servers_ = std::make_unique<tools::LocalCluster>(wanted);
    servers_->start();
    reactor_ = rpc::make_reactor();
    network_ = rpc::make_socket_network(rpc::parse_transport(transport));
    address_ = parse_json(servers_->tf_config("chief", 0), "the cluster")["cluster"]["ps"][0].get<std::string>();
    reactor_->wait(configure(shards));
  }
  ~OverTheWire() {
    store_.reset();
    shards_.clear();
    network_.reset();
    reactor_.reset();
    servers_->stop();
  }

  double run(int steps, int depth) {
    const auto begin = Stopwatch::now();
    std::deque<kj::Promise<void>> under_way;
    for (int i = 0; i < steps; ++i) {
      if (static_cast<int>(under_way.size()) == depth) {
        reactor_->wait(kj::mv(under_way.front()));
        under_way.pop_front();
      }
      under_way.push_back(step().start().eagerlyEvaluate(nullptr));
    }
    for (auto& each : under_way) reactor_->wait(kj::mv(each));
    return seconds_since(begin);
  }
  NamedProcesses processes() const {
    NamedProcesses all{{"worker", ::getpid()}};
    for (const auto& role : servers_->supervisor().roles()) all.emplace_back(str(role.role, "-", role.index), role.pid);
    return all;
  }

 private:
  rpc::Task<void> configure(int shards);
  rpc::Task<void> step();

  TemporaryFolder folder_;
  std::string transport_, address_;
  std::unique_ptr<tools::LocalCluster> servers_;
  std::unique_ptr<rpc::Reactor> reactor_;
  std::unique_ptr<rpc::Network> network_;
  std::vector<std::unique_ptr<ShardClient>> shards_;
  std::unique_ptr<worker::RemoteStore> store_;
  std::uint64_t next_ = 0;
};

rpc::Hello hello_as(rpc::Role role, const tools::LocalCluster& servers, std::uint32_t endpoint) {
  rpc::Hello hello;
  hello.cluster = servers.cluster_id();
  hello.token = servers.token();
  hello.session = kSession;
  hello.role = role;
  hello.endpoint = endpoint;
  return hello;
}

// The process was only just started.
rpc::Task<std::unique_ptr<rpc::Connection>> connected(rpc::Reactor& reactor, rpc::Network& network, const rpc::Address& address, const rpc::Hello& hello) {
  const Duration until = reactor.now() + std::chrono::seconds(10);
  for (;;) {
    try {
      co_return co_await network.connect(reactor, address, hello, std::chrono::seconds(10));
    } catch (const UnavailableError&) {
      if (reactor.now() > until) throw;
    }
    co_await reactor.sleep(std::chrono::milliseconds(20));
  }
}

rpc::Task<void> OverTheWire::configure(int shards) {
  const rpc::Address address = rpc::Address::parse(address_);
  auto layout = std::make_shared<Layout>();
  layout->version = layout->seed = 1;
  for (int i = 0; i < shards; ++i) {
    const rpc::Hello hello = hello_as(rpc::Role::kCoordinator, *servers_, 1 + static_cast<std::uint32_t>(i));
    auto connection = co_await connected(*reactor_, *network_, address, hello);
    layout->servers = {{0, address_, connection->peer().incarnation, static_cast<std::uint32_t>(shards), 0}};
    shards_.push_back(std::make_unique<ShardClient>(std::move(connection), static_cast<ShardId>(i)));
  }
  for (std::size_t t = 0; t < kTables; ++t)
    layout->variables.push_back({static_cast<VariableId>(t), table_spec(t), kAdagrad, {{static_cast<ShardId>(t % shards_.size()), {0, kRows}}}});
  for (auto& shard : shards_) {
    co_await shard->configure(kSession, layout, 0, kTables, false);
    co_await shard->open();
  }
  store_ = std::make_unique<worker::RemoteStore>(*reactor_, *network_);
  store_->identify({hello_as(rpc::Role::kWorker, *servers_, 0), worker::Encoding::kRaw});
  store_->set_layout(layout);
}

// Of a wave of the store: ends when it does.
template <typename Wave>
kj::Promise<void> ended(Wave wave) {
  auto pair = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(pair.fulfiller));
  wave([fulfiller](std::exception_ptr error) {
    if (error)
      (*fulfiller)->reject(rpc::to_kj(error));
    else
      (*fulfiller)->fulfill();
  });
  return kj::mv(pair.promise);
}

rpc::Task<void> OverTheWire::step() {
  const StepData& data = all_steps()[next_ % kIdSets];
  const StepContext context = step_context(++next_);
  worker::RemoteStep remote(*store_);
  std::vector<Read> reads;
  std::vector<Update> updates;
  for (std::size_t t = 0; t < kTables; ++t) {
    const auto variable = static_cast<VariableId>(t);
    reads.push_back({variable, data.ids[t], {}});
    updates.push_back({variable, kAdagrad, kLearningRate, data.ids[t], data.gradients[t]});
  }
  auto pulled = ended([&](Done done) { remote.pull(context, reads, std::move(done)); });
  co_await kj::mv(pulled);
  auto pushed = ended([&](Done done) { remote.push(context, updates, std::move(done)); });
  co_await kj::mv(pushed);
}

}  // namespace

void bench_ps_step(const Options& options, Limits& limits, Report& report) {
  Series alone{.bench = "ps-step", .configuration = "one thread, no messages", .unit = "steps/s", .processes = {{"process", ::getpid()}}};
  {
    InProcess shard;
    const int count = calibrate(options.seconds, 20, [&](int steps) { return shard.run(steps); });
    alone = measure(alone, options.windows, [&] { return count / shard.run(count); });
  }
  report.add(alone);
  // Steps a second at the machine's own random access, through the same loops.
  const double rows = kTables * kRowsAStep * 1e-6;
  const double peak = 1 / (rows / limits.rows_gathered().median() + rows / limits.rows_updated().median());
  report.ratio("ps-step: one thread, of the machine's random rows", alone, peak);
  for (const auto& transport : options.transports)
    for (const std::uint32_t depth : options.depths) {
      OverTheWire wire(transport, std::max(1, options.shards));
      auto run = [&](int steps) { return wire.run(steps, static_cast<int>(depth)); };
      const int count = calibrate(options.seconds, 20, run);
      Series series{.bench = "ps-step", .configuration = str(transport, ", ", std::max(1, options.shards), " shards, depth ", depth), .unit = "steps/s",
                    .processes = wire.processes()};
      series = measure(series, options.windows, [&] { return count / run(count); });
      report.add(series);
      report.ratio(str("ps-step: ", series.configuration, ", of one thread"), series, alone);
    }
}

}  // namespace cairn::bench
