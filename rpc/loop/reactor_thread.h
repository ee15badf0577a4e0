// A thread with a reactor on it: how a process gets one loop a shard or lane.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "rpc/loop/reactor.h"

namespace cairn::rpc {

class ReactorThread {
 public:
  // Returns when the loop stands. `name` is the thread's (15 characters are shown).
  explicit ReactorThread(std::string name, ReactorOptions options = {});
  ~ReactorThread();  // stop()

  // The loop's address is fixed; use it from another thread only to post.
  Reactor& reactor() { return *reactor_; }
  bool post(Work work) { return mailbox_->post(std::move(work)); }
  // Runs `work` on the loop and waits for it. Errors: what `work` throws; Unavailable when the
  // thread has stopped. Never from a reactor's own thread.
  void run(Work work);
  // Ends the loop and joins. What post() brought earlier runs first. Idempotent.
  void stop();

 private:
  struct Thread;
  std::unique_ptr<Thread> thread_;
  Reactor* reactor_ = nullptr;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace cairn::rpc
