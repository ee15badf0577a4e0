// `cairn stop`: asks a running program to save a checkpoint and end, and waits until it has.
#pragma once

namespace CLI {
class App;
}

namespace cairn::tools {

// Adds the subcommand; when it is chosen, it runs in CLI's callback and leaves the process's exit
// status in `status`.
void add_stop_command(CLI::App& app, int& status);

}  // namespace cairn::tools
