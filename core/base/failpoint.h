// Failpoints: the places before and after each step that makes something durable. A test chooses
// one, and the process dies there.
//
//   CAIRN_DIE_AT=file.renamed      this process kills itself (SIGKILL) the first time it passes
//   that place
//   CAIRN_DIE_AT=file.renamed:3    the third time it passes it
#pragma once
#include <span>

namespace cairn {

// All of them, in the order in which a checkpoint passes them.
//   rows.*    a ps: the folder of its database, a sorted file of rows, the database as a whole
//   files.*   files of the checkpoint below, linked into a delta's folder
//   file.*    a file that is written atomically (the manifest): its bytes are beside it, it is
//   renamed, its folder is synced
//   prune.*   an old checkpoint: its manifest is gone, then all of it
//   consolidate.*  a chain of deltas: the full databases are in the newest one's folder, and its
//   manifest names them
//   journal.*  records of a coordinator's journal: some of their bytes are in its file, all are,
//   and no loss of power takes them back
std::span<const char* const> failpoints();

// Dies here if CAIRN_DIE_AT says so. `name` is one of failpoints().
//   Thread  any.
//   Cost  one comparison where no failpoint is set.
void failpoint(const char* name);
// The next pass of that place is the last, so that what comes before may be left half done.
bool dies_at(const char* name);

}  // namespace cairn
