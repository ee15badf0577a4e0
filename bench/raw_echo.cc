#include "bench/raw_echo.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "rpc/net/socket_options.h"

namespace cairn::bench {
namespace {

// A message begins with its length, so that the child needs no other.
bool receive(int socket, std::vector<char>& message) {
  std::size_t have = 0, wanted = sizeof wanted;
  while (have < wanted) {
    const ssize_t got = ::recv(socket, message.data() + have, message.size() - have, 0);
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
    if (have >= sizeof wanted) std::memcpy(&wanted, message.data(), sizeof wanted);
  }
  return true;
}

bool send(int socket, const std::vector<char>& message) {
  std::size_t length = 0;
  std::memcpy(&length, message.data(), sizeof length);
  for (std::size_t sent = 0; sent < length;) {
    const ssize_t gone = ::send(socket, message.data() + sent, length - sent, MSG_NOSIGNAL);
    if (gone <= 0) return false;
    sent += static_cast<std::size_t>(gone);
  }
  return true;
}

[[noreturn]] void answer(int socket) {
  std::vector<char> message(RawEcho::kBytesMax);
  while (receive(socket, message) && send(socket, message)) {
  }
  ::_exit(0);
}

struct Ends {
  int ours = -1, theirs = -1;
};

Ends unix_ends() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw UnavailableError("no socket pair for the echo");
  return {sockets[0], sockets[1]};
}

Ends tcp_ends() {
  const int door = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  auto* address = reinterpret_cast<sockaddr*>(&place);
  Ends ends{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
  const bool open = ::bind(door, address, size) == 0 && ::listen(door, 1) == 0 &&
                    ::getsockname(door, address, &size) == 0;
  if (open && ::connect(ends.ours, address, size) == 0)
    ends.theirs = ::accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
  ::close(door);
  if (ends.theirs < 0) throw UnavailableError("no TCP connection over loopback for the echo");
  return ends;
}

}  // namespace

RawEcho::RawEcho(EchoSocket kind) {
  const Ends ends = kind == EchoSocket::kUnix ? unix_ends() : tcp_ends();
  for (int socket : {ends.ours, ends.theirs}) {
    rpc::tune_socket(socket, kind == EchoSocket::kUnix ? AF_UNIX : AF_INET);
    if (kind == EchoSocket::kTcp) rpc::tune_within_host(socket);
  }
  child_ = ::fork();
  if (child_ < 0) throw ResourceExhaustedError("no process for the echo");
  if (child_ == 0) {
    ::close(ends.ours);
    answer(ends.theirs);
  }
  ::close(ends.theirs);
  socket_ = ends.ours;
}

RawEcho::~RawEcho() {
  ::close(socket_);
  ::waitpid(child_, nullptr, 0);
}

// While it lives, this thread and the child have a core each: the first two that we may use.
class RawEcho::Pinned {
 public:
  explicit Pinned(pid_t child) : child_(child) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    pid_t who = 0;
    for (int core = 0, placed = 0; core < CPU_SETSIZE && placed < 2; ++core) {
      if (!CPU_ISSET(core, &before_)) continue;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      ::sched_setaffinity(who, sizeof one, &one);
      who = child_;
      ++placed;
    }
  }
  ~Pinned() {
    for (pid_t who : {pid_t(0), child_}) ::sched_setaffinity(who, sizeof before_, &before_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  pid_t child_;
  cpu_set_t before_;
};

std::vector<double> RawEcho::run(double seconds, std::size_t bytes, Placement placement) {
  CAIRN_CHECK(bytes >= kBytesMin && bytes <= kBytesMax, "an echo of ", bytes, " bytes");
  std::optional<Pinned> pinned;
  if (placement == Placement::kTwoCores) pinned.emplace(child_);
  std::vector<double> samples;
  std::vector<char> message(bytes);
  std::memcpy(message.data(), &bytes, sizeof bytes);
  const auto end = Stopwatch::now() + std::chrono::duration<double>(seconds);
  for (auto before = Stopwatch::now(); before < end;) {
    if (!send(socket_, message) || !receive(socket_, message))
      throw UnavailableError("the echo's process is gone");
    const auto after = Stopwatch::now();
    samples.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  }
  return samples;
}

NamedProcesses RawEcho::processes() const {
  return {{"coordinator", ::getpid()}, {"echo", child_}};
}

}  // namespace cairn::bench
