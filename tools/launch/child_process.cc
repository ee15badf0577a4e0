// fork() and exec() by hand, and not posix_spawn(): between the two the child must arrange for its
// own death with its parent, which no attribute of posix_spawn() does.
#include "tools/launch/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "core/base/error.h"

namespace cairn::tools {
namespace {

[[noreturn]] void throw_start_error(const std::string& program, int error) {
  std::string message = str("cannot start ", program, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) throw NotFoundError(message);
  if (error == EACCES || error == ENOEXEC) throw PermissionDeniedError(message);
  throw ResourceExhaustedError(message);
}

std::string name_of(const std::string& assignment) {
  return assignment.substr(0, assignment.find('=') + 1);
}

// Added variables win over our own: a program may be started from within another run, whose
// TF_CONFIG must not reach it.
std::vector<std::string> merged_environment(const std::vector<std::string>& added) {
  std::vector<std::string> merged = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string name = name_of(*entry);
    if (std::none_of(added.begin(), added.end(),
                     [&](const std::string& a) { return name_of(a) == name; }))
      merged.emplace_back(*entry);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Everything that the child needs between fork and exec, made before the fork. After it the child
// may only make system calls: if another thread of ours held the heap's lock when the process was
// copied, the copy of that lock is never released.
struct Launch {
  std::vector<std::string> arguments, environment;
  std::vector<char*> argv, envp;
  const char* output = nullptr;
  bool own_group = true;
  pid_t parent = -1;
  int report = -1;  // exec's errno goes here; closed by a successful exec
};

// Appends, so that a role's log keeps what it wrote before it died. If the file cannot be opened,
// output goes where ours goes: a lost log is no reason not to run.
void redirect(const char* output) {
  int in = ::open("/dev/null", O_RDONLY);
  int out = ::open(output, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (in >= 0) ::dup2(in, 0);
  if (out < 0) return;
  ::dup2(out, 1);
  ::dup2(out, 2);
}

// Runs in the child, by system calls only. The order matters: the death signal is set first and the
// parent is looked at second, because a parent that dies between fork and prctl() sends none. The
// group is changed before the program could start processes of its own. Descriptors are marked and
// not closed, so that the report pipe still works if exec fails.
[[noreturn]] void become(const Launch& launch) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // the parent died before the line above took effect
  if (::getppid() != launch.parent) ::_exit(127);
  if (launch.own_group) ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);  // ignored signals stay ignored across exec, blocked ones blocked
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (launch.output != nullptr) redirect(launch.output);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execvpe(launch.argv[0], launch.argv.data(), launch.envp.data());
  int error = errno;
  [[maybe_unused]] auto written = ::write(launch.report, &error, sizeof error);
  ::_exit(127);
}

// The errno of a failed exec, or 0: a successful one closes the pipe, and the read ends without
// bytes. So a program that is missing is an error of the constructor and not a child that dies at
// once.
int read_report(int fd) {
  int error = 0;
  ssize_t got;
  do got = ::read(fd, &error, sizeof error);
  while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

}  // namespace

std::string ExitStatus::str() const {
  if (signal == 0) return cairn::str("exit status ", code);
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? cairn::str("killed by signal ", signal)
                         : cairn::str("killed by SIG", name);
}

ChildProcess::ChildProcess(const Command& command)
    : own_group_(command.group == Command::Group::kOwn) {
  if (command.arguments.empty())
    throw InvalidArgumentError("cannot start a program without a name");
  Launch launch{.arguments = command.arguments,
                .environment = merged_environment(command.environment)};
  launch.argv = pointers(launch.arguments);
  launch.envp = pointers(launch.environment);
  launch.output = command.output_file.empty() ? nullptr : command.output_file.c_str();
  launch.own_group = own_group_;
  launch.parent = ::getpid();
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) throw_start_error(command.arguments[0], errno);
  launch.report = pipe[1];

  pid_ = ::fork();
  if (pid_ == 0) become(launch);
  int error = pid_ < 0 ? errno : 0;
  ::close(pipe[1]);
  if (pid_ > 0) error = read_report(pipe[0]);
  ::close(pipe[0]);
  if (pid_ > 0 && error == 0 && (pidfd_ = open_pidfd(pid_)) < 0) error = errno;
  if (error != 0) {
    end();
    throw_start_error(command.arguments[0], error);
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      own_group_(other.own_group_),
      status_(other.status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::exchange(other.pidfd_, -1);
    own_group_ = other.own_group_;
    status_ = other.status_;
  }
  return *this;
}

ChildProcess::~ChildProcess() { end(); }

// Also ends what the constructor has begun, when it fails after the fork.
void ChildProcess::end() {
  if (pid_ > 0 && !status_) {
    send(SIGKILL);
    wait();
  }
  if (pidfd_ >= 0) ::close(pidfd_);
  pid_ = pidfd_ = -1;
}

void ChildProcess::send(int signal) const {
  // Until it is collected its number is not given to another process.
  if (pid_ > 0 && !status_) ::kill(own_group_ ? -pid_ : pid_, signal);
}

// First with WNOWAIT, which leaves the child a zombie: its number, and that of its group, is then
// still its own while the rest of the group is killed. Collecting it first could let another
// process have the number.
std::optional<ExitStatus> ChildProcess::collect(int options) {
  if (status_ || pid_ <= 0) return status_;
  siginfo_t info{};
  int failed;
  do failed = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | options);
  while (failed != 0 && errno == EINTR);
  if (failed == 0 && info.si_pid == 0) return std::nullopt;  // still running
  if (own_group_) ::kill(-pid_, SIGKILL);                    // descendants that it left behind
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG);
  status_ = info.si_code == CLD_EXITED ? ExitStatus{.code = info.si_status}
                                       : ExitStatus{.signal = info.si_status};
  return status_;
}

std::optional<ExitStatus> ChildProcess::poll() { return collect(WNOHANG); }
ExitStatus ChildProcess::wait() { return *collect(0); }

// By its number, since the header of glibc 2.36 is not fit for C++.
int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

// Only the end of the file is read, since a log may be large. Walks back over line ends from the
// last character.
std::string last_lines(const std::string& path, int lines) {
  constexpr std::streamoff kMost = 4096;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  std::streamoff begin =
      std::max<std::streamoff>(0, static_cast<std::streamoff>(file.tellg()) - kMost);
  file.seekg(begin);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t at = text.size();
  for (int i = 0; i < lines && at != 0 && at != std::string::npos; ++i)
    at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace cairn::tools
