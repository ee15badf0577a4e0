#include "tools/job/train/run_journal.h"

#include <charconv>
#include <cstdlib>
#include <utility>

#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"
#include "coordinator/engine/standby.h"
#include "core/base/error.h"
#include "rpc/server/token.h"
#include "strategy/servers/cluster_coordinator.h"

namespace cairn::tools {
namespace {

// For a run that ends because its cluster was taken from it.
constexpr Duration kTakeOverPatience = std::chrono::seconds(60);
// For one that may stand still, and need not end.
constexpr Duration kShutOutPatience = std::chrono::milliseconds(200);
constexpr Duration kSyncMost = std::chrono::minutes(1);

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool wants_journal(const TrainRequest& request) {
  return !request.journal.folder.empty() || !environment_value("CAIRN_JOURNAL").empty();
}

Duration parse_journal_sync(const std::string& text) {
  if (text == "always") return Duration::zero();
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const std::string unit(read.ptr, end);
  const bool known = read.ec == std::errc() && number >= 0 && (unit == "ms" || unit == "s");
  const std::int64_t most =
      std::chrono::duration_cast<std::chrono::milliseconds>(kSyncMost).count();
  if (known && number <= most / (unit == "s" ? 1000 : 1))
    return std::chrono::milliseconds(unit == "s" ? number * 1000 : number);
  throw InvalidArgumentError(str("--journal-sync ", text, ": wanted always, or a time of at most ",
                                 "60 s, as 50ms or 1s"));
}

void set_journal(const TrainRequest& request, const RunHost& host, const ClusterSpec& cluster,
                 ParameterServerOptions& options) {
  EngineOptions& engine = options.engine;
  engine.journal.folder = request.journal.folder;
  if (!request.journal.sync.empty())
    engine.journal.sync_after = parse_journal_sync(request.journal.sync);
  if (!request.journal.standby) return;
  StandbyOptions standby{
      .cluster = cluster, .cluster_id = engine.cluster_id, .token = engine.token};
  if (request.cluster_id.empty())
    if (const std::string id = environment_value("CAIRN_CLUSTER_ID"); !id.empty())
      standby.cluster_id = id;
  if (standby.token.empty()) standby.token = rpc::token_of_environment();
  standby.say = [&host](const std::string& text) { host.output.say(text); };
  standby.on_wait = [&host] {
    if (host.interrupted != 0)
      throw CancelledError("interrupted while it stood by: nothing was trained here");
  };
  wait_as_standby(standby, options.transport);
  engine.take_over = true;
}

std::shared_ptr<const storage::FolderLock> claim_to_go_on(const TrainRequest& request,
                                                          const TrainerOptions& trainer) {
  const std::string& folder = trainer.checkpoint_folder;
  const bool of_run = trainer.goes_on && trainer.goes_on->checkpoints == folder;
  if (!request.journal.standby || !of_run) return claim(request, trainer, kTakeOverPatience);
  try {
    return claim(request, trainer, kShutOutPatience);
  } catch (const FailedPreconditionError& error) {
    trainer.output->say(str("the checkpoints are taken over too: ", error.what()));
    return std::make_shared<const storage::FolderLock>(storage::FolderLock{folder, nullptr});
  }
}

std::optional<NotedRun> noted_run(ParameterServerStrategy& strategy) {
  const std::optional<ResumedRun> run = ClusterCoordinator(strategy).resumed();
  if (!run) return std::nullopt;
  return NotedRun::read(*run, strategy.host().engine().options().journal.folder);
}

}  // namespace cairn::tools
