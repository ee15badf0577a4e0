#include "ps/server/ps_status.h"

#include "core/base/json.h"
#include "core/base/machine.h"
#include "rpc/loop/memory_use.h"

namespace cairn::ps {
namespace {

// Counters are written by the shard's thread and read by this one. Each is right by itself;
// together they may be of slightly different moments, which a status bears.
std::uint64_t get(const ShardCounters::Number& number) {
  return number.load(std::memory_order_relaxed);
}

Json shard_json(const ShardCounters& shard) {
  const std::uint64_t pushes = get(shard.pushes.calls);
  return {{"open", get(shard.open) != 0},
          {"lineage", get(shard.lineage)},
          {"epoch", get(shard.epoch)},
          {"layout_version", get(shard.layout_version)},
          {"tables", get(shard.tables)},
          {"rows", get(shard.rows)},
          {"bytes", get(shard.bytes)},
          {"pulls", get(shard.pulls.calls)},
          {"pulled_rows", get(shard.pulls.rows)},
          {"pulled_bytes", get(shard.pulls.bytes)},
          {"pushes", pushes},
          {"pushed_rows", get(shard.pushes.rows)},
          {"pushed_bytes", get(shard.pushes.bytes)},
          {"duplicates", get(shard.duplicates)},
          {"fenced", get(shard.fenced)},
          {"outdated", get(shard.outdated)},
          {"staleness_mean", pushes == 0 ? 0.0
                                         : static_cast<double>(get(shard.staleness.sum)) /
                                               static_cast<double>(pushes)},
          {"staleness_max", get(shard.staleness.max)},
          {"staged_bytes", get(shard.kept.staged_bytes)},
          {"marks", get(shard.save.marks)},
          {"waiting", get(shard.kept.waiting)},
          {"save_blocks", get(shard.save.blocks)},
          {"saved_blocks", get(shard.save.taken_blocks)},
          {"saved_bytes", get(shard.save.bytes)},
          {"copied_bytes", get(shard.save.copied_bytes)},
          {"copied_bytes_max", get(shard.save.copied_bytes_max)},
          {"rows_on_disk", get(shard.tier.rows_elsewhere)},
          {"disk_bytes", get(shard.tier.disk_bytes)},
          {"fetched_rows", get(shard.tier.fetched_rows)},
          {"evicted_rows", get(shard.tier.evicted_rows)},
          {"written_rows", get(shard.tier.written_rows)},
          {"dropped_rows", get(shard.turnover.dropped)},
          {"gone_rows", get(shard.turnover.gone)},
          {"step", get(shard.follow.step)},
          {"subscribers", get(shard.follow.subscribers)},
          {"subscriber_bytes", get(shard.follow.bytes)},
          {"restored_rows", get(shard.restore.rows)},
          {"restoring_bytes", get(shard.restore.bytes_in_all)},
          {"restored_bytes", get(shard.restore.bytes)}};
}

}  // namespace

std::string status_json(const PsStatus& status) {
  Json shards = Json::array();
  for (const ShardCounters* shard : status.shards) shards.push_back(shard_json(*shard));
  Json places = Json::array();
  for (const auto& [endpoint, shard] : status.places) {
    Json place = shard_json(*shard);
    place["endpoint"] = endpoint;
    place["session"] = get(shard->session);
    places.push_back(std::move(place));
  }
  const Json all = {{"role", "ps"},
                    {"index", status.index},
                    {"incarnation", status.incarnation.number},
                    {"memory_bytes", private_memory_bytes()},
                    {"buffer_bytes", rpc::buffer_bytes()},
                    {"address", status.address},
                    {"session", status.session},
                    {"connections", status.connections ? status.connections() : 0},
                    {"shards_why", status.shards_why},
                    {"shards", std::move(shards)},
                    {"places", std::move(places)}};
  return json_text(all);
}

}  // namespace cairn::ps
