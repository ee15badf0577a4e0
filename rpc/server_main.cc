#include "rpc/server_main.h"

#include <signal.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <iostream>

#include "rpc/server_flags.h"
#include "rpc/task_group.h"

namespace cairn::rpc {
namespace {

constexpr Duration kParentCheck = std::chrono::milliseconds(250);

void open_log(const ServerFlags& flags, const std::string& name) {
  auto title = str(name, " ", flags.index);
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (flags.log_file.empty())
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  else
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(flags.log_file);
  auto log = std::make_shared<spdlog::logger>(title, std::move(sink));
  log->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(log));
}

// A parent that was killed tells nobody; looking is certain where a death signal depends on which thread forked.
Task<void> watch_parent(Reactor& reactor, int pid) {
  const bool child = ::getppid() == pid;
  while (child ? ::getppid() == pid : ::kill(pid, 0) == 0) co_await reactor.sleep(kParentCheck);
  spdlog::info("the parent process {} has ended, and so does this one", pid);
  reactor.stop();
}

int serve(const ServerProgram& program, const ServerFlags& flags) {
  ::signal(SIGPIPE, SIG_IGN);
  auto reactor = make_reactor();
  auto network = make_socket_network(flags.transport);
  {
    auto server = program.start(*reactor, *network, flags);
    auto signals = on_signal(*reactor, {SIGTERM, SIGINT}, [&](int signal) {
      spdlog::info("ending on signal {}", signal);
      reactor->stop();
    });
    server->on_shutdown([&](const std::string& reason) {
      spdlog::info("asked to end: {}", reason);
      reactor->post([&] { reactor->stop(); });  // the answer goes first
    });
    TaskGroup watches;
    if (flags.parent_pid != 0) watches.spawn("watching the parent", watch_parent(*reactor, flags.parent_pid));
    const auto ready = str(program.name, " ", flags.index, " listening on ", server->address().str());
    spdlog::info("{}", ready);
    std::cout << ready << std::endl;
    reactor->run();
    server->stop();
  }
  spdlog::info("ended");
  return 0;
}

}  // namespace

int server_main(int argc, char** argv, const ServerProgram& program) {
  try {
    const ParsedFlags parsed = parse_server_flags(argc, argv, program);
    if (!parsed.run) return parsed.exit_code;
    open_log(parsed.flags, program.name);
    return serve(program, parsed.flags);
  } catch (const Error& error) {
    std::cerr << program.name << ": " << code_name(error.code()) << ": " << error.what() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << program.name << ": " << error.what() << std::endl;
  }
  return 1;
}

}  // namespace cairn::rpc
