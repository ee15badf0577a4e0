// The part of the Shard interface that is about replicas (rpc/cairn.capnp): record, setBackups and
// awaitBackups.
#pragma once
#include <memory>

#include "ps/server/follow_service.h"

namespace cairn::ps {

// Served over one connection, by the service that has all other calls.
class ReplicaService : public FollowService {
 public:
  using FollowService::FollowService;

 protected:
  kj::Promise<void> record(RecordContext context) override;
  kj::Promise<void> setBackups(SetBackupsContext context) override;
  kj::Promise<void> awaitBackups(AwaitBackupsContext context) override;

  // Refuses any caller but the coordinator of the session that this shard was configured for.
  virtual void from_coordinator(std::string_view call) const = 0;
  // An answer about the rows as they are now may go when this has ended.
  static rpc::Task<void> everywhere(std::shared_ptr<ShardHost> host);

 private:
  static rpc::Task<void> answer_with_news(std::shared_ptr<ShardHost> host,
                                          AwaitBackupsContext context);
};

}  // namespace cairn::ps
