// cairn-coordinator JOB.toml: runs a job on the cluster that TF_CONFIG names. Everything but the
// cluster is shared with `cairn train` (train_request.h).
#include <CLI/CLI.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/program.h"
#include "rpc/server/command_line.h"
#include "tools/cli/job_flags.h"
#include "tools/cli/train_command.h"
#include "tools/job/toml/job_words.h"
#include "tools/job/train/run_journal.h"
#include "tools/job/train/train_request.h"

namespace {

// Empty: it is a time.
std::string complaint_about_sync(std::string& text) {
  try {
    cairn::tools::parse_journal_sync(text);
    return "";
  } catch (const cairn::Error& error) {
    return error.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return cairn::run_program(
      "cairn-coordinator",
      [&] {
        CLI::App app(
            "Runs a job on the cluster that TF_CONFIG names; `cairn train` starts a cluster of its "
            "own",
            "cairn-coordinator");
        cairn::tools::TrainRequest request;
        cairn::tools::add_job_flags(app, request);
        app.add_flag("--take-over", request.take_over,
                     "End the coordinator that is at work on this cluster, and take its place");
        auto* journal = app.add_option(
            "--journal", request.journal.folder,
            "Folder in which the run is written down, so that the same command goes on with it "
            "after a coordinator's death: no update is lost, and none counts twice");
        app.add_option("--journal-sync", request.journal.sync,
                       "When the journal is on the disk: always, before anything is sent, or at "
                       "most so long later, as 50ms, which only a loss of power can take back")
            ->needs(journal)
            ->check(CLI::Validator(complaint_about_sync, "always|TIME"));
        app.add_flag("--standby", request.journal.standby,
                     "Wait until the ps have not heard of the coordinator at work for a second, "
                     "and go on then with its journal, which lies on a shared file system")
            ->needs(journal);
        app.add_option("--beside", request.beside,
                       "The folder that relative paths of the job are in; else that of its file");
        app.add_option("--cluster-id", request.cluster_id,
                       "The same for every task of a cluster; else CAIRN_CLUSTER_ID");
        app.add_option("--token-file", request.token_file,
                       "File that holds the token; else CAIRN_TOKEN_FILE or CAIRN_TOKEN");
        cairn::rpc::add_version_flag(app);
        // Set where --help or --version was the whole request, or the command line is wrong.
        if (const auto ended = cairn::rpc::parse_command_line(app, argc, argv)) return *ended;
        return cairn::tools::run_coordinator(request);
      },
      [](const char* text) { return cairn::tools::in_job_words(text); });
}
