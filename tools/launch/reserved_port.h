// ReservedPort: a TCP port of this host that is ours while the object lives, to be passed on to a
// server of ours.
#pragma once
#include <cstdint>
#include <string>

namespace cairn::tools {

// Holds a bound socket that does not listen. Our servers bind with SO_REUSEADDR, so they can listen
// on the port, die and come back. The system does not hand the port to other processes that ask for
// a free one.
//   Source  Linux socket(7): with SO_REUSEADDR on both, an address can be bound again unless a
//           socket listens on it.
//   Thread  any, one at a time.
class ReservedPort {
 public:
  // On 127.0.0.1.
  //   Errors  ResourceExhausted: there is no port or no descriptor left.
  ReservedPort();
  ReservedPort(ReservedPort&& other) noexcept;
  ReservedPort& operator=(ReservedPort&&) = delete;
  ~ReservedPort();

  std::uint16_t port() const { return port_; }
  std::string address() const;  // "127.0.0.1:40123"

 private:
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace cairn::tools
