#include "tools/launch/role_group.h"

#include <signal.h>

#include <utility>

#include "core/base/error.h"

namespace cairn::tools {
namespace {

constexpr int kYoungEndsMax = 3;  // in a row
// How long roles may take to notice that one is gone, which is a second, and to end.
constexpr Duration kGroupPatience = std::chrono::seconds(15);
// How long they may take if they were asked: a checkpoint may take its time.
constexpr Duration kAskedPatience = std::chrono::minutes(10);

}  // namespace

RoleGroup::RoleGroup(RoleGroupOptions options, int size, Duration young)
    : options_(std::move(options)), young_(young), ends_(static_cast<std::size_t>(size)) {}

void RoleGroup::started(TimePoint now) {
  started_ = now;
  ends_.assign(ends_.size(), std::nullopt);
  cause_ = -1;
  ending_.reset();
  told_to_end_ = planned_ = false;
}

// A role that was killed is the cause, if there is one: the others end with an exit status because
// of it, and which of the ends is seen first is chance.
void RoleGroup::ended(int index, ExitStatus status, TimePoint now) {
  ends_[static_cast<std::size_t>(index)] = status;
  if (status.shell_code() == 0) return;
  const bool first = cause_ < 0;
  const bool killed = status.signal != 0 && !told_to_end_;
  if (first || (killed && ends_[static_cast<std::size_t>(cause_)]->signal == 0)) cause_ = index;
  if (!first) return;
  broke_ = now;
  ending_ = now + kGroupPatience;
}

int RoleGroup::asked_to_end(TimePoint now) {
  if (!ending_) ending_ = now + kAskedPatience;
  return ++requests_;
}

std::optional<int> RoleGroup::due_signal(TimePoint now) {
  if (!ending_ || now < *ending_) return std::nullopt;
  ending_ = now + kGroupPatience;
  return std::exchange(told_to_end_, true) ? SIGKILL : SIGTERM;
}

RoleGroup::Outcome RoleGroup::outcome() {
  if (cause_ < 0) return {};
  if (requests_ > 0) return {.status = *ends_.front()};
  const ExitStatus status = *ends_[static_cast<std::size_t>(cause_)];
  if (!planned_) {
    const bool young = broke_ - started_ < young_;
    young_ends_ = young ? young_ends_ + 1 : 0;
    const std::string who = str(options_.role, " ", cause_, " ended with ", status.str());
    if (young && status.signal == 0)
      return {
          .status = status,
          .text = str(who, " soon after its start, so that it would again: the group has ended")};
    if (young_ends_ >= kYoungEndsMax || counted_ >= options_.restarts_max)
      return {.status = status,
              .text = str(who, ", and the group was started again ", counted_,
                          " times: it has ended; mend the cause, and start it again")};
    ++counted_;
  }
  ++restarts_;
  return {.again = true};
}

}  // namespace cairn::tools
