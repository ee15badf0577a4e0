#include "coordinator/engine/primary_choice.h"

namespace cairn {
namespace {

bool at_same_place(const ShardReplica& a, const ShardReplica& b) {
  return a.ps == b.ps && a.endpoint == b.endpoint;
}

// Where the same process is, with all that it had.
std::optional<std::size_t> find(const std::vector<PlaceNow>& places, const ShardReplica& replica) {
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].there && at_same_place(places[i].replica, replica) &&
        places[i].replica.process == replica.process)
      return i;
  return std::nullopt;
}

bool may_come_back(const std::vector<PlaceNow>& places, const ShardReplica& replica) {
  if (replica.process == 0) return false;  // it has no rows
  for (const PlaceNow& place : places)
    if (at_same_place(place.replica, replica)) return !place.there;
  return false;
}

}  // namespace

std::optional<PrimaryChoice> choose_primary(const std::vector<PlaceNow>& places,
                                            const ShardLayout& layout, bool sound,
                                            bool wait_for_rows) {
  if (const auto same = find(places, layout.primary)) return PrimaryChoice{*same, sound};
  bool wait = may_come_back(places, layout.primary);
  for (const ShardReplica& backup : layout.backups) {
    if (const auto next = find(places, backup)) return PrimaryChoice{*next, sound};
    wait = wait || may_come_back(places, backup);
  }
  if (wait && sound && wait_for_rows) return std::nullopt;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].there) return PrimaryChoice{i, false};
  return std::nullopt;
}

}  // namespace cairn
