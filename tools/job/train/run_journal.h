// The journal of a run on a given cluster: what the command line says of it, and how a run goes on
// that an earlier coordinator had begun.
//   Thread  one.
#pragma once
#include <optional>

#include "strategy/servers/parameter_server_strategy.h"
#include "tools/job/run/noted_run.h"
#include "tools/job/train/run_host.h"
#include "tools/job/train/train_request.h"
#include "tools/job/train/train_setup.h"

namespace cairn::tools {

// Whether the run has a journal, by the command line or by the environment.
bool wants_journal(const TrainRequest& request);

// Sets the engine's journal by the command line. Under --standby it first waits until the
// coordinator at work has gone, and says for whom it waits.
//   Errors  InvalidArgument: --journal-sync is no duration. Cancelled: interrupted as it waited.
void set_journal(const TrainRequest& request, const RunHost& host, const ClusterSpec& cluster,
                 ParameterServerOptions& options);

// "always", or a number of milliseconds or seconds.
//   Errors  InvalidArgument, naming --journal-sync.
Duration parse_journal_sync(const std::string& text);

// The claim to the folder of checkpoints, for a run that goes on. A coordinator that has stood by
// gets it also if the one before still has it: the ps have shut that one out, so that it saves
// nothing any more.
//   Errors  those of claim().
std::shared_ptr<const storage::FolderLock> claim_to_go_on(const TrainRequest& request,
                                                          const TrainerOptions& trainer);

// The run that the strategy's coordinator goes on with; none: it has begun one.
//   Errors  FailedPrecondition: another program than a job has written the journal.
std::optional<NotedRun> noted_run(ParameterServerStrategy& strategy);

}  // namespace cairn::tools
