// Collects a supervisor's events, so that a test waits for one of them and for no length of time.
#pragma once
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "tools/launch/supervisor.h"

namespace cairn::tools {

class EventLog {
 public:
  std::function<void(const RoleEvent&)> sink() {
    return [this](const RoleEvent& event) {
      std::lock_guard hold(mutex_);
      events_.push_back(event);
      changed_.notify_all();
    };
  }

  // The `nth` (from 1) event of that kind of that role; a failure and an empty event if it has not
  // come in 30 s.
  RoleEvent wait(RoleEvent::Kind kind, const std::string& role, int index, int nth = 1) {
    std::unique_lock hold(mutex_);
    std::optional<RoleEvent> found;
    changed_.wait_for(hold, std::chrono::seconds(30),
                      [&] { return (found = find(kind, role, index, nth)).has_value(); });
    if (!found)
      ADD_FAILURE() << "event " << nth << " of " << role << " " << index << " did not come";
    return found.value_or(RoleEvent{});
  }

  int count(RoleEvent::Kind kind) {
    std::lock_guard hold(mutex_);
    int total = 0;
    for (const auto& event : events_) total += event.kind == kind;
    return total;
  }

 private:
  std::optional<RoleEvent> find(RoleEvent::Kind kind, const std::string& role, int index,
                                int nth) const {
    for (const auto& event : events_)
      if (event.kind == kind && event.role == role && event.index == index && --nth == 0)
        return event;
    return std::nullopt;
  }

  std::mutex mutex_;  // guards events_
  std::condition_variable changed_;
  std::vector<RoleEvent> events_;
};

}  // namespace cairn::tools
