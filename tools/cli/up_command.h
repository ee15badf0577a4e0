// `cairn up`: a supervised cluster on this machine for any program.
#pragma once
namespace CLI {
class App;
}

namespace cairn::tools {
// Adds the subcommand; when it is chosen it runs in CLI's callback and leaves the process's exit
// status in `status`.
void add_up_command(CLI::App& app, int& status);
}  // namespace cairn::tools
