#include "rpc/server/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "core/base/error.h"
#include "core/tensor/element.h"

namespace cairn::rpc {
namespace {

// The innermost command that was recognised: what is unknown was meant for it.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.back());
}

std::vector<std::string> known_flags(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  return known;
}

// Without the empty argument CLI11 lists only the commands that this command line has used.
std::vector<std::string> known_commands(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  return known;
}

// The message about the first argument that no flag or command takes; empty: there is none.
std::string unknown_argument(const CLI::App& app) {
  const auto rest = app.remaining(true);
  if (rest.empty()) return "";
  const CLI::App& command = innermost(app);
  const std::string word = rest.front().substr(0, rest.front().find('='));
  const bool flag = word.starts_with("-");
  const auto known = flag ? known_flags(command) : known_commands(command);
  if (known.empty()) return "";
  const std::string near = nearest_name(word, known);
  return str("\"", word, "\" is no ", flag ? "flag" : "command", " of ", command.get_display_name(),
             near.empty() ? "" : "; did you mean \"" + near + "\"?");
}

}  // namespace

void add_version_flag(CLI::App& app) {
  app.set_version_flag("--version", app.get_name() + " " CAIRN_VERSION,
                       "Print the version and end");
}

// CLI11 reports --help and --version as errors too, with an exit code of 0.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string unknown = unknown_argument(app);
    std::fprintf(stderr, "%s: %s\n%s --help tells what there is.\n", app.get_name().c_str(),
                 unknown.empty() ? error.what() : unknown.c_str(), app.get_name().c_str());
    return kUsageExitCode;
  }
}

}  // namespace cairn::rpc
