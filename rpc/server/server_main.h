// The common part of the programs cairn-ps and cairn-worker: flags, TF_CONFIG, the log, signals,
// and ending with a parent.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpc/loop/reactor.h"
#include "rpc/loop/waits.h"
#include "rpc/net/network.h"
#include "rpc/server/task_addresses.h"

namespace CLI {
class App;
}

namespace cairn::rpc {

// Flags win over TF_CONFIG, CAIRN_CLUSTER_ID, CAIRN_TOKEN_FILE, CAIRN_TOKEN and CAIRN_TRANSPORT.
struct ServerFlags {
  std::uint32_t index = 0;
  std::string listen;
  std::string cluster_id = "cairn";
  std::string token;
  bool insecure = false;
  std::string log_file;  // empty: standard error
  Transport transport = Transport::kAuto;
  int parent_pid = 0;  // end when it does; 0: there is none
  std::uint32_t threads = 1;
  bool threads_chosen = false;       // by this program, and not by its flag
  std::string threads_why;           // why so many: "16 processors for 4 tasks of this host"
  std::vector<TaskAddress> cluster;  // all of its tasks, if a TF_CONFIG lists them
};

// The server as server_main() sees it.
class RunningServer {
 public:
  virtual ~RunningServer() = default;
  virtual const Address& address() const = 0;
  virtual void on_shutdown(std::function<void(const std::string& reason)> handler) = 0;
  virtual void stop() = 0;
  virtual std::string status_json() const = 0;
  virtual std::vector<NamedLoop> loops() const = 0;  // besides the one of server_main()
};

struct ServerProgram {
  Role role = Role::kTool;
  std::string name;  // "cairn-worker"
  std::string description;
  std::string threads_flag;  // "--lanes"
  std::string threads_help;
  // Without the flag: as many as this process may use processors, shared with the other ps and
  // workers of its host; false: one.
  bool threads_auto = false;
  std::function<void(CLI::App& app)> add_flags;  // further ones; may be empty
  std::function<std::unique_ptr<RunningServer>(Reactor& reactor, Network& network,
                                               const ServerFlags& flags)>
      start;
};

// Fills in what the flags left open from a TF_CONFIG text: index and, from the cluster, the address
// to listen at; and who else is in the cluster.
//   Errors  InvalidArgument: not JSON of that form, another task type, no such task, or one address
//           for two tasks; names the place.
struct GivenFlags {
  bool index = false;
  bool listen = false;
};
void apply_tf_config(const std::string& text, Role role, GivenFlags given, ServerFlags& flags);

// Serves until SIGTERM, SIGINT, a shutdown call or the parent's end. Prints "NAME INDEX listening
// on ADDRESS" when ready. The exit status: 0 after an orderly end, 1 after an Error (printed), 2
// for wrong flags.
int server_main(int argc, char** argv, const ServerProgram& program);

}  // namespace cairn::rpc
