// `cairn generate criteo-like`: made-up data of a known kind, as much as is wanted.
#pragma once
namespace CLI {
class App;
}

namespace cairn::tools {
// Adds the subcommand; it runs in CLI's callback and leaves the process's exit status in `status`.
void add_generate_command(CLI::App& app, int& status);
}  // namespace cairn::tools
