// cairn stop: asks a running program to save and end.
#pragma once

namespace CLI {
class App;
}

namespace cairn::tools {

void add_stop_command(CLI::App& app, int& status);

}  // namespace cairn::tools
