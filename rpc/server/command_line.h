// Command lines as every program of ours takes them: --help and --version end with status 0, wrong
// usage with 2.
#pragma once
#include <optional>

namespace CLI {
class App;
}

namespace cairn::rpc {

inline constexpr int kUsageExitCode = 2;

// Adds `--version`: "NAME VERSION".
void add_version_flag(CLI::App& app);
// Parses; the callbacks of subcommands run within, and what they throw passes through. Empty: go
// on. Otherwise the exit status: --help or --version was answered on standard output, or standard
// error says what is wrong with the command line, and which command or flag is nearest to an
// unknown one.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace cairn::rpc
