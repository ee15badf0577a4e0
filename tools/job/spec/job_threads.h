// How many shards and lanes a run's servers have, where a job leaves that to the machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/job/spec/job.h"

namespace cairn::tools {

// How a run's lanes were chosen.
enum class LaneChoice : std::uint8_t {
  kByJob,
  kShare,   // a worker chooses the same by itself, unless it computes on a GPU
  kForRun,  // fewer, for the run as a whole or by its checkpoint: workers get the number
};

// Fills in shards and lanes of a job whose ps and workers all run here, where they are
// kAutoThreads: by the processors, which `tasks` processes share. Fewer lanes, where synchronous
// steps would not divide the batch; one under hybrid; those of `checkpoint`, if the run goes on
// with its data (empty: it does not), so that each lane finds its place in it. Says why in
// `cluster.threads_why`.
//   Errors  those of reading the checkpoint.
LaneChoice choose_threads(Job& job, std::size_t processors, std::size_t tasks,
                          const std::string& checkpoint);

// The text of a flag, as a number: "auto" is kAutoThreads.
std::string auto_as_number(std::string text);
// Both for people, with the reason: "4 shards per ps, 4 lanes per worker (16 processors for 4 tasks
// of this host)".
std::string threads_text(const JobCluster& cluster);

}  // namespace cairn::tools
