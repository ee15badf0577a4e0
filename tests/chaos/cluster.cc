#include "tests/chaos/cluster.h"

#include <signal.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/json.h"

namespace cairn::chaos {

Cluster::Cluster(const ClusterOptions& options) : options_(options) {
  std::filesystem::create_directories(options.folder);
  for (int i = 0; i < options.ps; ++i) add_server("ps", i);
  for (int i = 0; i < options.workers; ++i) add_server("worker", i);
  add("chief", 0);
  for (auto& [name, role] : roles_) {
    auto place = options.die_at.find(name);
    start(name, place == options.die_at.end()
                    ? std::vector<std::string>{}
                    : std::vector<std::string>{"CAIRN_DIE_AT=" + place->second});
  }
}

void Cluster::start(const std::string& name, std::vector<std::string> environment) {
  Role& role = roles_.at(name);
  Json cluster;
  for (const auto& [other, its] : roles_) cluster[its.job].push_back(its.address);
  const Json config{{"cluster", cluster}, {"task", {{"type", role.job}, {"index", role.index}}}};
  environment.push_back("TF_CONFIG=" + json_text(config));
  std::vector<std::string> arguments{options_.programs + "/cairn-" +
                                     (role.job == "chief" ? "exerciser" : role.job)};
  if (role.job == "chief")
    arguments.insert(arguments.end(), options_.exerciser.begin(), options_.exerciser.end());
  else
    arguments.insert(arguments.end(),
                     {"--listen", role.listen, role.job == "ps" ? "--shards" : "--lanes", "1"});
  if (role.job == "ps")
    arguments.insert(arguments.end(), options_.ps_arguments.begin(), options_.ps_arguments.end());
  tools::Command command{
      .arguments = arguments, .environment = std::move(environment), .output_file = log(name)};
  role.process = std::make_unique<tools::ChildProcess>(command);
}

void Cluster::kill(const std::string& name) {
  process(name).send(SIGKILL);
  process(name).wait();
}

Cluster::Role& Cluster::add(const std::string& job, int index) {
  Role& role = roles_[job == "chief" ? job : str(job, index)];
  role.job = job;
  role.index = index;
  role.port = std::make_unique<tools::ReservedPort>();
  role.address = role.listen = role.port->address();
  return role;
}

void Cluster::add_server(const std::string& job, int index) {
  Role& role = add(job, index);
  if (options_.transport == "unix") {
    role.address = role.listen = str("unix:", std::filesystem::absolute(options_.folder).string(),
                                     "/", job, index, ".socket");
  } else {
    role.link = std::make_unique<Link>(role.port->port());
    role.address = role.link->address();
  }
}

}  // namespace cairn::chaos
