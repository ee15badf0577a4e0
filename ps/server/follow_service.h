// The part of the Shard interface that is for readers (rpc/cairn.capnp): describe, changes and
// readRows.
#pragma once
#include <memory>

#include "ps/server/shard_service.h"

namespace cairn::ps {

// Served over one connection, by the service that has all other calls.
class FollowService : public wire::Shard::Server {
 public:
  FollowService(std::shared_ptr<ShardHost> host, rpc::Connection& connection)
      : host_(std::move(host)), connection_(connection) {}

 protected:
  kj::Promise<void> describe(DescribeContext context) override;
  kj::Promise<void> changes(ChangesContext context) override;
  kj::Promise<void> readRows(ReadRowsContext context) override;

  // Rows that a pull has waited for stay as long as this is held.
  struct Hold {
    ~Hold() { host->shard.answered(wait); }
    std::shared_ptr<ShardHost> host;
    std::uint64_t wait;
  };

  std::shared_ptr<ShardHost> host_;
  rpc::Connection& connection_;

 private:
  rpc::Task<void> answer_rows_later(ReadRowsContext context, PullRequest request,
                                    std::vector<ReadHeader> headers, std::vector<std::int64_t> ids);
  void answer_rows(ReadRowsContext context, const PullRequest& request);
};

}  // namespace cairn::ps
