#include "tests/chaos/ps_harm.h"

#include <signal.h>

#include "coordinator/engine/control_server.h"
#include "core/base/error.h"

namespace cairn::chaos {
namespace {

using std::chrono::milliseconds;

// A ps that stands still is lost after five heartbeats of 200 ms, and the status is up to 200 ms
// old.
constexpr Duration kNoticed = milliseconds(1500);

}  // namespace

bool backups_in_sync(const Json& status) {
  const Json all = status.value("ps", Json::array());
  for (const Json& ps : all) {
    const std::int64_t backups = ps.value("backups", std::int64_t{0});
    if (!ps.value("ready", false) || backups < 1 ||
        ps.value("in_sync", std::int64_t{-1}) != backups)
      return false;
  }
  return !all.empty();
}

bool backups_in_sync(const Cluster& cluster) {
  try {
    const ControlAddress chief{.address = cluster.address("chief"), .cluster = "cairn"};
    return backups_in_sync(parse_json(ask_status(chief), "the coordinator's status"));
  } catch (const Error&) {
    return false;
  }
}

bool PsHarm::whole() const {
  if (!stopped_.empty() || partitioned_ != nullptr) return false;
  if (system_clock().now() - quiet_since_ < kNoticed) return false;
  return backups_in_sync(cluster_);
}

std::int64_t PsHarm::between(std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most - least + 1)));
}

std::string PsHarm::strike() {
  const std::string ps = str("ps", between(0, ps_ - 1));
  Link* const link = cluster_.link(ps);
  disturb();
  switch (between(0, link == nullptr ? 1 : 4)) {
    case 0:
      cluster_.kill(ps);
      cluster_.start(ps);
      return "kill ps";
    case 1:
      cluster_.process(ps).send(SIGSTOP);
      last(ps, nullptr);
      return "stop ps";
    case 2: link->cut(); return "cut ps";
    case 3:
      link->partition(true, true);
      last("", link);
      return "partition ps";
    default: {
      const bool towards = between(0, 1) == 1;
      link->partition(towards, !towards);
      last("", link);
      return "one-way partition ps";
    }
  }
}

void PsHarm::last(const std::string& ps, Link* partitioned) {
  stopped_ = ps;
  partitioned_ = partitioned;
  until_ = system_clock().now() + milliseconds(between(2000, 4000));
}

void PsHarm::look() {
  if (system_clock().now() >= until_) end();
}

void PsHarm::end() {
  if (stopped_.empty() && partitioned_ == nullptr) return;
  if (!stopped_.empty()) cluster_.process(stopped_).send(SIGCONT);
  if (partitioned_ != nullptr) partitioned_->heal();
  stopped_.clear();
  partitioned_ = nullptr;
  disturb();
}

void PsHarm::disturb() { quiet_since_ = system_clock().now(); }

}  // namespace cairn::chaos
