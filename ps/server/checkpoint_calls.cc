#include "ps/server/checkpoint_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "core/graph/wire/wire.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/shard_service.h"
#include "ps/wire/wire_requests.h"

namespace cairn::ps {

using SaveContext = capnp::CallContext<wire::Shard::SaveParams, wire::Shard::SaveResults>;
using FindDatabasesContext =
    capnp::CallContext<wire::Shard::FindDatabasesParams, wire::Shard::FindDatabasesResults>;
using RestoreContext = capnp::CallContext<wire::Shard::RestoreParams, wire::Shard::RestoreResults>;

rpc::Task<void> save_and_answer(std::shared_ptr<ShardHost> host, SaveContext context) {
  const std::string folder = read_folder(context.getParams().getFolder());
  const auto params = context.getParams();
  const std::vector<SavedDatabase> saved =
      co_await save_shard(host, params.getAttempt(), folder, read_encoding(params.getEncoding()));
  write(context.initResults(), saved);
}

rpc::Task<void> find_and_answer(std::shared_ptr<ShardHost> host, FindDatabasesContext context) {
  std::vector<std::string> databases = read_local_databases(context.getParams().getDatabases());
  const std::vector<std::string> troubles = co_await find_databases(host, std::move(databases));
  auto out = context.initResults().initTroubles(static_cast<unsigned>(troubles.size()));
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, troubles[i].c_str());
}

rpc::Task<void> restore_and_answer(std::shared_ptr<ShardHost> host, RestoreContext context) {
  const auto params = context.getParams();
  std::vector<std::string> databases;
  for (const auto name : wire::bounded(params.getDatabases(), wire::kListMax, "databases"))
    databases.push_back(wire::read_name(name));
  std::vector<VariableId> only;
  for (const auto id : wire::bounded(params.getVariables(), 1u << 20, "variables"))
    only.push_back(id);
  // A restore from no database is a new beginning, which reads no folder.
  std::string folder = databases.empty() ? std::string() : read_folder(params.getFolder());
  const auto restore =
      params.getOnDemand() && !databases.empty() ? restore_on_demand : restore_shard;
  const RestoredRows restored = co_await restore(host, std::move(folder), std::move(databases),
                                                 read_applied(params.getApplied()), std::move(only),
                                                 read_moves(params.getMoves()));
  auto results = context.initResults();
  results.setRows(restored.report.rows);
  results.setBytes(restored.bytes);
  results.setLater(restored.later);
}

}  // namespace cairn::ps
