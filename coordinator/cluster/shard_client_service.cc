#include <algorithm>

#include "coordinator/cluster/reply_wire.h"
#include "coordinator/cluster/shard_client.h"
#include "core/graph/wire/wire.h"
#include "rpc/cairn.capnp.h"
#include "rpc/wire/layout_wire.h"
#include "storage/any_disk.h"

namespace cairn {
namespace {

using Parts = std::vector<std::pair<std::uint32_t, RowRange>>;

// A part keeps its index in the variable, by which lanes name it, whichever shard it lies on.
Parts parts_on(const VariableLayout& variable, ShardId shard) {
  Parts parts;
  for (std::uint32_t i = 0; i < variable.parts.size(); ++i)
    if (variable.parts[i].shard == shard) parts.emplace_back(i, variable.parts[i].rows);
  return parts;
}

void write_table(wire::Table::Builder out, const VariableLayout& variable, const Parts& parts) {
  out.setVariable(variable.id);
  wire::write(out.initSpec(), *variable.spec);
  wire::write(out.initRule(), variable.rule);
  auto list = out.initParts(static_cast<unsigned>(parts.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setVariable(variable.id);
    list[i].setIndex(parts[i].first);
    list[i].setBegin(parts[i].second.begin);
    list[i].setEnd(parts[i].second.end);
  }
}

void write_move(wire::RestoreMove::Builder out, const std::string& variable, const RowMove& move) {
  out.setVariable(variable.c_str());
  out.setFrom(move.from.c_str());
  out.setSlots(move.slots);
  out.setRows(move.rows);
  if (move.numbers == nullptr) return;
  auto numbers = out.initNumbers(static_cast<unsigned>(move.numbers->size()));
  // kRowGone becomes 2^32 - 1.
  for (unsigned i = 0; i < numbers.size(); ++i)
    numbers.set(i, static_cast<std::uint32_t>((*move.numbers)[i]));
}

void write_encoding(wire::RowEncoding::Builder out, const storage::ChosenEncoding& encoding) {
  out.setRows(static_cast<std::uint8_t>(encoding.rows));
  out.setSlots(static_cast<std::uint8_t>(encoding.slots));
  out.setCompression(static_cast<std::uint8_t>(encoding.compression));
  auto names = out.initVariables(static_cast<unsigned>(encoding.variables.size()));
  unsigned at = 0;
  for (const std::string& name : encoding.variables) names.set(at++, name.c_str());
}

// The program may name a folder relative to its own working directory, and a ps has another one.
std::string at_any_process(const std::string& folder) { return storage::absolute_place(folder); }

}  // namespace

// The ranges are half-open and ascend: the last one that begins at or below the closure is the only
// one that can hold it.
bool AppliedClosures::contains(std::uint64_t closure) const {
  if (closure < low_watermark) return true;
  auto after = std::upper_bound(ranges.begin(), ranges.end(), closure,
                                [](auto c, const auto& range) { return c < range.first; });
  return after != ranges.begin() && closure < std::prev(after)->second;
}

// Most that are added are higher than all before them, or nearly so.
void AppliedClosures::add(std::uint64_t closure) {
  if (contains(closure)) return;
  auto at = ranges.end();
  while (at != ranges.begin() && std::prev(at)->first > closure) --at;
  const bool behind = at != ranges.begin() && std::prev(at)->second == closure;
  const bool before = at != ranges.end() && at->first == closure + 1;
  if (behind) ++std::prev(at)->second;
  if (before) --at->first;
  if (behind && before) {
    std::prev(at)->second = at->second;
    ranges.erase(at);
  }
  if (!behind && !before) ranges.insert(at, {closure, closure + 1});
}

void AppliedClosures::raise(std::uint64_t watermark) {
  if (watermark <= low_watermark) return;
  low_watermark = watermark;
  auto at = ranges.begin();
  while (at != ranges.end() && at->second <= watermark) ++at;
  if (at != ranges.end()) at->first = std::max(at->first, watermark);
  ranges.erase(ranges.begin(), at);
}

void AppliedClosures::merge(const AppliedClosures& other) {
  // The watermark comes from this coordinator alone, so that the highest one holds for all shards.
  // A closure that any shard has applied is in the union; whether it is committed as well is asked
  // afterwards (ClosureScheduler::all_committed).
  low_watermark = std::max(low_watermark, other.low_watermark);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all(ranges);
  all.insert(all.end(), other.ranges.begin(), other.ranges.end());
  std::sort(all.begin(), all.end());
  ranges.clear();
  for (const auto& range : all) {
    if (!ranges.empty() && range.first <= ranges.back().second)
      ranges.back().second = std::max(ranges.back().second, range.second);
    else
      ranges.push_back(range);
  }
}

struct ShardClient::Stub {
  wire::Shard::Client shard;
};
ShardClient::ShardClient(std::unique_ptr<rpc::Connection> connection, ShardId shard)
    : connection_(std::move(connection)),
      stub_(std::make_unique<Stub>(Stub{connection_->bootstrap<wire::Shard>()})),
      shard_(shard) {}
ShardClient::~ShardClient() = default;

rpc::Task<ShardVersion> ShardClient::configure(std::uint64_t session,
                                               std::shared_ptr<const Layout> layout,
                                               VariableId first, VariableId last) {
  auto request = stub_->shard.configureRequest();
  request.setSession(session);
  request.setLayoutVersion(layout->version);
  request.setSeed(layout->seed);
  request.setEpoch(layout->shards.at(shard_).epoch.number);
  // A list of the protocol has a fixed length, so that the tables are gathered before it is made.
  std::vector<std::pair<const VariableLayout*, Parts>> mine;
  for (VariableId id = first; id < last; ++id)
    if (auto parts = parts_on(layout->variables[id], shard_); !parts.empty())
      mine.emplace_back(&layout->variables[id], std::move(parts));
  auto tables = request.initTables(static_cast<unsigned>(mine.size()));
  for (unsigned i = 0; i < tables.size(); ++i)
    write_table(tables[i], *mine[i].first, mine[i].second);
  auto response = co_await request.send();
  co_return read_version(response.getVersion());
}

rpc::Task<void> ShardClient::open() { co_await stub_->shard.openRequest().send().ignoreResult(); }

rpc::Task<void> ShardClient::announce(std::uint64_t session, std::uint64_t closures_below,
                                      std::uint64_t settled_below) {
  auto request = stub_->shard.announceRequest();
  request.setSession(session);
  request.setClosuresBelow(closures_below);
  request.setSettledBelow(settled_below);
  co_await request.send().ignoreResult();
}

rpc::Task<AppliedClosures> ShardClient::applied() {
  auto response = co_await stub_->shard.appliedRequest().send();
  co_return read_applied(response.getClosures());
}

rpc::Task<void> ShardClient::fence(std::uint64_t session, LaneIncarnation newest,
                                   std::vector<LaneIncarnation> alive) {
  auto request = stub_->shard.fenceRequest();
  request.setSession(session);
  request.setNewest(newest.number);
  auto list = request.initAlive(static_cast<unsigned>(alive.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, alive[i].number);
  co_await request.send().ignoreResult();
}

rpc::Task<void> ShardClient::apply_round(std::uint64_t session, std::uint64_t round,
                                         std::vector<AppliedMember> members) {
  auto request = stub_->shard.applyRoundRequest();
  request.setSession(session);
  request.setRound(round);
  auto list = request.initMembers(static_cast<unsigned>(members.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setClosure(members[i].closure);
    list[i].setSentLayout(members[i].sent_layout);
  }
  co_await request.send().ignoreResult();
}

rpc::Task<ShardMark> ShardClient::mark(std::uint64_t attempt, CutBase base) {
  auto request = stub_->shard.markRequest();
  request.setAttempt(attempt);
  request.setBase(base.mark);
  request.setTrack(base.track);
  request.setPassing(base.passing);
  auto response = co_await request.send();
  co_return read_mark(response);
}

rpc::Task<ShardSaved> ShardClient::save(std::uint64_t attempt, std::string folder,
                                        storage::ChosenEncoding encoding) {
  auto request = stub_->shard.saveRequest();
  request.setAttempt(attempt);
  request.setFolder(at_any_process(folder).c_str());
  if (!(encoding == storage::ChosenEncoding{})) write_encoding(request.initEncoding(), encoding);
  auto response = co_await request.send();
  co_return read_saved(response);
}

rpc::Task<void> ShardClient::drop_mark(std::uint64_t attempt) {
  auto request = stub_->shard.dropMarkRequest();
  request.setAttempt(attempt);
  co_await request.send().ignoreResult();
}

rpc::Task<ShardRestored> ShardClient::restore(
    std::string folder, std::vector<std::string> databases, AppliedClosures applied,
    std::vector<VariableId> variables, std::map<std::string, RowMove> moves, bool on_demand) {
  auto request = stub_->shard.restoreRequest();
  request.setFolder(at_any_process(folder).c_str());
  auto names = request.initDatabases(static_cast<unsigned>(databases.size()));
  for (unsigned i = 0; i < names.size(); ++i) names.set(i, databases[i].c_str());
  auto set = request.initApplied();
  set.setLowWatermark(applied.low_watermark);
  auto ranges = set.initClosures(static_cast<unsigned>(applied.ranges.size()));
  for (unsigned i = 0; i < ranges.size(); ++i) {
    ranges[i].setBegin(applied.ranges[i].first);
    ranges[i].setEnd(applied.ranges[i].second);
  }
  auto ids = request.initVariables(static_cast<unsigned>(variables.size()));
  for (unsigned i = 0; i < ids.size(); ++i) ids.set(i, variables[i]);
  auto list = request.initMoves(static_cast<unsigned>(moves.size()));
  unsigned at = 0;
  for (const auto& [variable, move] : moves) write_move(list[at++], variable, move);
  request.setOnDemand(on_demand);
  auto response = co_await request.send();
  co_return ShardRestored{response.getRows(), response.getLater()};
}

rpc::Task<void> ShardClient::await_restore() {
  co_await stub_->shard.awaitRestoreRequest().send().ignoreResult();
}

rpc::Task<void> ShardClient::set_backups(std::uint64_t session, std::vector<ShardReplica> backups,
                                         bool shares) {
  auto request = stub_->shard.setBackupsRequest();
  request.setSession(session);
  request.setLeased(true);
  request.setShares(shares);
  auto list = request.initBackups(static_cast<unsigned>(backups.size()));
  for (unsigned i = 0; i < list.size(); ++i) wire::write(list[i], backups[i]);
  co_await request.send().ignoreResult();
}

rpc::Task<BackupNews> ShardClient::await_backups(std::uint64_t session, std::uint64_t seen) {
  auto request = stub_->shard.awaitBackupsRequest();
  request.setSession(session);
  request.setSeen(seen);
  auto response = co_await request.send();
  BackupNews news{response.getVersion(), {}};
  for (auto backup : wire::bounded(response.getBackups(), kBackupsMax, "backups of a shard"))
    news.backups.push_back({{backup.getPs(), {}, backup.getEndpoint(), backup.getProcess()},
                            backup.getCaughtUp(),
                            std::string(backup.getTrouble().begin(), backup.getTrouble().end()),
                            backup.getBehind(),
                            backup.getRowBytes()});
  co_return news;
}

rpc::Task<std::vector<std::string>> ShardClient::find_databases(
    std::vector<std::string> databases) {
  auto request = stub_->shard.findDatabasesRequest();
  auto names = request.initDatabases(static_cast<unsigned>(databases.size()));
  for (unsigned i = 0; i < names.size(); ++i) names.set(i, databases[i].c_str());
  auto response = co_await request.send();
  std::vector<std::string> troubles;
  for (const auto text : wire::bounded(response.getTroubles(), kReplyListMax, "troubles"))
    troubles.emplace_back(text);
  if (troubles.size() != databases.size())
    throw DataLossError(str("a shard answers ", troubles.size(), " times of ", databases.size(),
                            " databases: is it of another version?"));
  co_return std::move(troubles);
}

rpc::Task<void> ShardClient::remove_rows(std::vector<std::string> folders) {
  auto request = stub_->shard.removeRowsRequest();
  auto names = request.initFolders(static_cast<unsigned>(folders.size()));
  for (unsigned i = 0; i < names.size(); ++i) names.set(i, folders[i].c_str());
  co_await request.send().ignoreResult();
}

rpc::Task<void> ShardClient::begin_anew(std::vector<VariableId> variables) {
  // A restore from no database: every row goes back to its initial value.
  auto request = stub_->shard.restoreRequest();
  auto ids = request.initVariables(static_cast<unsigned>(variables.size()));
  for (unsigned i = 0; i < ids.size(); ++i) ids.set(i, variables[i]);
  co_await request.send().ignoreResult();
}

}  // namespace cairn
