#include "bench/ps_step.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/json.h"
#include "core/base/random.h"

namespace cairn::bench {
namespace {

constexpr std::size_t kIdSets = 16;
constexpr std::uint64_t kSession = 1;
// closures, as a coordinator does: their end every so often
constexpr std::uint64_t kAnnounced = std::uint64_t{1} << 48;
constexpr std::uint64_t kSettledTogether = 1024, kUnderWay = 64;
constexpr float kLearningRate = 0.01f;
const UpdateRule kAdagrad{RuleKind::kAdagrad, {}};

StepData step_data(std::uint64_t seed, std::int64_t table_rows) {
  Random random(seed);
  StepData data;
  for (std::size_t t = 0; t < kStepTables; ++t) {
    std::vector<std::int64_t> ids;
    while (ids.size() < kStepRows) {
      ids.push_back(
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(table_rows))));
      if (ids.size() < kStepRows) continue;
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    }
    std::vector<float> gradient(kStepRows * kStepDim);
    for (float& each : gradient) each = static_cast<float>(random.uniform() - 0.5);
    data.all_ids.insert(data.all_ids.end(), ids.begin(), ids.end());
    data.all_gradients.insert(data.all_gradients.end(), gradient.begin(), gradient.end());
    data.ids.push_back(Tensor::of<std::int64_t>({static_cast<std::int64_t>(kStepRows)}, ids));
    data.gradients.push_back(
        Tensor::of<float>({static_cast<std::int64_t>(kStepRows), kStepDim}, gradient));
  }
  return data;
}

Steps make_steps(std::int64_t table_rows) {
  Steps made;
  for (std::uint64_t i = 0; i < kIdSets; ++i) made.push_back(step_data(1 + i, table_rows));
  return made;
}

std::shared_ptr<const VariableSpec> table_spec(std::size_t number, std::int64_t rows,
                                               bool hashed = false) {
  auto spec = std::make_shared<VariableSpec>();
  spec->name = str("table", number);
  spec->shape = {rows, kStepDim};
  spec->initializer = Initializer::uniform(-0.05f, 0.05f, number);
  spec->hashed = hashed;
  return spec;
}

StepContext step_context(std::uint64_t number) {
  StepContext step;
  step.session = kSession;
  step.sent_layout = 1;
  step.closure = number;
  step.incarnation = 1;
  return step;
}

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
rpc::Task<std::unique_ptr<rpc::Connection>> connected(rpc::Reactor& reactor, rpc::Network& network,
                                                      const rpc::Address& address,
                                                      const rpc::Hello& hello) {
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

}  // namespace

PsStepInProcess::PsStepInProcess(std::int64_t table_rows, bool hashed)
    : steps_(make_steps(table_rows)), shard_(system_clock(), {}) {
  ps::Configuration configuration{kSession, 1, 1, {}};
  for (std::size_t t = 0; t < kStepTables; ++t) {
    const auto variable = static_cast<VariableId>(t);
    configuration.tables.push_back(
        {variable, table_spec(t, table_rows, hashed), kAdagrad, {{0, {0, table_rows}}}});
    reads_.push_back({variable, 0, kStepRows, false});
    updates_.push_back({variable, 0, kStepRows, false, kAdagrad, kLearningRate});
  }
  shard_.configure(configuration);
  shard_.announce(kSession, kAnnounced, 0);
  shard_.open();
  if (hashed) fill(table_rows);
}

// Every row is there, as in a dense table.
void PsStepInProcess::fill(std::int64_t table_rows) {
  constexpr std::int64_t kAtOnce = 10'000;
  const std::vector<float> gradients(kAtOnce * kStepDim);
  std::vector<std::int64_t> ids(kAtOnce);
  for (std::size_t t = 0; t < kStepTables; ++t)
    for (std::int64_t first = 0; first < table_rows; first += kAtOnce) {
      std::iota(ids.begin(), ids.end(), first);
      const auto rows = static_cast<std::size_t>(std::min(kAtOnce, table_rows - first));
      const ps::UpdateHeader header{
          static_cast<VariableId>(t), 0, static_cast<std::uint32_t>(rows), false, kAdagrad, 0};
      shard_.push({step_context(++next_),
                   {},
                   {&header, 1},
                   std::span(ids).first(rows),
                   std::as_bytes(std::span(gradients).first(rows * kStepDim))});
    }
}

double PsStepInProcess::run(int steps) {
  const auto begin = Stopwatch::now();
  for (int i = 0; i < steps; ++i) step();
  return seconds_since(begin);
}

void PsStepInProcess::step() {
  const StepData& data = steps_[next_ % kIdSets];
  const StepContext context = step_context(++next_);
  if (next_ % kSettledTogether == 0) shard_.announce(kSession, kAnnounced, next_);
  const ps::PullRequest pull{context, reads_, data.all_ids};
  ps::VerifiedPull& rows = shard_.pull(pull);
  pulled_.resize(rows.bytes());
  rows.read(pulled_.data());
  const ShardVersion version = shard_.version();
  shard_.push(
      {context, version, updates_, data.all_ids, std::as_bytes(std::span(data.all_gradients))});
}

PsStepOverTheWire::PsStepOverTheWire(const std::string& transport, int shards,
                                     std::int64_t table_rows, RowEncoding encoding)
    : steps_(make_steps(table_rows)) {
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
  address_ = parse_json(servers_->tf_config("chief", 0), "the cluster")["cluster"]["ps"][0]
                 .get<std::string>();
  reactor_->wait(configure(shards, table_rows, encoding));
  run(1, 1);  // connects
  place_gradients();
}

PsStepOverTheWire::~PsStepOverTheWire() {
  store_.reset();
  shards_.clear();
  network_.reset();
  reactor_.reset();
  servers_->stop();
}

// Puts each gradient where a computed step would leave it, if the store has a place for it.
void PsStepOverTheWire::place_gradients() {
  worker::RemoteStep remote(*store_);
  for (StepData& data : steps_)
    for (std::size_t t = 0; t < kStepTables; ++t) {
      Tensor& gradient = data.gradients[t];
      auto place = remote.update_place(static_cast<VariableId>(t), gradient.bytes());
      if (place == nullptr) continue;
      const std::byte* at = place.get();
      std::memcpy(place.get(), gradient.raw(), gradient.bytes());
      gradient = Tensor::borrowed(gradient.dtype(), gradient.shape(), at, std::move(place));
    }
}

double PsStepOverTheWire::run(int steps, int depth) {
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

NamedProcesses PsStepOverTheWire::processes() const {
  NamedProcesses all{{"worker", ::getpid()}};
  for (const auto& role : servers_->supervisor().roles())
    all.emplace_back(str(role.role, "-", role.index), role.pid);
  return all;
}

rpc::Task<void> PsStepOverTheWire::configure(int shards, std::int64_t table_rows,
                                             RowEncoding encoding) {
  const rpc::Address address = rpc::Address::parse(address_);
  auto layout = std::make_shared<Layout>();
  layout->version = layout->seed = 1;
  for (int i = 0; i < shards; ++i) {
    const rpc::Hello hello =
        hello_as(rpc::Role::kCoordinator, *servers_, 1 + static_cast<std::uint32_t>(i));
    auto connection = co_await connected(*reactor_, *network_, address, hello);
    layout->shards = shards_of({0, address_, 1, connection->peer().incarnation},
                               static_cast<std::uint32_t>(shards));
    shards_.push_back(
        std::make_unique<ShardClient>(std::move(connection), static_cast<ShardId>(i)));
  }
  for (std::size_t t = 0; t < kStepTables; ++t)
    layout->variables.push_back({static_cast<VariableId>(t),
                                 table_spec(t, table_rows),
                                 kAdagrad,
                                 {{static_cast<ShardId>(t % shards_.size()), {0, table_rows}}}});
  for (auto& shard : shards_) {
    co_await shard->configure(kSession, layout, 0, kStepTables);
    co_await shard->announce(kSession, kAnnounced, 0);
    co_await shard->open();
  }
  store_ = std::make_unique<worker::RemoteStore>(*reactor_, *network_);
  store_->identify({hello_as(rpc::Role::kWorker, *servers_, 0), encoding});
  store_->set_layout(layout);
}

rpc::Task<void> PsStepOverTheWire::step() {
  const StepData& data = steps_[next_ % kIdSets];
  const std::uint64_t number = ++next_;
  if (number % kSettledTogether == 0)
    for (auto& shard : shards_) co_await shard->announce(kSession, kAnnounced, number - kUnderWay);
  const StepContext context = step_context(number);
  worker::RemoteStep remote(*store_);
  std::vector<Read> reads;
  std::vector<Update> updates;
  for (std::size_t t = 0; t < kStepTables; ++t) {
    const auto variable = static_cast<VariableId>(t);
    reads.push_back({variable, data.ids[t], {}});
    updates.push_back({variable, kAdagrad, kLearningRate, data.ids[t], data.gradients[t]});
  }
  co_await remote.pull(context, reads);
  co_await remote.push(context, updates);
}

}  // namespace cairn::bench
