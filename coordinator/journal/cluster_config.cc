#include "coordinator/journal/cluster_config.h"

#include "core/base/error.h"
#include "core/base/json.h"

namespace cairn {
namespace {

constexpr int kFormat = 2;

Json json_of(const ShardReplica& replica) {
  return {{"ps", replica.ps}, {"endpoint", replica.endpoint}, {"process", replica.process.number}};
}

ShardReplica replica_of(const Json& json) {
  return {json.at("ps"), {}, json.at("endpoint"), json.at("process").get<std::uint64_t>()};
}

Json json_of(const ShardLayout& shard) {
  Json backups = Json::array();
  for (const ShardReplica& backup : shard.backups) backups.push_back(json_of(backup));
  return {{"epoch", shard.epoch.number},
          {"home", shard.home},
          {"primary", json_of(shard.primary)},
          {"backups", std::move(backups)}};
}

ShardLayout shard_of(const Json& json) {
  ShardLayout shard{
      replica_of(json.at("primary")), {}, json.at("epoch").get<std::uint64_t>(), json.at("home")};
  for (const Json& backup : json.at("backups")) shard.backups.push_back(replica_of(backup));
  return shard;
}

}  // namespace

std::string to_text(const ClusterConfig& config) {
  Json shards = Json::array();
  for (const ShardLayout& shard : config.shards) shards.push_back(json_of(shard));
  return json_text({{"format", kFormat},
                    {"cluster", config.cluster},
                    {"session", config.session},
                    {"term", config.term.number},
                    {"holder", config.holder},
                    {"shards", std::move(shards)}},
                   2) +
         "\n";
}

ClusterConfig parse_cluster_config(const std::string& text, const std::string& where) {
  ClusterConfig config;
  if (text.empty()) return config;
  try {
    const Json read = Json::parse(text);
    if (const int format = read.at("format"); format != kFormat)
      throw FailedPreconditionError(str(where, " is of format ", format, ", this release knows ",
                                        kFormat, ": run the release that wrote it"));
    config.cluster = read.at("cluster");
    config.session = read.at("session");
    config.term = read.at("term").get<std::uint64_t>();
    config.holder = read.at("holder");
    for (const Json& shard : read.at("shards")) config.shards.push_back(shard_of(shard));
  } catch (const Json::exception& error) {
    throw DataLossError(str(where, " is not the configuration of a cluster: ", error.what()));
  }
  return config;
}

}  // namespace cairn
