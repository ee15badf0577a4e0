// `cairn evaluate MODEL --data FILE...`: a saved model evaluated on examples in files.
#pragma once
namespace CLI {
class App;
}

namespace cairn::tools {
// Adds the subcommand; it runs in CLI's callback and leaves the process's exit status in `status`.
void add_evaluate_command(CLI::App& app, int& status);
}  // namespace cairn::tools
