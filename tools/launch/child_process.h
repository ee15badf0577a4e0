// ChildProcess: one process that we started, and that never outlives us.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace cairn::tools {

struct Command {
  // arguments[0] is the program: a path, or a name that is looked up in PATH.
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value", added to ours or in place of ours
  // stdout and stderr are appended to this file, and stdin is empty; "": all three are ours.
  std::string output_file;
  // kOwn: signals typed at our terminal do not reach it, and whatever it leaves behind ends with
  // it. kShared: it belongs to our terminal as we do, so that it can read from it.
  enum class Group { kOwn, kShared } group = Group::kOwn;
};

struct ExitStatus {
  int code = 0;    // the program's exit code, if signal is 0
  int signal = 0;  // the signal that ended it; 0: none
  // "exit status 3", "killed by SIGKILL"
  std::string str() const;
  // As a shell reports it in $?.
  int shell_code() const { return signal == 0 ? code : 128 + signal; }
};

// Movable. The destructor kills the process (its group, if it has its own) and waits for it.
//   Death  the kernel sends it SIGKILL when the thread that started it ends, however that happens:
//          the thread must live as long as the child (prctl(2), PR_SET_PDEATHSIG).
//   Thread  any, one at a time.
class ChildProcess {
 public:
  //   Errors  NotFound: there is no such program. PermissionDenied: it may not be run.
  //           ResourceExhausted: the system has no process left. InvalidArgument: no arguments.
  //           Each names the program.
  explicit ChildProcess(const Command& command);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_; }  // readable once it has ended: for poll
  // Sends a signal to the process, and to its group if it has its own. Does nothing if it has
  // ended.
  void send(int signal) const;
  // The status once it has ended, empty before. Does not wait.
  std::optional<ExitStatus> poll();
  // Blocks the thread until it has ended, without a limit.
  ExitStatus wait();

 private:
  std::optional<ExitStatus> collect(int options);
  void end();

  pid_t pid_ = -1;
  int pidfd_ = -1;
  bool own_group_ = true;
  std::optional<ExitStatus> status_;
};

// A descriptor, for poll, that is readable once the process has ended; -1 and errno if there is
// none.
int open_pidfd(pid_t pid);

// The last `lines` lines of a file, but at most 4 KB of it; empty if it cannot be read. For telling
// why a program died.
std::string last_lines(const std::string& path, int lines);

}  // namespace cairn::tools
