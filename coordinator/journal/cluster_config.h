// ClusterConfig: what has to be agreed upon before anybody acts on it, as a ConfigStore keeps it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "core/rows/layout.h"

namespace cairn {

struct ClusterConfig {
  std::string cluster;        // its id
  std::uint64_t session = 0;  // of the coordinator that has the term
  Term term;                  // of the newest coordinator; none: there was none yet
  std::string holder;         // for people: who that is
  // The session's, by ShardId: who answers for its rows, since which epoch, and who may take over.
  // There are no addresses in it, which are the cluster's.
  std::vector<ShardLayout> shards;
};

// As JSON.
std::string to_text(const ClusterConfig& config);
// `where` names the text in errors. An empty text means that the cluster had no coordinator yet.
//   Errors  DataLoss: it is none. FailedPrecondition: a newer release of Cairn wrote it.
ClusterConfig parse_cluster_config(const std::string& text, const std::string& where);

}  // namespace cairn
