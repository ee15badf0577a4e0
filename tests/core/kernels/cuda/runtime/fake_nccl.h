// A libnccl.so.2 that sums nothing, and notes what it is asked.
#pragma once
#include <string>
#include <vector>

// "id", "rank 2 of 4 by id 1", "init 0 3", "start", "all_reduce 1 float32 sum of 2", "end",
// "abort 0", "finalize 0", "destroy 1": communicators are numbered as they were made. What was
// noted so far is forgotten.
__attribute__((visibility("default"))) std::vector<std::string> take_nccl_calls();
// From now on communicators have this error, and calls return it; 0: none.
__attribute__((visibility("default"))) void set_nccl_error(int error);
// The next operations of communicators that do not wait end when so many questions after their
// state were answered by "in progress"; -1: never.
__attribute__((visibility("default"))) void set_nccl_progress(int questions);
