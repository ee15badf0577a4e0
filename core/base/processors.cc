#include "core/base/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The mask has room for any machine: the call fails with one that is too small (sched(7)).
std::size_t affinity_processors() {
  for (int most = 1024; most <= 1 << 20; most *= 4) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<std::size_t>(most));
    if (mask == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    const int status = ::sched_getaffinity(0, bytes, mask);
    const int count = status == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return static_cast<std::size_t>(count);
  }
  return static_cast<std::size_t>(std::max(1l, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// Processors' worth of time that one group is allowed. The text "max", a negative quota or a file
// that is not there: no limit.
double limit_of(const std::string& folder) {
  double quota = -1, period = 0;
  if (std::ifstream all(folder + "/cpu.max"); !(all >> quota >> period)) {
    quota = -1;
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : kNoLimit;
}

// A limit holds for all groups below its own. A container may see its group's full name and, below
// the mount, only its own part of the tree: names that lead nowhere have no limit.
double limit_from(const std::string& mount, std::string group) {
  double least = limit_of(mount);
  while (group.size() > 1) {
    least = std::min(least, limit_of(mount + group));
    group.resize(group.rfind('/'));
  }
  return least;
}

// A line is "ID:CONTROLLERS:GROUP" (cgroups(7)); in version 2 the ID is 0, and there are no
// controllers.
double limit_of_groups(const ControlGroupFiles& files) {
  double least = kNoLimit;
  std::ifstream lines(files.groups);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (!group.starts_with('/')) continue;
    if (controllers.empty()) least = std::min(least, limit_from(files.mount, group));
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');)
      if (name == "cpu")
        for (const std::string& folder : {controllers, name})
          least = std::min(least, limit_from(files.mount + "/" + folder, group));
  }
  return least;
}

}  // namespace

std::size_t usable_processors() { return usable_processors(affinity_processors(), {}); }

std::size_t usable_processors(std::size_t affinity, const ControlGroupFiles& files) {
  const double allowed = std::ceil(limit_of_groups(files));
  const auto most = std::max<std::size_t>(affinity, 1);
  return allowed < static_cast<double>(most)
             ? std::max<std::size_t>(1, static_cast<std::size_t>(allowed))
             : most;
}

ThreadBound shards_bound() { return {16, "more than 16 shards only when asked for"}; }

// On Adult (examples/adult.toml), the mean AUC of 8 runs with 2 lanes is 0.9161, of 3 with 8 lanes
// 0.9163, of 8 with 16 lanes 0.9155 and of 2 with 32 lanes 0.9128. Up to 16 the loss is below
// 0.001.
ThreadBound lanes_bound(std::size_t workers) {
  constexpr std::size_t kLanesOfAll = 16;
  return {std::max<std::size_t>(1, kLanesOfAll / std::max<std::size_t>(1, workers)),
          "more than 16 lanes in all cost accuracy, so only when asked for"};
}

ThreadChoice share_of_processors(std::size_t processors, std::size_t tasks,
                                 const ThreadBound& bound) {
  const std::size_t share = std::max<std::size_t>(1, processors / std::max<std::size_t>(tasks, 1));
  std::string why = str(processors, processors == 1 ? " processor" : " processors");
  if (tasks > 1) why += str(" for ", tasks, " tasks of this host");
  const bool bounded = share > bound.most;
  if (bounded) why += "; " + bound.why;
  return {static_cast<std::uint32_t>(std::min(share, bound.most)), why, bounded};
}

}  // namespace cairn
