// `cairn ckpt`: looking at checkpoints, changing them, and asking for one.
#pragma once
namespace CLI {
class App;
}

namespace cairn::tools {
// Adds the subcommands; the one that is chosen runs in CLI's callback and leaves the process's exit
// status in `status`.
void add_ckpt_command(CLI::App& app, int& status);
}  // namespace cairn::tools
