// Facts about this machine and this process. The memory's size bounds what peers and files may make
// a process allocate: a hostile length is refused before memory is asked for.
#pragma once
#include <cstddef>
#include <string>

namespace cairn {

// The machine's memory in bytes, or less if the control group of this process allows less. Measured
// once.
//   Thread  any.
std::size_t machine_memory_bytes();

// The bytes of memory that process `pid` (0: this one) holds and no file backs: its heap, its
// stacks and its own mappings (RssAnon + RssShmem of /proc/PID/status, proc(5)). Programs and
// libraries are left out, since their pages are shared and the system may drop them. 0: there is no
// such process.
//   Thread  any.
//   Cost  a few microseconds.
std::size_t private_memory_bytes(int pid = 0);

// This process, for messages that name the holder of something: "pid 4711 on host ada".
//   Thread  any.
std::string process_text();

}  // namespace cairn
