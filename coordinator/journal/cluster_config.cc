#include "coordinator/journal/cluster_config.h"

#include "core/base/error.h"
#include "core/base/json.h"

namespace cairn {
namespace {

constexpr int kFormat = 1;

}  // namespace

std::string to_text(const ClusterConfig& config) {
  Json epochs = Json::array();
  for (const Epoch epoch : config.epochs) epochs.push_back(epoch.number);
  return json_text({{"format", kFormat},
                    {"cluster", config.cluster},
                    {"session", config.session},
                    {"term", config.term.number},
                    {"holder", config.holder},
                    {"epochs", std::move(epochs)}},
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
    for (const Json& epoch : read.at("epochs"))
      config.epochs.emplace_back(epoch.get<std::uint64_t>());
  } catch (const Json::exception& error) {
    throw DataLossError(str(where, " is not the configuration of a cluster: ", error.what()));
  }
  return config;
}

}  // namespace cairn
