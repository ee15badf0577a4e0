// Failpoints: the places before and after each step that makes something last, where a test has the
// process die.
//
//   CAIRN_DIE_AT=file.renamed      this process kills itself (SIGKILL) where it first passes that
//                                  place
//   CAIRN_DIE_AT=file.renamed:3    where it passes it for the third time
#pragma once
#include <span>

namespace cairn {

// All of them, in the order in which a checkpoint passes them.
//   rows.*    a ps: the folder of its database, a sorted file of rows, the database as a whole
//   file.*    a file written atomically (the manifest): its bytes beside it, renamed, the folder
//             synced
//   prune.*   an old checkpoint: its manifest is gone, all of it is
std::span<const char* const> failpoints();

// Costs one comparison where none is set. Thread: any.
void failpoint(const char* name);

}  // namespace cairn
