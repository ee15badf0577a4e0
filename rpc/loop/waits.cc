#include "rpc/loop/waits.h"

#include <algorithm>
#include <atomic>

#include "core/base/log.h"
#include "rpc/loop/task_group.h"

namespace cairn::rpc {
namespace {

constexpr Duration kAnswer = std::chrono::seconds(1);
constexpr std::size_t kLines = 50;  // of one loop

}  // namespace

void log_tasks_here(const std::string& loop) {
  const std::vector<WaitingTasks> tasks = tasks_of_this_thread();
  if (tasks.empty()) log_info("waits: ", loop, ": nothing but new requests");
  for (std::size_t i = 0; i < std::min(tasks.size(), kLines); ++i)
    log_info("waits: ", loop, ": ", tasks[i].what,
             tasks[i].count > 1 ? str(" (", tasks[i].count, " times)") : std::string(), ", for ",
             fixed(std::chrono::duration<double>(tasks[i].oldest).count(), 1), " s");
  if (tasks.size() > kLines)
    log_info("waits: ", loop, ": and for ", tasks.size() - kLines, " other things, since later");
}

// Each loop answers for itself, on its own thread, since only that may read its lists. The flags
// are shared, because a loop that is busy may answer when this has long ended.
Task<void> log_tasks_of(Reactor& asking, std::vector<NamedLoop> loops) {
  using Answered = std::atomic<bool>;
  std::vector<std::shared_ptr<Answered>> answered;
  for (const NamedLoop& loop : loops) {
    auto here = std::make_shared<Answered>(false);
    answered.push_back(here);
    loop.mailbox->post([here, name = loop.name] {
      *here = true;
      log_tasks_here(name);
    });
  }
  co_await asking.sleep(kAnswer);
  for (std::size_t i = 0; i < loops.size(); ++i)
    if (!*answered[i])
      log_warning("waits: ", loops[i].name,
                  ": its loop has not answered for a second: it computes, or it is stuck");
}

}  // namespace cairn::rpc
