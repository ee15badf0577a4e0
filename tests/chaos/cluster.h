// Cluster: real processes of ps and workers, and of cairn-exerciser as the coordinator.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/link.h"
#include "tools/launch/child_process.h"
#include "tools/launch/reserved_port.h"

namespace cairn::chaos {

struct ClusterOptions {
  std::string folder, programs, transport = "tcp";  // tcp: through links
  int ps = 2, workers = 4;
  std::vector<std::string> exerciser;  // its arguments
  std::vector<std::string> ps_arguments = {};
  std::map<std::string, std::string> die_at;  // CAIRN_DIE_AT of a process's first life
};

// Names: "ps0", "worker3", "chief". What was started ends with the object.
class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options);

  void start(const std::string& name, std::vector<std::string> environment = {});
  void kill(const std::string& name);  // SIGKILL, and waits
  tools::ChildProcess& process(const std::string& name) { return *roles_.at(name).process; }
  Link* link(const std::string& name) { return roles_.at(name).link.get(); }  // nullptr: none
  const std::string& address(const std::string& name) const { return roles_.at(name).address; }
  std::string log(const std::string& name) const { return options_.folder + "/" + name + ".log"; }
  // the exerciser's last
  std::string words(int lines) const { return tools::last_lines(log("chief"), lines); }

 private:
  struct Role {
    std::string job, address, listen;
    int index = 0;
    std::unique_ptr<tools::ReservedPort> port;
    std::unique_ptr<Link> link;
    std::unique_ptr<tools::ChildProcess> process;
  };
  Role& add(const std::string& job, int index);
  void add_server(const std::string& job, int index);

  const ClusterOptions options_;
  std::map<std::string, Role> roles_;
};

}  // namespace cairn::chaos
