// The journal that `cairn up` gives the program that it starts, by the environment.
//   Thread  one, at a time.
#pragma once
#include "coordinator/cluster/engine_options.h"

namespace cairn {

// CAIRN_JOURNAL names a folder below which the program's first strategy has its journal, so that
// the program, when CAIRN_RESTARTS says that it was started again, goes on with its run.
//
//   Not there   where the variable is not set; for updates in rounds, each of which would wait for
//               the disk; and for a second strategy of one start, of the same process or of another
//               one that the program runs: which of the two a later start would go on with cannot
//               be told. The log then says why.
//   Begun anew  where another command line has written it.
//   Errors      those of the disk.
JournalOptions journal_of_environment(const Consistency& consistency);

}  // namespace cairn
