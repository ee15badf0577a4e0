// `cairn serve`: answers requests for models over HTTP; `cairn serve status` and `reload` ask a
// server that runs.
#pragma once

namespace CLI {
class App;
}

namespace cairn::tools {

// `status` becomes the exit status of the command.
void add_serve_command(CLI::App& app, int& status);

}  // namespace cairn::tools
