// Threads at the end of a process: a child of fork() has none of those that its parent's objects
// own, and a program may end while some still run.
#pragma once
#include <utility>

namespace cairn::python {

// False in a process that was forked from the one that imported Cairn. There, what owns threads is
// left as it is: to end it would wait for them for ever.
bool in_own_process();

// Counts the objects that own threads: +1 when one is made, -1 when its threads have ended.
void count_living(int change);
// Registers an exit handler: while such an object is alive the process ends at once, with its exit
// status and without static destructors, since its threads may still use what those destroy.
void leave_without_destructors();

// For destructors: ends what `owner` (a smart pointer) holds, or forgets it in a forked process.
template <typename Pointer>
void end_here(Pointer& owner) {
  if (in_own_process())
    owner.reset();
  else
    static_cast<void>(new Pointer(std::move(owner)));  // on purpose: never destroyed
}

}  // namespace cairn::python
