#include "rpc/wire/layout_wire.h"

#include "core/base/error.h"
#include "core/graph/wire/wire.h"

namespace cairn::wire {
namespace {

void write_placed(VariableLayout::Builder out, const cairn::VariableLayout& variable) {
  write(out.initRule(), variable.rule);
  auto parts = out.initParts(static_cast<unsigned>(variable.parts.size()));
  for (unsigned i = 0; i < parts.size(); ++i) {
    parts[i].setShard(variable.parts[i].shard);
    parts[i].setBegin(variable.parts[i].rows.begin);
    parts[i].setEnd(variable.parts[i].rows.end);
  }
}

// The parts cover the rows in order, without gaps.
void verify_parts(const cairn::VariableLayout& variable) {
  std::int64_t end = 0;
  for (const cairn::Part& part : variable.parts) {
    if (part.rows.begin != end || part.rows.end < part.rows.begin || part.shard >= kShardsMax)
      throw InvalidArgumentError(str("the layout of variable \"", variable.spec->name,
                                     "\" puts rows ", part.rows.begin, " to ", part.rows.end,
                                     " on shard ", part.shard, " where row ", end,
                                     " comes next, on one of at most ", kShardsMax, " shards"));
    end = part.rows.end;
  }
  if (end != variable.spec->rows())
    throw InvalidArgumentError(str("the layout of variable \"", variable.spec->name,
                                   "\" ends at row ", end, " of ", variable.spec->rows()));
}

}  // namespace

void write(ShardReplica::Builder out, const cairn::ShardReplica& replica) {
  out.setPs(replica.ps);
  out.setAddress(replica.address.c_str());
  out.setEndpoint(replica.endpoint);
  out.setProcess(replica.process.number);
}

cairn::ShardReplica read(ShardReplica::Reader in) {
  return {in.getPs(), read_name(in.getAddress()), in.getEndpoint(), in.getProcess()};
}

void write(ShardLayout::Builder out, const cairn::ShardLayout& shard) {
  write(out.initPrimary(), shard.primary);
  auto backups = out.initBackups(static_cast<unsigned>(shard.backups.size()));
  for (unsigned i = 0; i < backups.size(); ++i) write(backups[i], shard.backups[i]);
  out.setEpoch(shard.epoch.number);
  out.setHome(shard.home);
}

cairn::ShardLayout read(ShardLayout::Reader in) {
  cairn::ShardLayout out{read(in.getPrimary()), {}, in.getEpoch(), in.getHome()};
  for (auto backup : bounded(in.getBackups(), kBackupsMax, "backups of a shard"))
    out.backups.push_back(read(backup));
  return out;
}

void write(VariableLayout::Builder out, const cairn::VariableLayout& variable) {
  write(out.initSpec(), *variable.spec);
  write_placed(out, variable);
}

cairn::VariableLayout read(VariableLayout::Reader in, VariableId id) {
  cairn::VariableLayout out;
  out.id = id;
  out.spec = std::make_shared<const cairn::VariableSpec>(read(in.getSpec()));
  out.rule = read(in.getRule());
  for (auto part : bounded(in.getParts(), kShardsMax, "parts of a variable"))
    out.parts.push_back({part.getShard(), {part.getBegin(), part.getEnd()}});
  verify_parts(out);
  return out;
}

void write(Layout::Builder out, const cairn::Layout& layout) {
  out.setVersion(layout.version);
  out.setSeed(layout.seed);
  auto shards = out.initShards(static_cast<unsigned>(layout.shards.size()));
  for (unsigned i = 0; i < shards.size(); ++i) write(shards[i], layout.shards[i]);
  auto variables = out.initVariables(static_cast<unsigned>(layout.variables.size()));
  for (unsigned i = 0; i < variables.size(); ++i) {
    cairn::VariableSpec spec = *layout.variables[i].spec;
    spec.initializer = {};
    write(variables[i].initSpec(), spec);
    write_placed(variables[i], layout.variables[i]);
  }
}

std::shared_ptr<const cairn::Layout> read(Layout::Reader in) {
  auto out = std::make_shared<cairn::Layout>();
  out->version = in.getVersion();
  out->seed = in.getSeed();
  for (auto shard : bounded(in.getShards(), kShardsMax, "shards"))
    out->shards.push_back(read(shard));
  for (auto variable : bounded(in.getVariables(), kShardsMax, "variables"))
    out->variables.push_back(read(variable, static_cast<VariableId>(out->variables.size())));
  return out;
}

}  // namespace cairn::wire
