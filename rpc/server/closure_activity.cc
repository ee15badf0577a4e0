#include "rpc/server/closure_activity.h"

#include <cstddef>
#include <iterator>

namespace cairn::rpc {
namespace {

struct ActivityWords {
  std::string_view name, text;
};

// In the order of the enum.
constexpr ActivityWords kActivities[] = {
    {"waiting_to_read", "waiting to read its data"},
    {"reading", "reading its data"},
    {"waiting_for_others", "waiting for those before it"},
    {"connecting", "connecting to"},
    {"waiting_to_pull", "waiting for credit to pull from"},
    {"pulling", "pulling from"},
    {"waiting_to_push", "waiting for credit to push to"},
    {"pushing", "pushing to"},
    {"waiting_to_compute", "waiting to compute"},
    {"computing", "computing"},
    {"held", "held for a checkpoint"},
};
static_assert(std::size(kActivities) == static_cast<std::size_t>(Activity::kHeld) + 1);

const ActivityWords& words_of(Activity activity) {
  return kActivities[static_cast<std::size_t>(activity)];
}

}  // namespace

bool has_shard(Activity activity) {
  return activity >= Activity::kConnecting && activity <= Activity::kPushing;
}

std::string_view activity_text(Activity activity) { return words_of(activity).text; }
std::string_view activity_name(Activity activity) { return words_of(activity).name; }

std::optional<Activity> activity_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kActivities); ++i)
    if (kActivities[i].name == name) return static_cast<Activity>(i);
  return std::nullopt;
}

}  // namespace cairn::rpc
