// The cost of one RPC call, beside a bare Unix-socket echo of the same run.
//
//   cairn-bench-echo [--transport unix|tcp] [--seconds 1] [--spin-us 0]
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "bench/echo.capnp.h"
#include "core/base/error.h"
#include "core/base/program.h"
#include "rpc/loop/reactor_thread.h"
#include "rpc/net/connection.h"
#include "rpc/net/network.h"
#include "rpc/server/server.h"

namespace cairn::rpc {
namespace {

using Stopwatch = std::chrono::steady_clock;
using bench::Echo;

constexpr std::size_t kRawBytes = 64;
constexpr Duration kPatience = std::chrono::seconds(30);

double microseconds(Stopwatch::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

class EchoService final : public Echo::Server {
 public:
  kj::Promise<void> echo(EchoContext context) override {
    context.getResults().setN(context.getParams().getN());
    return kj::READY_NOW;
  }
};

void print_latency(const char* what, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double share) {
    return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
  };
  std::printf("%-44s p50 %7.1f us   p99 %7.1f us   (%zu calls)\n", what, at(0.5), at(0.99),
              samples.size());
}

void raw_echo(double seconds) {
  int fds[2];
  CAIRN_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  std::thread server([fd = fds[1]] {
    char bytes[kRawBytes];
    while (::recv(fd, bytes, sizeof bytes, MSG_WAITALL) == static_cast<ssize_t>(sizeof bytes))
      if (::send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) < 0) break;
  });
  std::vector<double> samples;
  char bytes[kRawBytes] = {};
  auto end = Stopwatch::now() + std::chrono::duration<double>(seconds);
  for (auto now = Stopwatch::now(); now < end;) {
    bool sent = ::send(fds[0], bytes, sizeof bytes, MSG_NOSIGNAL) > 0;
    CAIRN_CHECK(sent && ::recv(fds[0], bytes, sizeof bytes, MSG_WAITALL) > 0);
    auto after = Stopwatch::now();
    samples.push_back(microseconds(after - now));
    now = after;
  }
  ::shutdown(fds[0], SHUT_RDWR);
  server.join();
  ::close(fds[0]);
  ::close(fds[1]);
  print_latency("bare Unix-socket echo, 64 B, blocking", std::move(samples));
}

Task<void> one_at_a_time(Echo::Client client, double seconds, std::vector<double>& samples) {
  auto end = Stopwatch::now() + std::chrono::duration<double>(seconds);
  for (auto now = Stopwatch::now(); now < end;) {
    co_await client.echoRequest().send();
    auto after = Stopwatch::now();
    samples.push_back(microseconds(after - now));
    now = after;
  }
}

Task<void> caller(Echo::Client client, Stopwatch::time_point end, std::uint64_t& calls) {
  while (Stopwatch::now() < end) {
    co_await client.echoRequest().send();
    ++calls;
  }
}

void rpc_rate(Reactor& reactor, Echo::Client client, double seconds, std::size_t in_flight) {
  std::uint64_t calls = 0;
  auto start = Stopwatch::now();
  auto end = start + std::chrono::duration_cast<Stopwatch::duration>(
                         std::chrono::duration<double>(seconds));
  auto callers = kj::heapArrayBuilder<kj::Promise<void>>(in_flight);
  for (std::size_t i = 0; i < in_flight; ++i) callers.add(caller(client, end, calls));
  reactor.wait(kj::joinPromises(callers.finish()));
  auto took = std::chrono::duration<double>(Stopwatch::now() - start).count();
  std::printf("RPC, %3zu in flight                            %9.0f calls/s\n", in_flight,
              static_cast<double>(calls) / took);
}

void run(Transport transport, double seconds, Duration spin) {
  raw_echo(seconds);
  auto reactor = make_reactor({.spin = spin});
  ReactorThread server("server", {.spin = spin});
  auto network = make_socket_network(transport);
  Endpoint control{reactor.get(), [](const PeerInfo&, Connection&) -> capnp::Capability::Client {
                     return kj::heap<EchoService>();
                   }};
  Endpoint shard{&server.reactor(), control.serve};
  Acceptor acceptor(*network, Address::parse("127.0.0.1:0"), {.cluster = "bench"},
                    {control, shard});
  Hello hello;
  hello.cluster = "bench";
  hello.endpoint = 1;
  auto connection = reactor->wait(network->connect(*reactor, acceptor.address(), hello, kPatience));
  auto client = connection->bootstrap<Echo>();
  std::vector<double> samples;
  reactor->wait(one_at_a_time(client, seconds, samples));
  print_latency("RPC, one call in flight", std::move(samples));
  for (std::size_t in_flight : {16, 256}) rpc_rate(*reactor, client, seconds, in_flight);
}

}  // namespace
}  // namespace cairn::rpc

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-echo", [&] {
    CLI::App app("What one RPC call costs beside a bare Unix-socket echo");
    std::string transport = "unix";
    double seconds = 1;
    int spin_us = 0;
    app.add_option("--transport", transport, "unix or tcp")->capture_default_str();
    app.add_option("--seconds", seconds, "for each figure")->capture_default_str();
    app.add_option("--spin-us", spin_us, "poll this long before sleeping")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    cairn::rpc::run(cairn::rpc::parse_transport(transport), seconds,
                    std::chrono::microseconds(spin_us));
    return 0;
  });
}
