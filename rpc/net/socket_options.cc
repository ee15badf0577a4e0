#include "rpc/net/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "rpc/net/socket_address.h"

namespace cairn::rpc {

namespace {

// A host that has vanished closes nothing. A side that only waits to be asked sends nothing either,
// and would never notice.
void notice_silence(int descriptor) {
  constexpr int kOn = 1, kIdleSeconds = 10, kIntervalSeconds = 5, kProbes = 3;
  constexpr unsigned kUnansweredMs = 25'000;
  ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &kIntervalSeconds, sizeof kIntervalSeconds);
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnansweredMs, sizeof kUnansweredMs);
}

}  // namespace

// SocketWriter batches small writes itself, so Nagle's algorithm would only hold back their last
// bytes.
void tune_socket(int descriptor, int family) {
  const int on = 1;
  if (family != AF_UNIX) {
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    notice_silence(descriptor);
    return;
  }
  for (int buffer : {SO_SNDBUF, SO_RCVBUF})
    ::setsockopt(descriptor, SOL_SOCKET, buffer, &kUnixBufferBytes, sizeof kUnixBufferBytes);
}

// Two processes may also meet at an address of the host's own: then both ends have the same one.
void tune_within_host(int descriptor) {
  SocketAddress own, peer;
  own.size = peer.size = sizeof own.storage;
  if (::getsockname(descriptor, own.get(), &own.size) != 0 ||
      ::getpeername(descriptor, peer.get(), &peer.size) != 0)
    return;
  if (!is_loopback(peer) && !same_host(own, peer.get())) return;
  constexpr char kName[] = "reno";
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, kName, sizeof kName - 1);
}

}  // namespace cairn::rpc
