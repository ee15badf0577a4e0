// Link: a TCP connection's middle, which can be cut, or stop passing bytes on, as a network does
// that fails.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace cairn::chaos {

// Listens on a port of its own on 127.0.0.1 and forwards each connection to 127.0.0.1:`upstream`.
// Threads: it runs one; all calls: any.
class Link {
 public:
  explicit Link(std::uint16_t upstream);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  std::string address() const;  // "127.0.0.1:40123"
  void cut();                   // ends all connections; new ones may be made
  // From now on nothing is passed on that way, without an error: bytes that are sent wait here
  // until heal().
  void partition(bool towards_upstream, bool from_upstream);
  void heal();

 private:
  class Network;
  std::unique_ptr<Network> network_;
};

}  // namespace cairn::chaos
