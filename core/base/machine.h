// What this machine has, for bounds on what others may make a process allocate.
#pragma once
#include <cstddef>
#include <string>

namespace cairn {

// All of its memory in bytes; where a control group of this process allows less, that. Thread: any.
std::size_t machine_memory_bytes();

// What a process has in memory and no file holds: its heap, stacks and mappings of its own (RssAnon
// + RssShmem of /proc/PID/status). Programs and libraries are left out: their pages are shared, and
// the system may drop them. 0: no such process here. `pid` 0: this one. Thread: any. Cost: a few
// microseconds.
std::size_t private_memory_bytes(int pid = 0);

// Who holds something that others want, for messages: "pid 4711 on host ada". Thread: any.
std::string process_text();

}  // namespace cairn
