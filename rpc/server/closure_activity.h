// Activity: what a closure that has begun on a lane does or waits for. A worker's status carries
// its name, which the coordinator reads, and its text, which people read.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cairn::rpc {

enum class Activity : std::uint8_t {
  kWaitingToRead,  // others read their data first
  kReading,
  kWaitingForOthers,  // the lane's limit of active closures is reached
  kConnecting,        // from here to kPushing there is a shard: connecting to it,
  kWaitingToPull,     // waiting for credit,
  kPulling,
  kWaitingToPush,
  kPushing,
  kWaitingToCompute,  // others compute
  kComputing,
  kHeld,  // a checkpoint holds pushes
};
bool has_shard(Activity activity);

std::string_view activity_text(Activity activity);  // "pulling from"
// Part of the wire: a name never changes its meaning.
std::string_view activity_name(Activity activity);  // "pulling"
// Empty if this build does not know the name: a newer worker sent it.
std::optional<Activity> activity_named(std::string_view name);

}  // namespace cairn::rpc
