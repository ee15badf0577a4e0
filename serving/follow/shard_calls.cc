#include "serving/follow/shard_calls.h"

#include <utility>

#include "core/base/error.h"

namespace cairn::serving {
namespace {

constexpr Duration kDialDeadline = std::chrono::seconds(5);

}  // namespace

std::vector<ShardAddress> first_shards(const RowStreamOptions& options) {
  if (options.ps.empty()) throw InvalidArgumentError("rows are read from ps: name one at least");
  std::vector<ShardAddress> shards;
  for (const std::string& address : options.ps)
    shards.push_back({shards.size(), rpc::Address::parse(address), 1});
  return shards;
}

rpc::Task<std::unique_ptr<rpc::Connection>> connect_reader(rpc::Reactor& reactor,
                                                           rpc::Network& network,
                                                           const RowStreamOptions& options,
                                                           std::uint64_t number,
                                                           const ShardAddress& shard) {
  rpc::Hello hello;
  hello.cluster = options.cluster;
  hello.token = options.token;
  hello.role = rpc::Role::kReader;
  hello.incarnation = number;
  hello.endpoint = shard.endpoint;
  auto dialling = network.connect(reactor, shard.address, hello, kDialDeadline);
  auto connection = co_await kj::mv(dialling);
  co_return std::move(connection);
}

rpc::Task<ShardDescription> describe_shard(rpc::Reactor& reactor, wire::Shard::Client client) {
  auto request = client.describeRequest();
  kj::Promise<capnp::Response<wire::Shard::DescribeResults>> sent = request.send();
  auto answered = reactor.with_deadline(kj::mv(sent), kShardDeadline, "a shard's description");
  const auto answer = co_await kj::mv(answered);
  co_return read_description(answer);
}

bool is_refusal(const std::exception_ptr& error) {
  if (error == nullptr) return false;
  const Code code = error_parts(error).code;
  return code == Code::kPermissionDenied || code == Code::kFailedPrecondition;
}

}  // namespace cairn::serving
