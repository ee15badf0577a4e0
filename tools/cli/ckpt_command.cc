// `cairn ckpt`: the subcommands that work on folders are tools/ckpt's; `save` needs a running
// coordinator, which alone can make a cut.
#include "tools/cli/ckpt_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/clock.h"
#include "tools/ckpt/commands.h"
#include "tools/cli/run_address.h"

namespace cairn::tools {
namespace {

struct SaveRequest {
  RunChoice run;
  double wait_seconds = 600;
  bool as_json = false;
};

// The answer comes when the checkpoint exists.
int save(const SaveRequest& request) {
  const RunAddress run = find_running(request.run);
  require_coordinator(run, "it saves as its job says; `cairn stop` ends it with a checkpoint");
  const auto limit =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(request.wait_seconds));
  const std::string folder = ask_save(run.coordinator, limit);
  std::printf("%s\n", request.as_json ? json_text({{"path", folder}}).c_str() : folder.c_str());
  return 0;
}

void add_save(CLI::App& parent, int& status) {
  auto request = std::make_shared<SaveRequest>();
  CLI::App* command = parent.add_subcommand(
      "save", "Have a running training save a checkpoint now, and print its folder");
  add_run_flags(*command, request->run);
  command->add_option("--wait", request->wait_seconds, "Seconds to wait for it")
      ->capture_default_str();
  command->add_flag("--json", request->as_json, "As JSON");
  command->callback([request, &status] { status = save(*request); });
}

}  // namespace

void add_ckpt_command(CLI::App& app, int& status) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "Look at checkpoints, change them, and ask for one");
  ckpt->require_subcommand(1);
  tools::ckpt::add_commands(*ckpt, status);
  add_save(*ckpt, status);
}

}  // namespace cairn::tools
