#include "coordinator/journal/config_keeper.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/journal/config_store.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/machine.h"
#include "rpc/loop/on_offload.h"

namespace cairn {
namespace {

constexpr Duration kStoreDeadline = std::chrono::seconds(10);

std::string named(const ClusterConfig& config) {
  return str("term ", config.term, " (", config.holder, ")");
}

std::vector<ShardLayout> without_addresses(std::vector<ShardLayout> shards) {
  for (ShardLayout& shard : shards) {
    shard.primary.address.clear();
    for (ShardReplica& backup : shard.backups) backup.address.clear();
  }
  return shards;
}

}  // namespace

rpc::Task<void> ConfigKeeper::take_term() {
  const auto& store = session_.options.session.config_store;
  if (store == nullptr) co_return;
  kept_ = co_await read();
  const std::string& own = session_.options.cluster_id;
  if (kept_.config.term != 0 && kept_.config.cluster != own)
    throw FailedPreconditionError(str(store->where(), " is that of cluster \"",
                                      kept_.config.cluster, "\", this coordinator's is \"", own,
                                      "\": give it another one, or correct the cluster's id"));
  if (kept_.config.session == session_.number) found_ = kept_.config.shards;
  ClusterConfig next{own, session_.number, kept_.config.term.number + 1, process_text(), found_};
  session_.term = next.term;
  const bool taken = co_await replace(std::move(next));
  if (taken) co_return;
  const Kept other = co_await read();
  throw FailedPreconditionError(
      str("another coordinator takes the cluster at this moment: ", named(other.config), " in ",
          store->where(), ". End one of the two"));
}

rpc::Task<void> ConfigKeeper::keep_shards(std::shared_ptr<const Layout> layout) {
  if (session_.options.session.config_store == nullptr) co_return;
  ClusterConfig next = kept_.config;
  next.shards = without_addresses(layout->shards);
  while (next.shards != kept_.config.shards) {
    const bool kept = co_await replace(next);
    if (kept) co_return;
    const Kept newest = co_await read();
    if (newest.config.term != kept_.config.term)
      session_.give_way(str("a successor of this coordinator, which has ", named(kept_.config),
                            ", has the cluster: ", named(newest.config)));
    // Nobody else has this term: the version is ours, of an attempt whose end was not heard of.
    kept_ = newest;
  }
}

rpc::Task<ConfigKeeper::Kept> ConfigKeeper::read() {
  auto found = std::make_shared<Kept>();
  std::function<void()> work = [store = session_.options.session.config_store, found] {
    const ConfigStore::Version newest = store->read();
    *found = {newest.number,
              parse_cluster_config(newest.text, str("version ", newest.number, " of the ",
                                                    "configuration in ", store->where()))};
  };
  co_await on_store(std::move(work), "reading");
  co_return std::move(*found);
}

// A file system on another machine may not answer at all.
rpc::Task<void> ConfigKeeper::on_store(std::function<void()> work, const char* doing) {
  const std::string what =
      str(doing, " the configuration in ", session_.options.session.config_store->where());
  auto done = rpc::on_offload(session_.parts.reactor, session_.parts.offload, 0, std::move(work));
  auto in_time = session_.parts.reactor.with_deadline(kj::mv(done), kStoreDeadline, what);
  co_await kj::mv(in_time);
}

rpc::Task<bool> ConfigKeeper::replace(ClusterConfig config) {
  auto taken = std::make_shared<bool>(false);
  const auto store = session_.options.session.config_store;
  const std::uint64_t after = kept_.version;
  const std::string text = to_text(config);
  std::function<void()> work = [store, taken, after, text] {
    *taken = store->replace(after, text);
  };
  co_await on_store(std::move(work), "keeping");
  if (*taken) kept_ = {kept_.version + 1, std::move(config)};
  co_return *taken;
}

}  // namespace cairn
