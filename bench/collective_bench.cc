// All-reduces between processes of this machine: 100 MB, and a thousand values of 4 KB, beside Gloo
// in turns.
#include <arpa/inet.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <sstream>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "core/base/error.h"

extern char** environ;

namespace cairn::bench {
namespace {

struct Kind {
  const char* name;  // as cairn-bench-collective-member has it
  const char* described;
  double bytes;
};
constexpr Kind kKinds[] = {{"large", "100 MB", 100e6},
                           {"packed", "1,000 x 4 KB in one call", 1000 * 4096},
                           {"calls", "1,000 x 4 KB in 1,000 calls", 1000 * 4096}};

// Addresses that were free a moment ago.
std::vector<std::string> free_addresses(int count) {
  std::vector<std::string> addresses;
  std::vector<int> sockets;
  for (int i = 0; i < count; ++i) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    if (::bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
        ::getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
      throw UnavailableError("no free port for a member of the group");
    addresses.push_back(str("127.0.0.1:", ntohs(address.sin_port)));
  }
  for (const int each : sockets) ::close(each);
  return addresses;
}

// A cairn-bench-collective-member and the pipes to it.
class MemberProcess {
 public:
  explicit MemberProcess(std::vector<std::string> arguments) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                         "cairn-bench-collective-member";
    arguments.insert(arguments.begin(), program.string());
    std::vector<char*> argv;
    for (auto& each : arguments) argv.push_back(each.data());
    argv.push_back(nullptr);
    int input[2], output[2];
    if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0)
      throw ResourceExhaustedError("no pipes for a member of the group");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input[0], 0);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    const int failed =
        ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(input[0]);
    ::close(output[1]);
    to_ = input[1];
    from_ = ::fdopen(output[0], "r");
    if (failed != 0) throw NotFoundError(str(program.string(), " could not be started: build it"));
  }
  // At the end of its input it ends.
  ~MemberProcess() {
    ::close(to_);
    std::fclose(from_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }
  MemberProcess(const MemberProcess&) = delete;
  MemberProcess& operator=(const MemberProcess&) = delete;

  void tell(const std::string& line) {
    if (::write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw UnavailableError("a member of the group has ended");
  }
  std::string answer() {
    std::array<char, 64> line{};
    if (std::fgets(line.data(), line.size(), from_) == nullptr)
      throw UnavailableError("a member of the group has ended; its message stands above");
    return line.data();
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  FILE* from_ = nullptr;
};

// A group of one system.
class Team {
 public:
  Team(std::string system, int size, const std::string& transport) : system_(std::move(system)) {
    const auto addresses = free_addresses(size);
    for (int rank = 0; rank < size; ++rank) {
      std::vector<std::string> arguments = {system_, std::to_string(rank), folder_.path(),
                                            transport};
      arguments.insert(arguments.end(), addresses.begin(), addresses.end());
      members_.push_back(std::make_unique<MemberProcess>(std::move(arguments)));
    }
    for (auto& member : members_) member->answer();  // "ready"
  }
  // Seconds of so many, by the member that took longest.
  double run(const Kind& kind, int count) {
    for (auto& member : members_) member->tell(str(kind.name, ' ', count, '\n'));
    double longest = 0;
    for (auto& member : members_) longest = std::max(longest, std::stod(member->answer()));
    return longest;
  }
  NamedProcesses processes() const {
    NamedProcesses all;
    for (std::size_t i = 0; i < members_.size(); ++i)
      all.emplace_back(str("member-", i), members_[i]->pid());
    return all;
  }
  const std::string& system() const { return system_; }

 private:
  std::string system_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<MemberProcess>> members_;
};

Series series_of(const Team& team, const Kind& kind, int size, const std::string& transport) {
  return {.bench = "collective",
          .configuration = str(team.system(), ", ", size, " processes, ", kind.described, ", ",
                               team.system() == "cairn" ? transport : "tcp"),
          .unit = "GB/s",
          .processes = team.processes()};
}

void compare(const Options& options, Report& report, const Kind& kind, Team& ours, Team& theirs,
             int size, const std::string& transport) {
  const auto work = [&](Team& team) {
    const int count = calibrate(options.seconds, 1, [&](int n) { return team.run(kind, n); });
    return [&kind, &team, count] { return count * kind.bytes / team.run(kind, count) / 1e9; };
  };
  const auto [one, other] =
      measure_in_turns(series_of(ours, kind, size, transport), work(ours),
                       series_of(theirs, kind, size, transport), work(theirs), options.windows);
  report.add(one);
  report.add(other);
  report.ratio(str("collective: ", size, " processes, ", kind.described, ", ", transport, ", of ",
                   theirs.system()),
               one, other);
}

}  // namespace

void bench_collective(const Options& options, Limits&, Report& report) {
#ifdef CAIRN_BENCH_GLOO
  const std::vector<std::string> others = {"gloo-ring", "gloo-ring-chunked",
                                           "gloo-halving-doubling"};
#else
  const std::vector<std::string> others;
  report.say("built without Gloo (Debian's libgloo-dev): nothing to compare with");
#endif
  for (const int size : {2, 4}) {
    for (const auto& transport : options.transports) {
      Team ours("cairn", size, transport);
      for (const auto& system : others) {
        Team theirs(system, size, transport);
        for (const Kind& kind : kKinds)
          compare(options, report, kind, ours, theirs, size, transport);
      }
      if (!others.empty()) continue;
      for (const Kind& kind : kKinds) {
        const int count = calibrate(options.seconds, 1, [&](int n) { return ours.run(kind, n); });
        report.add(measure(series_of(ours, kind, size, transport), options.windows,
                           [&] { return count * kind.bytes / ours.run(kind, count) / 1e9; }));
      }
    }
  }
}

}  // namespace cairn::bench
