#include "coordinator/engine/reported_closure.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/json.h"
#include "rpc/server/closure_activity.h"

namespace cairn {
namespace {

using Stage = ClosureProgress::Stage;

constexpr std::size_t kClosuresOfALane = 66;  // a worker reports no more of one

// A connection is made for either; its closure counts as further on once it pushes.
Stage stage_of(rpc::Activity activity) {
  switch (activity) {
    case rpc::Activity::kWaitingToRead:
    case rpc::Activity::kReading:
    case rpc::Activity::kWaitingForOthers: return Stage::kReading;
    case rpc::Activity::kConnecting:
    case rpc::Activity::kWaitingToPull:
    case rpc::Activity::kPulling: return Stage::kPulling;
    case rpc::Activity::kWaitingToPush:
    case rpc::Activity::kPushing: return Stage::kPushing;
    case rpc::Activity::kWaitingToCompute:
    case rpc::Activity::kComputing: return Stage::kComputing;
    case rpc::Activity::kHeld: return Stage::kHeld;
  }
  return Stage::kReading;
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>().substr(0, 100)
                                                   : std::string();
}
double number_of(const Json& json, const char* key, double otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}

// JSON knows only one kind of number. A sequence number is converted after it was found to be in
// range, since the conversion of any other is undefined.
ReportedClosure read_closure(const Json& json) {
  if (!json.is_object()) return {};
  const double sequence = number_of(json, "sequence", 0);
  const bool sane = sequence >= 0 && sequence < 9e18;
  const auto activity = rpc::activity_named(text_of(json, "activity"));
  return {sane ? static_cast<std::uint64_t>(sequence) : 0,
          activity ? stage_of(*activity) : Stage::kReading,
          text_of(json, "doing"),
          number_of(json, "ps", -1),
          number_of(json, "shard", -1),
          number_of(json, "seconds", 0)};
}

}  // namespace

std::vector<std::vector<ReportedClosure>> reported_closures(const std::string& status) {
  std::vector<std::vector<ReportedClosure>> lanes;
  try {
    const Json own = parse_json(status, "a worker's status", 16);
    const auto found = own.is_object() ? own.find("lanes") : own.end();
    if (found == own.end() || !found->is_array()) return lanes;
    for (const Json& lane : *found) {
      std::vector<ReportedClosure>& reported = lanes.emplace_back();
      const auto closures = lane.is_object() ? lane.find("closures") : lane.end();
      if (closures == lane.end() || !closures->is_array()) continue;
      for (std::size_t i = 0; i < std::min(closures->size(), kClosuresOfALane); ++i)
        reported.push_back(read_closure((*closures)[i]));
    }
  } catch (const InvalidArgumentError&) {  // it has reported nothing yet, or nonsense
  }
  return lanes;
}

}  // namespace cairn
