// RemoteRows: RowReader on a loop of its caller's, as coroutines: one connection for each shard.
//   Thread  the reactor's.
#pragma once
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rpc/loop/reactor.h"
#include "rpc/loop/task_group.h"
#include "rpc/net/network.h"
#include "serving/follow/row_reader.h"
#include "serving/follow/shard_answers.h"

namespace cairn::serving {

class RemoteRows {
 public:
  // `number` is drawn at random. `reactor` and `network` outlive this.
  RemoteRows(rpc::Reactor& reactor, rpc::Network& network, RowStreamOptions options,
             std::uint64_t number);
  ~RemoteRows();

  // RowReader::read(). What `wanted` names, and `read`, live until it has ended.
  rpc::Task<void> read(std::span<const RowsWanted> wanted, Duration patience, RowsRead& read);
  // Waits until each ps has answered once. False: `patience` has passed.
  rpc::Task<bool> known(Duration patience);
  // Null: no shard has told of it.
  std::shared_ptr<const VariableSpec> variable(const std::string& name) const;
  std::uint64_t seed() const;

 private:
  struct Link;
  struct Place {
    RowRange rows;
    Link* link;
    ShardDescription::Id id;
  };
  struct Asked;
  struct Call;
  rpc::Task<void> keep(Link& link);
  rpc::Task<void> converse(Link& link);
  rpc::Task<void> ask(Link& link, Asked& asked, std::span<const RowsWanted> wanted, TimePoint until,
                      RowsRead& read);
  std::vector<Call> route(std::span<const RowsWanted> wanted, RowsRead& read);
  void add_links(const Link& first, std::uint32_t endpoints);
  void lay();
  bool all_known() const;
  kj::Promise<void> description(TimePoint until);
  bool is_described_anew() const;
  void verify(std::span<const RowsWanted> wanted) const;
  const Place* find(const std::vector<Place>& places, std::int64_t row) const;
  TimePoint now() const { return reactor_.clock().now(); }

  rpc::Reactor& reactor_;
  rpc::Network& network_;
  const RowStreamOptions options_;
  const std::uint64_t number_;
  std::vector<std::unique_ptr<Link>> links_;
  std::map<std::string, std::vector<Place>> places_;          // by variable, ascending by row
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;  // for a description
  std::uint64_t outdated_ = 0;  // calls that were answered with another description
  rpc::TaskGroup tasks_;        // last: it ends first
};

}  // namespace cairn::serving
