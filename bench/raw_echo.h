// The machine's own limit for a question and an answer: bytes there and back between two processes,
// blocking.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace cairn::bench {

// Where the two processes run. On one core a hop is a task switch; between two it wakes an idle
// core, which a virtual machine pays for dearly.
enum class Placement { kAnywhere, kTwoCores };

// a Unix socket pair, or TCP over loopback; buffers as the transports have them
enum class EchoSocket { kUnix, kTcp };
inline EchoSocket socket_of(const std::string& transport) {
  return transport == "tcp" ? EchoSocket::kTcp : EchoSocket::kUnix;
}

// A child process that sends back what it gets. Start it before any thread.
class RawEcho {
 public:
  static constexpr std::size_t kBytesMin = 64, kBytesMax = std::size_t{4} << 20;

  explicit RawEcho(EchoSocket socket);
  ~RawEcho();
  RawEcho(const RawEcho&) = delete;
  RawEcho& operator=(const RawEcho&) = delete;
  // Microseconds of each round trip of so many bytes each way, for about so long.
  std::vector<double> run(double seconds, std::size_t bytes = kBytesMin,
                          Placement placement = Placement::kAnywhere);
  NamedProcesses processes() const;

 private:
  class Pinned;
  int socket_ = -1;
  pid_t child_ = -1;
};

}  // namespace cairn::bench
