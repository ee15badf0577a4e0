// The cairn command: a table of subcommands, each in a file of its own. A subcommand runs within
// parse_command_line(), as CLI's callback, so its errors arrive here and become one line and exit
// status 1.
#include <CLI/CLI.hpp>

#include "core/base/program.h"
#include "rpc/server/command_line.h"
#include "tools/cli/ckpt_command.h"
#include "tools/cli/devices_command.h"
#include "tools/cli/evaluate_command.h"
#include "tools/cli/generate_command.h"
#include "tools/cli/model_command.h"
#include "tools/cli/plot_command.h"
#include "tools/cli/predict_command.h"
#include "tools/cli/serve_command.h"
#include "tools/cli/status_command.h"
#include "tools/cli/stop_command.h"
#include "tools/cli/train_command.h"
#include "tools/cli/up_command.h"
#include "tools/job/toml/job_words.h"

int main(int argc, char** argv) {
  auto speaker = cairn::tools::Speaker::kJob;
  const auto work = [&] {
    CLI::App app(
        "Cairn: trains models on one device, on replicas in step, or on parameter servers at each "
        "worker's own pace",
        "cairn");
    app.require_subcommand(1);
    int status = 0;
    cairn::tools::add_train_command(app, status);
    cairn::tools::add_predict_command(app, status);
    cairn::tools::add_evaluate_command(app, status);
    cairn::tools::add_serve_command(app, status);
    cairn::tools::add_up_command(app, status);
    cairn::tools::add_status_command(app, status);
    cairn::tools::add_stop_command(app, status);
    cairn::tools::add_ckpt_command(app, status);
    cairn::tools::add_model_command(app, status);
    cairn::tools::add_devices_command(app, status);
    cairn::tools::add_generate_command(app, status);
    cairn::tools::add_plot_command(app, status);
    cairn::rpc::add_version_flag(app);
    app.parse_complete_callback([&] {
      if (app.got_subcommand("predict") || app.got_subcommand("evaluate"))
        speaker = cairn::tools::Speaker::kModelCommand;
    });
    if (const auto ended = cairn::rpc::parse_command_line(app, argc, argv)) return *ended;
    return status;
  };
  return cairn::run_program(
      "cairn", work, [&](const char* text) { return cairn::tools::in_job_words(text, speaker); });
}
