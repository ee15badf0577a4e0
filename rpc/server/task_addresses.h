// The addresses of a cluster's tasks: whether each task has one of its own, and which share a host.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cairn::rpc {

struct TaskAddress {
  std::string task;     // "/job:ps/task:1"
  std::string address;  // as the cluster has it: "host:port", "unix:/path"
};

// Refuses a cluster that names one address for two tasks. Forms of one address are the same, as
// "localhost:80", "127.0.0.1:80" and "tcp://127.0.0.1:80". Nothing is looked up: two names of one
// host are found when the task behind them says which it is. Port 0, any port, never collides.
//   Errors  InvalidArgument: two tasks share an address. Names the address and both tasks.
void verify_distinct(const std::vector<TaskAddress>& tasks);

// How many of `tasks` have an address of the same host as `address`, by the same rule.
std::size_t tasks_on_host_of(const std::string& address, const std::vector<TaskAddress>& tasks);

}  // namespace cairn::rpc
