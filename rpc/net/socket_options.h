// What Cairn asks of its sockets; the benchmarks ask the same of the bare ones that they compare
// with.
#pragma once
namespace cairn::rpc {

// With the stock 208 KiB, bulk over Unix sockets is a third slower. The kernel caps it at
// net.core.wmem_max: a smaller grant is no error.
inline constexpr int kUnixBufferBytes = 4 << 20;

// Before it is connected, or as it was accepted. A TCP connection whose other host is silent for 25
// seconds, not even acknowledging, is lost. TCP's buffers grow by themselves, and worse if
// told how large to be.
void tune_socket(int descriptor, int family);

// Of a connected TCP socket. Between processes of one host nothing is ever congested, and a
// congestion control that paces what it sends (BBR, the default of many systems) halves the rate of
// bulk: such a connection is given Reno, which every Linux has. Any other keeps the system's.
void tune_within_host(int descriptor);

}  // namespace cairn::rpc
