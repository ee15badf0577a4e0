#include "worker/rows/remote_store.h"

#include "worker/rows/remote_step.h"

namespace cairn::worker {
namespace {

// A layout comes from another process: parts with a gap, or an overlap, would have rows read from
// nowhere, or updated twice.
void verify_layout(const Layout& layout) {
  for (const ShardLayout& shard : layout.shards) rpc::Address::parse(shard.primary.address);
  const std::uint32_t shards = layout.shard_count();
  for (const VariableLayout& variable : layout.variables) {
    std::int64_t next = 0;
    for (const Part& part : variable.parts) {
      if (part.rows.begin != next || part.rows.end < next || part.shard >= shards)
        throw InvalidArgumentError(str(
            "layout version ", layout.version, " does not cover variable \"", variable.spec->name,
            "\": a part holds rows [", part.rows.begin, ", ", part.rows.end, ") on shard ",
            part.shard, " of ", shards, ", row ", next, " was next"));
      next = part.rows.end;
    }
    if (next != variable.spec->rows())
      throw InvalidArgumentError(str("layout version ", layout.version, " covers ", next,
                                     " of the ", variable.spec->rows(), " rows of variable \"",
                                     variable.spec->name, "\""));
  }
}

}  // namespace

RemoteStore::RemoteStore(rpc::Reactor& reactor, rpc::Network& network, ShardLinkOptions options)
    : reactor_(reactor), network_(network), options_(options) {}

// Links greet with the session, so those of another one are of no use.
void RemoteStore::identify(LaneIdentity identity) {
  if (identity.hello.session != identity_.hello.session) links_.clear();
  parts_.clear();
  identity_ = std::move(identity);
  // The encoding belongs to the routing, for it decides how many rows a request holds.
  if (routing_)
    routing_ = std::make_shared<Routing>(std::make_shared<const Layout>(routing_->layout()),
                                         identity_.encoding, options_.piece_bytes_max);
}

void RemoteStore::forget_layout() {
  parts_.clear();
  links_.clear();
  routing_.reset();
}

void RemoteStore::set_layout(std::shared_ptr<const Layout> layout) {
  verify_layout(*layout);
  parts_.clear();
  auto next =
      std::make_shared<Routing>(std::move(layout), identity_.encoding, options_.piece_bytes_max);
  // A link goes on being used if it leads to the same process: a new one would cost a connection,
  // and the memory shared over it. Closures that wait on another one end now: what they ask for is
  // answered elsewhere, and a process that only stands still would keep them to the end of their
  // patience.
  std::erase_if(links_, [&](const auto& entry) {
    const auto& [shard, linked] = entry;
    if (shard < next->layout().shard_count() && next->shard(shard).primary == linked.to)
      return false;
    linked.link->close();
    return true;
  });
  routing_ = std::move(next);
}

// A newer layout than the closure's will do, since variables keep their names; an older one may
// lack some of them.
std::vector<VariableId> RemoteStore::resolve(const Graph& graph, std::uint64_t sent_layout) const {
  if (graph.variables.empty()) return {};
  if (!routing_ || routing_->layout().version < sent_layout)
    throw FailedPreconditionError(
        str("the closure needs layout version ", sent_layout, ", this lane has ",
            routing_ ? str("version ", routing_->layout().version) : std::string("none")));
  std::vector<VariableId> ids;
  for (const GraphVariable& variable : graph.variables) {
    const VariableLayout* known = routing_->layout().find(variable.name);
    if (known == nullptr)
      throw FailedPreconditionError(str("variable \"", variable.name,
                                        "\" is not in layout version ",
                                        routing_->layout().version));
    const TensorType type{known->spec->dtype, known->spec->shape};
    if (!(type == variable.type))
      throw InvalidArgumentError(str("the function takes variable \"", variable.name, "\" to be ",
                                     variable.type.to_string(), ", the layout has ",
                                     type.to_string()));
    ids.push_back(known->id);
  }
  return ids;
}

std::unique_ptr<StepStore> RemoteStore::open(ActivitySlot* slot) {
  return std::make_unique<RemoteStep>(*this, slot);
}

std::shared_ptr<ShardLink> RemoteStore::link(ShardId shard) {
  CAIRN_CHECK(routing_ != nullptr, "no layout yet");
  if (auto found = links_.find(shard); found != links_.end()) return found->second.link;
  const ShardReplica& primary = routing_->shard(shard).primary;
  // Without trying: the coordinator says in the layout which ps are away.
  if (primary.process == 0)
    throw UnavailableError(str(rpc::task_name(rpc::Role::kPs, primary.ps), " (", primary.address,
                               ") is away in layout version ", routing_->layout().version));
  ShardAddress address{rpc::Address::parse(primary.address), primary.ps, primary.endpoint};
  auto link = std::make_shared<ShardLink>(reactor_, network_, std::move(address), identity_.hello,
                                          options_);
  links_[shard] = {primary, link};
  return link;
}

std::shared_ptr<ShardLink> RemoteStore::find_link(ShardId shard) const {
  const auto found = links_.find(shard);
  return found == links_.end() ? nullptr : found->second.link;
}

}  // namespace cairn::worker
