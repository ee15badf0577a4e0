#include "rpc/server/server_main.h"

#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "core/base/log.h"
#include "rpc/loop/task_group.h"
#include "rpc/server/server_flags.h"

namespace cairn::rpc {
namespace {

constexpr Duration kParentCheck = std::chrono::milliseconds(250);

// A killed parent sends no notice. Looking is certain, where a death signal depends on which thread
// forked.
Task<void> watch_parent(Reactor& reactor, int pid) {
  const bool child = ::getppid() == pid;
  while (child ? ::getppid() == pid : ::kill(pid, 0) == 0) co_await reactor.sleep(kParentCheck);
  log_info("the parent process ", pid, " has ended, and so does this one");
  reactor.stop();
}

// Logs the waits of this process, for SIGUSR1.
Task<void> tell_waits(Reactor& reactor, const RunningServer& server) {
  log_info("waits: this process is asked what it waits for; it stands at ", server.status_json());
  log_tasks_here("control");
  auto others = log_tasks_of(reactor, server.loops());
  co_await std::move(others);
}

// A peer that has gone must not end the process, and SIGUSR1 would by default. The inner block ends
// before the reactor, which has to outlive what belongs to it.
int serve(const ServerProgram& program, const ServerFlags& flags) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGUSR1, SIG_IGN);  // until a handler is set
  auto reactor = make_reactor();
  auto network = make_socket_network(flags.transport);
  {
    auto server = program.start(*reactor, *network, flags);
    auto signals = on_signal(*reactor, {SIGTERM, SIGINT}, [&](int signal) {
      log_info("ending on signal ", signal);
      reactor->stop();
    });
    server->on_shutdown([&](const std::string& reason) {
      log_info("asked to end: ", reason);
      reactor->post([&] { reactor->stop(); });  // the answer goes first
    });
    TaskGroup watches;
    auto questions = on_signal(*reactor, {SIGUSR1}, [&](int) {
      watches.spawn("telling what this process waits for", tell_waits(*reactor, *server));
    });
    if (flags.parent_pid != 0)
      watches.spawn("watching the parent", watch_parent(*reactor, flags.parent_pid));
    const auto ready =
        str(program.name, " ", flags.index, " listening on ", server->address().str());
    log_info(ready);
    // Flushed, because who started this reads it from a pipe.
    std::cout << ready << std::endl;
    reactor->run();
    server->stop();
  }
  log_info("ended");
  return 0;
}

}  // namespace

int server_main(int argc, char** argv, const ServerProgram& program) {
  try {
    const ParsedFlags parsed = parse_server_flags(argc, argv, program);
    if (!parsed.run) return parsed.exit_code;
    log_to(parsed.flags.log_file, str(program.name, " ", parsed.flags.index));
    return serve(program, parsed.flags);
  } catch (const Error& error) {
    std::cerr << program.name << ": " << code_name(error.code()) << ": " << error.what()
              << std::endl;
  } catch (const std::exception& error) {
    std::cerr << program.name << ": " << error.what() << std::endl;
  }
  return 1;
}

}  // namespace cairn::rpc
