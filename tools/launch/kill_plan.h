// Which role is killed when, as --kill says it: "worker:1@40%" of the run, "ps:0@12s" after its
// start. For trying out recovery on a run of one's own.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"

namespace cairn::tools {

// One planned kill.
struct Kill {
  std::string role;
  int index = 0;
  std::optional<double> progress;  // share of the run, 0 to 1; one of these two is set
  std::optional<Duration> after;   // since the cluster's start

  bool due(Duration elapsed, double done) const {
    return progress ? done >= *progress : elapsed >= *after;
  }
  std::string str() const;  // "worker 1 at 40%", "ps 0 after 12s"
};

// The kills of a run that are still to be done.
class KillPlan {
 public:
  explicit KillPlan(std::vector<Kill> kills) : kills_(std::move(kills)) {}
  // Whether one of that role is due, which is then done: `elapsed` after the start, with `done` of
  // the run behind it.
  bool take_due(const std::string& role, int index, Duration elapsed, double done);
  // When the next one of that role is due by time.
  std::optional<Duration> next_after(const std::string& role, int index) const;
  // At which share of the run the next one is due; above 1: none is.
  double next_progress() const;

 private:
  std::vector<Kill> kills_;
};

// The kill that `text` describes.
//   Errors  InvalidArgument, quoting `text` and showing what is expected.
Kill parse_kill(std::string_view text);

//   Errors  InvalidArgument: a role other than ps, worker, dispatcher and data_worker, or an index
//           that the cluster does not have.
void verify_kills(const std::vector<Kill>& kills, int ps, int workers, int data_workers = 0);
// Whether processes of this role are the data service's: "dispatcher" and "data_worker".
bool is_data_role(std::string_view role);

}  // namespace cairn::tools
