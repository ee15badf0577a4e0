// The data service of a run on this machine: a dispatcher, whose journal lies in the run's folder,
// and data workers, as roles of a Supervisor.
#pragma once
#include <string>
#include <vector>

#include "tools/launch/run_place.h"
#include "tools/launch/supervisor.h"

namespace cairn::tools {

// The facts that all servers of a run get.
struct RunFacts {
  std::string programs;  // the folder of cairn-data
  std::string dir;
  std::string cluster_id;
  std::string token_file;
  std::string transport;
};

// The addresses of the roles "dispatcher" (at most one) and "data_worker".
struct DataRoles {
  std::vector<std::string> dispatcher, workers;

  const std::vector<std::string>& addresses(const std::string& role) const {
    return role == "dispatcher" ? dispatcher : workers;
  }
  // "CAIRN_DATA_SERVICE=address", for programs; nothing without a dispatcher.
  std::vector<std::string> environment() const;
  std::vector<RoleSpec> specs(const RunFacts& run) const;
};

// None for 0 data workers.
//   Errors  those of reserve_addresses().
DataRoles reserve_data_roles(std::vector<ReservedPort>& ports, int data_workers);
std::string log_file(const RunFacts& run, const std::string& role, int index);

}  // namespace cairn::tools
