// The options of Cairn's sockets; the benchmarks set the same on the bare ones that they compare
// with.
#pragma once
namespace cairn::rpc {

// With the stock 208 KiB, bulk over Unix sockets is a third slower. The kernel caps it at
// net.core.wmem_max: a smaller grant is no error.
inline constexpr int kUnixBufferBytes = 4 << 20;

// Before it is connected, or as it was accepted. A TCP connection whose other host is silent for 25
// seconds, not even acknowledging, is lost. TCP's buffers are left alone: they grow by themselves,
// better than at a given size.
void tune_socket(int descriptor, int family);

// Sets the congestion control of a connected TCP socket whose peer is on this host to Reno, which
// every Linux has; any other socket keeps the system's. Within one host nothing is ever congested,
// and a control that paces what it sends (BBR, the default of many systems) halves the bulk rate.
void tune_within_host(int descriptor);

}  // namespace cairn::rpc
