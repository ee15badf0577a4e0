// `cairn model show MODEL` and `cairn model verify MODEL`: looking at saved models.
#pragma once
namespace CLI {
class App;
}

namespace cairn::tools {
// Adds the subcommand; it runs in CLI's callback and leaves the process's exit status in `status`.
void add_model_command(CLI::App& app, int& status);
}  // namespace cairn::tools
