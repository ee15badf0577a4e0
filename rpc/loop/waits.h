// The tasks that the loops of a process wait for, written to its log on SIGUSR1.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rpc/loop/reactor.h"

namespace cairn::rpc {

struct NamedLoop {
  std::string name;  // "lane 0"
  std::shared_ptr<Mailbox> mailbox;
};

// A line for each kind of task of this thread's loop, with its age.
void log_tasks_here(const std::string& loop);

// The same for other loops of the process. One that does not answer within a second is named: it
// computes, or it is stuck.
Task<void> log_tasks_of(Reactor& asking, std::vector<NamedLoop> loops);

}  // namespace cairn::rpc
