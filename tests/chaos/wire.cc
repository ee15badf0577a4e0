// cairn-wire: a bad wire between two network namespaces. What goes in at one end comes out at the
// other late, or not at all.
//
//   cairn-wire A B --loss 0.01 --delay-ms 5 --jitter-ms 3
//
// Makes a TUN device "wire0" in each namespace (as `ip netns` names them) and passes packets on
// until it is ended. Packets of one direction may overtake each other, as on the Internet. Needs
// root.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <queue>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/program.h"
#include "core/base/random.h"

namespace cairn::chaos {
namespace {

using Clock = std::chrono::steady_clock;

int check(int result, const std::string& doing) {
  if (result < 0) throw UnavailableError(str(doing, ": ", std::strerror(errno)));
  return result;
}

// Opened inside the namespace, which this process then leaves again.
int open_end(const std::string& name) {
  const int own =
      check(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "opening our network namespace");
  const int other = check(::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC),
                          "opening the network namespace " + name);
  check(::setns(other, CLONE_NEWNET), "entering " + name);
  const int tun =
      check(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "opening /dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strcpy(request.ifr_name, "wire0");
  check(::ioctl(tun, TUNSETIFF, &request), "making wire0 in " + name);
  check(::setns(own, CLONE_NEWNET), "leaving " + name);
  ::close(other);
  ::close(own);
  return tun;
}

struct Packet {
  Clock::time_point due;
  int to;
  std::vector<char> bytes;
  bool operator<(const Packet& other) const { return due > other.due; }  // the earliest on top
};

int main(int argc, char** argv) {
  std::string a, b;
  double loss = 0, delay_ms = 0, jitter_ms = 0;
  std::uint64_t seed = 1;
  CLI::App app("A bad wire between two network namespaces", "cairn-wire");
  app.add_option("a", a)->required();
  app.add_option("b", b)->required();
  app.add_option("--loss", loss, "Share of the packets")->check(CLI::Range(0.0, 1.0));
  app.add_option("--delay-ms", delay_ms);
  app.add_option("--jitter-ms", jitter_ms, "On top of the delay, up to so much");
  app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);
  std::array<pollfd, 2> ends{pollfd{.fd = open_end(a), .events = POLLIN},
                             pollfd{.fd = open_end(b), .events = POLLIN}};
  std::puts("ready");
  std::fflush(stdout);
  Random random(seed);
  std::priority_queue<Packet> under_way;
  std::array<char, 65536> buffer;
  for (;;) {
    for (; !under_way.empty() && under_way.top().due <= Clock::now(); under_way.pop())
      if (::write(under_way.top().to, under_way.top().bytes.data(), under_way.top().bytes.size()) <
          0) {
        // as good as lost
      }
    timespec wait{.tv_sec = 1, .tv_nsec = 0};
    if (!under_way.empty()) {
      const auto left = std::max<std::int64_t>(
          0, std::chrono::nanoseconds(under_way.top().due - Clock::now()).count());
      wait = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    }
    check(::ppoll(ends.data(), ends.size(), &wait, nullptr), "waiting for packets");
    for (std::size_t from = 0; from < 2; ++from)
      for (ssize_t size; (ends[from].revents & POLLIN) != 0 &&
                         (size = ::read(ends[from].fd, buffer.data(), buffer.size())) > 0;) {
        if (random.uniform() < loss) continue;
        const auto late =
            std::chrono::duration<double, std::milli>(delay_ms + jitter_ms * random.uniform());
        under_way.push({Clock::now() + std::chrono::duration_cast<Clock::duration>(late),
                        ends[1 - from].fd,
                        {buffer.data(), buffer.data() + size}});
      }
  }
}

}  // namespace
}  // namespace cairn::chaos

int main(int argc, char** argv) {
  return cairn::run_program("cairn-wire", [&] { return cairn::chaos::main(argc, argv); });
}
