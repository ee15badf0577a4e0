// Databases in the local folder of a ps: see checkpoint_tasks.h.
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/shard_service.h"
#include "rpc/loop/on_offload.h"

namespace cairn::ps {

rpc::Task<std::vector<std::string>> find_databases(std::shared_ptr<ShardHost> host,
                                                   std::vector<std::string> databases) {
  auto troubles = std::make_shared<std::vector<std::string>>();
  std::function<void()> look = [&store = host->store, databases, troubles] {
    for (const std::string& database : databases) {
      troubles->emplace_back();
      try {
        store.open(database);
      } catch (const Error& error) {
        troubles->back() = error.what();
      }
    }
  };
  co_await rpc::on_offload(host->reactor, host->offload, host->lane, std::move(look));
  co_return std::move(*troubles);
}

rpc::Task<void> remove_rows(std::shared_ptr<ShardHost> host, std::vector<std::string> folders) {
  std::function<void()> remove = [&store = host->store, folders] {
    for (const std::string& folder : folders) store.disk().remove_tree(folder);
  };
  co_await rpc::on_offload(host->reactor, host->offload, host->lane, std::move(remove));
}

}  // namespace cairn::ps
