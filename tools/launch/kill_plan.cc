#include "tools/launch/kill_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"

namespace cairn::tools {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw InvalidArgumentError(
      str("--kill ", text, ": ", why, "; expected ROLE:INDEX@WHEN, as worker:1@40% or ps:0@12s"));
}

// The whole text must be the number: "1x" is refused.
template <typename Number>
Number number(std::string_view all, std::string_view text, const char* what) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(all, str("\"", text, "\" is not ", what));
  return value;
}

}  // namespace

std::string Kill::str() const {
  if (progress) return cairn::str(role, " ", index, " at ", *progress * 100, "%");
  return cairn::str(role, " ", index, " after ", std::chrono::duration<double>(*after).count(),
                    "s");
}

// ROLE:INDEX@WHEN, cut at the first colon and the first @. Whether the role exists is checked by
// verify_kills(), when the cluster's size is known.
Kill parse_kill(std::string_view text) {
  auto colon = text.find(':');
  auto at = text.find('@');
  if (colon == text.npos || at == text.npos || colon > at) refuse(text, "a part is missing");
  Kill kill{.role = std::string(text.substr(0, colon))};
  kill.index = number<int>(text, text.substr(colon + 1, at - colon - 1), "an index");
  std::string_view when = text.substr(at + 1);
  if (when.empty() || (when.back() != '%' && when.back() != 's'))
    refuse(text, "WHEN must end in % or s");
  double value = number<double>(text, when.substr(0, when.size() - 1), "a number");
  // Compared so that NaN is refused as well.
  if (!std::isfinite(value) || value < 0) refuse(text, "WHEN must not be negative");
  if (when.back() == '%' && value > 100) refuse(text, "a run has no more than 100%");
  if (when.back() == 's' && value > 1e9) refuse(text, "no run is that long");
  if (when.back() == '%')
    kill.progress = value / 100;
  else
    kill.after = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  return kill;
}

bool is_data_role(std::string_view role) { return role == "dispatcher" || role == "data_worker"; }

void verify_kills(const std::vector<Kill>& kills, int ps, int workers, int data_workers) {
  for (const Kill& kill : kills) {
    if (kill.role != "ps" && kill.role != "worker" && !is_data_role(kill.role))
      throw InvalidArgumentError(
          str("--kill: \"", kill.role,
              "\" cannot be killed, only ps, worker, dispatcher and data_worker can"));
    const int count = kill.role == "ps"            ? ps
                      : kill.role == "worker"      ? workers
                      : kill.role == "data_worker" ? data_workers
                                                   : std::min(data_workers, 1);
    if (kill.index < 0 || kill.index >= count)
      throw InvalidArgumentError(str("--kill ", kill.role, ":", kill.index, ": the cluster has ",
                                     count, " ", kill.role, ", counted from 0"));
  }
}

bool KillPlan::take_due(const std::string& role, int index, Duration elapsed, double done) {
  const auto due = std::ranges::find_if(kills_, [&](const Kill& kill) {
    return kill.role == role && kill.index == index && kill.due(elapsed, done);
  });
  if (due == kills_.end()) return false;
  kills_.erase(due);
  return true;
}

std::optional<Duration> KillPlan::next_after(const std::string& role, int index) const {
  std::optional<Duration> next;
  for (const Kill& kill : kills_)
    if (kill.after && kill.role == role && kill.index == index)
      next = std::min(next.value_or(*kill.after), *kill.after);
  return next;
}

double KillPlan::next_progress() const {
  double next = 2;
  for (const Kill& kill : kills_)
    if (kill.progress) next = std::min(next, *kill.progress);
  return next;
}

}  // namespace cairn::tools
