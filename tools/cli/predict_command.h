// `cairn predict MODEL --data FILE... --out FILE`: what a saved model says of examples in files.
#pragma once
namespace CLI {
class App;
}

namespace cairn::tools {
// Adds the subcommand; it runs in CLI's callback and leaves the process's exit status in `status`.
void add_predict_command(CLI::App& app, int& status);
}  // namespace cairn::tools
