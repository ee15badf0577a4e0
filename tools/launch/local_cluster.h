// LocalCluster: ps and workers as processes of this machine under a Supervisor, described by
// RUN_DIR/cluster.json, which `cairn status` and `cairn stop` read.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/launch/data_roles.h"
#include "tools/launch/run_place.h"
#include "tools/launch/supervisor.h"

namespace cairn::tools {

// The flags that `cairn up` and `cairn train` share.
struct LocalClusterOptions {
  int ps = 2;
  int workers = 2;
  int shards = 0;               // threads of a ps; 0: auto, its share of the processors
  int lanes = 0;                // closures that a worker computes at once; 0: the same
  std::string device = "auto";  // workers compute on; see core/kernels/chosen_devices.h
  // Memory of each ps, and the folder for rows that do not fit, see cairn-ps; "": row-log in `dir`.
  std::string memory_limit = "none", row_log;
  bool deterministic = false;      // results repeat bit for bit on the same GPU
  std::string transport = "auto";  // "auto", "tcp", "unix"
  // The folder of this run, made if it is not there; "": a new one under runs/.
  std::string dir;
  std::string token;  // "": a random one
  // The folder of cairn-ps and cairn-worker; "": that of the running program.
  std::string programs;
  // Processes of a data service, beside a dispatcher; 0: there is none.
  int data_workers = 0;
  // Added to the servers' command lines.
  std::vector<std::string> ps_arguments, worker_arguments;
  SupervisorOptions supervisor;
  // Called when cluster.json cannot be replaced, as on a full disk: once, until it can be again. By
  // default that is a line in the log.
  std::function<void(const std::string&)> warn;
};

// The run folder holds cluster.json, token (mode 0600), lock, logs/<role>-<index>.log and, with a
// data service, its dispatcher's journal in data-service/. A role keeps its address when it comes
// back, because ports are reserved for as long as the cluster lives.
//   Thread  any.
class LocalCluster {
 public:
  // Reserves, plans and writes the folder; starts nothing.
  //   Errors  InvalidArgument: a count, the transport, a kill. NotFound: no cairn-ps or
  //           cairn-worker there. FailedPrecondition: another run uses the folder. Disk's errors.
  explicit LocalCluster(LocalClusterOptions options,
                        std::function<void(const RoleEvent&)> on_event = {});
  ~LocalCluster();  // stop()

  void start();  // as Supervisor::start; Disk's errors
  void stop();   // as Supervisor::stop; cluster.json then says that nothing runs

  Supervisor& supervisor() { return *supervisor_; }
  const std::string& dir() const { return options_.dir; }
  const std::string& cluster_id() const { return cluster_id_; }
  const std::string& token() const { return options_.token; }
  std::string token_file() const { return options_.dir + "/token"; }
  // The dispatcher's address; empty: there is no data service.
  std::string data_service() const { return data_.dispatcher.empty() ? "" : data_.dispatcher[0]; }
  // {"cluster": {...}, "task": {"type": role, "index": index}}, for "chief", "worker" and "ps".
  std::string tf_config(const std::string& role, int index) const;
  // Makes a program join as the chief: TF_CONFIG, CAIRN_CLUSTER_ID, CAIRN_TOKEN_FILE,
  // CAIRN_TRANSPORT, CAIRN_RUN_DIR and, with a data service, CAIRN_DATA_SERVICE, each "NAME=value".
  std::vector<std::string> environment(const std::string& role, int index) const;
  // The process that cluster.json names as the chief; by default our own.
  void set_chief(pid_t pid);

 private:
  RoleSpec spec(const std::string& role, int index) const;
  RunFacts facts() const;
  const std::string& address(const std::string& role, int index) const;
  std::string log_file(const std::string& role, int index) const;
  void tell(const RoleEvent& event);
  bool set_running(bool running);  // what it was before
  void write_description();
  void try_to_write_description();

  LocalClusterOptions options_;
  std::string cluster_id_;
  std::vector<ReservedPort> ports_;
  std::vector<std::string> chief_, ps_, workers_;  // addresses
  DataRoles data_;
  std::unique_ptr<RunLock> lock_;  // keeps a second run out of the folder
  std::mutex mutex_;               // guards chief_pid_, running_ and the writing of cluster.json
  pid_t chief_pid_;
  bool running_ = false;
  std::atomic<bool> warned_{false};
  std::function<void(const RoleEvent&)> on_event_;
  std::unique_ptr<Supervisor> supervisor_;
};

// The folder in which the running program's file lies: its servers lie there too.
std::string program_folder();
// Errors  NotFound: there is no such program; says how to build it.
void need_program(const std::string& path);

}  // namespace cairn::tools
