#include "bench/cluster.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "strategy/servers/hybrid_strategy.h"

namespace cairn::bench {

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "cairn-bench-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr)
    throw UnavailableError(
        str("could not make a folder ", path_, "; TMPDIR may name another place"));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Cluster::Cluster(const Options& options, const ClusterChoice& choice)
    : transport_(str(choice.transport, options.bfloat16.wire ? ", bf16 wire" : "",
                     options.bfloat16.products ? ", bf16 products" : "",
                     choice.hybrid ? ", hybrid" : "")) {
  tools::LocalClusterOptions wanted;
  wanted.ps = options.ps;
  wanted.workers = options.workers;
  wanted.shards = options.shards;
  wanted.lanes = choice.hybrid ? 1 : options.lanes;
  wanted.transport = choice.transport;
  wanted.memory_limit = choice.memory_limit;
  wanted.dir = folder_.path() + "/run";
  servers_ = std::make_unique<tools::LocalCluster>(wanted);
  servers_->start();
  ParameterServerOptions strategy;
  strategy.transport = rpc::parse_transport(choice.transport);
  strategy.seed = options.seed;
  strategy.partitioner = choice.partitioner;
  strategy.engine.pipeline_depth = choice.depth;
  strategy.engine.bfloat16_wire = options.bfloat16.wire;
  strategy.engine.variables.check_replicas = options.check_replicas;
  if (options.bfloat16.products) strategy.engine.computing.products = Arithmetic::kBfloat16;
  strategy.engine.cluster_id = servers_->cluster_id();
  strategy.engine.token = servers_->token();
  const TFConfigClusterResolver resolver(servers_->tf_config("chief", 0));
  if (choice.hybrid)
    strategy_ = std::make_unique<HybridStrategy>(resolver, strategy);
  else
    strategy_ = std::make_unique<ParameterServerStrategy>(resolver, strategy);
  coordinator_.emplace(*strategy_);
}

Cluster::~Cluster() {
  coordinator_.reset();
  strategy_.reset();
  servers_->stop();
}

NamedProcesses Cluster::processes() const {
  NamedProcesses all{{"coordinator", ::getpid()}};
  for (const auto& role : servers_->supervisor().roles())
    all.emplace_back(str(role.role, "-", role.index), role.pid);
  return all;
}

std::string Cluster::described() const {
  std::size_t ps = 0, workers = 0;
  for (const auto& role : servers_->supervisor().roles()) ++(role.role == "ps" ? ps : workers);
  return str(ps, " ps + ", workers, workers == 1 ? " worker, " : " workers, ", transport_);
}

}  // namespace cairn::bench
