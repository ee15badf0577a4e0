// How many processors this process may use, and how the threads of several processes share them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace cairn {

// The files by which Linux describes control groups; tests have such files elsewhere.
struct ControlGroupFiles {
  std::string groups = "/proc/self/cgroup";  // which groups this process is in
  std::string mount = "/sys/fs/cgroup";
};

// The processors of this process's affinity mask (taskset, cpusets), or fewer where its control
// groups allow it less time than those have: cpu.max of version 2, cpu.cfs_quota_us of version 1,
// of its group and of those above. A part of a processor counts as one. At least 1.
//   Thread  any.   Cost  some files are read.
std::size_t usable_processors();
// The same with a mask of `affinity` processors.
std::size_t usable_processors(std::size_t affinity, const ControlGroupFiles& files);

// A number of threads, and the reason for it: "16 processors for 4 tasks of this host".
struct ThreadChoice {
  std::uint32_t threads = 1;
  std::string why;
  bool bounded = false;  // the share is larger, and the bound less
};
// The most threads that `auto` gives, and the reason for that bound.
struct ThreadBound {
  std::size_t most = 1;
  std::string why;
};
// The bound of the shards of one ps.
ThreadBound shards_bound();
// The bound of the lanes of one worker among `workers`. It divides a bound of all lanes together,
// since the updates of each lane are stale by those of the others.
ThreadBound lanes_bound(std::size_t workers);

// The number of threads that `--shards auto` and `--lanes auto` stand for, where `tasks` processes
// of one host share its processors.
ThreadChoice share_of_processors(std::size_t processors, std::size_t tasks,
                                 const ThreadBound& bound);

}  // namespace cairn
