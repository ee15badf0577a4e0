// ShardHost: what waits for a shard's rows; see shard_service.h.
#include <utility>

#include "ps/server/shard_service.h"

namespace cairn::ps {

kj::Promise<void> ShardHost::store_to_go_on() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  waiting_for_store.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

void ShardHost::store_went_on() {
  shard.store_went_on();
  for (auto& waiting : std::exchange(waiting_for_store, {})) waiting->fulfill();
}

kj::Promise<void> ShardHost::restore_to_go_on() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  waiting_for_restore.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

void ShardHost::restore_went_on() {
  for (auto& waiting : std::exchange(waiting_for_restore, {})) waiting->fulfill();
}

}  // namespace cairn::ps
