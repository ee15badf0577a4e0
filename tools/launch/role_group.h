// RoleGroup: the rule by which a Supervisor keeps roles running that are of use together only. If
// one of them ends with an error, the others end by themselves, or are ended after a while; then
// all are started again, or none.
//
//   Not again   a group that was started again `restarts_max` times; one that has ended three times
//               in a row soon after its start; one of which a role ended by itself that early, with
//               an exit status, since it would do so again; one that was asked to end. Kills by
//               plan do not count.
//   Thread      the supervisor's. It starts and signals nothing itself.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {

struct RoleGroupOptions {
  std::string role;  // all indices of it are the group
  int restarts_max = 10;
};

class RoleGroup {
 public:
  // `young`: an end so soon after the start is not one of a healthy life.
  RoleGroup(RoleGroupOptions options, int size, Duration young);
  bool has(const std::string& role) const { return role == options_.role; }

  // ---- what happens ----

  void started(TimePoint now);                              // all of it
  void planned() { planned_ = true; }                       // a kill of one of them
  void ended(int index, ExitStatus status, TimePoint now);  // one of them
  // From now on nothing is started again; how often that has been asked for.
  int asked_to_end(TimePoint now);

  // ---- what is to be done ----

  bool is_ending() const { return ending_.has_value(); }
  std::optional<TimePoint> deadline() const { return ending_; }
  // The signal for those that still run, if it is time for one.
  std::optional<int> due_signal(TimePoint now);
  bool is_asked_to_end() const { return requests_ > 0; }

  struct Outcome {
    bool again = false;
    ExitStatus status;  // of the whole group, where it is not started again
    std::string text;   // why not, for people; empty: it was asked to end, or all ended well
  };
  // To be called once all have ended: start the group again, or report its end.
  Outcome outcome();
  int restarts() const { return restarts_; }

 private:
  RoleGroupOptions options_;
  Duration young_;
  std::vector<std::optional<ExitStatus>> ends_;  // by index
  TimePoint started_{}, broke_{};                // the newest start; the first error since then
  int cause_ = -1;                   // the role whose end was the cause; -1: all ended well
  std::optional<TimePoint> ending_;  // when those that still run get SIGTERM, and later SIGKILL
  bool told_to_end_ = false, planned_ = false;
  int restarts_ = 0, counted_ = 0, young_ends_ = 0, requests_ = 0;
};

}  // namespace cairn::tools
