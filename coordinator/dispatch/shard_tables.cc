#include "coordinator/dispatch/shard_tables.h"

#include <algorithm>
#include <utility>

#include "coordinator/dispatch/needed_databases.h"
#include "core/base/log.h"
#include "rpc/loop/on_offload.h"
#include "rpc/loop/task_group.h"
#include "storage/database_place.h"
#include "storage/saved_ids.h"

namespace cairn {
namespace {
bool same_tables(const Layout& a, const Layout& b) {
  return a.variables.size() == b.variables.size() &&
         std::equal(a.variables.begin(), a.variables.end(), b.variables.begin(),
                    [](const auto& x, const auto& y) { return x.rule == y.rule; });
}

[[noreturn]] void refuse_not_there(const Ps& ps, const storage::DatabaseInfo& database,
                                   const std::string& checkpoint, const std::string& trouble) {
  const std::string lacks =
      database.task == ps.name
          ? str(ps.name, " wrote rows of the checkpoint ", checkpoint, " into ", database.name,
                " of its machine, and does not have them there now: start it on the machine that "
                "has that folder")
          : str(ps.name, " needs rows of the checkpoint ", checkpoint, " that ", database.task,
                " wrote into ", database.name,
                " of its machine, and that are not on this one: start as many ps as wrote it, each "
                "on its machine");
  throw FailedPreconditionError(
      str(lacks,
          ", or gather the checkpoint in a folder that all see (`cairn ckpt copy`) and "
          "restore it from there. (",
          trouble, ")"),
      ps.name);
}

// The coordinator looks at numbers of rows itself.
void verify_seen(const storage::DatabaseInfo& database, const std::string& checkpoint,
                 const Disk& disk, const std::string& variable) {
  if (!storage::is_local(database.name) || storage::is_here(disk, checkpoint, database)) return;
  throw FailedPreconditionError(
      str("variable \"", variable,
          "\" takes rows of a hashed one, whose numbers the coordinator "
          "looks at first, and ",
          database.name, ", which ", database.task,
          " wrote, is not on its machine: gather the checkpoint ", checkpoint,
          " in one folder (`cairn ckpt copy`) and restore it from there"));
}
}  // namespace

void ShardTables::begin(std::vector<ShardLayout> shards) {
  registry_ = std::make_unique<VariableRegistry>(session_.options.variables, std::move(shards));
  synced_ = registry_->layout();
  synced_version_ = synced_->version;
}

void ShardTables::resume(const Layout& found) {
  registry_ = std::make_unique<VariableRegistry>(session_.options.variables, found);
  synced_ = registry_->layout();
  synced_version_ = synced_->version;
}

void ShardTables::sync() {
  if (lock_.held() || !members_.all_ps_ready()) return;
  session_.tasks.spawn("send the layout", sync_all());
}

rpc::Task<void> ShardTables::reach_newest() {
  const std::uint64_t newest = registry_->version();
  sync_failure_ = nullptr;
  while (!have(newest)) {
    for (const auto& ps : members_.ps)
      if (!ps->ready && ps->lost_for_good)
        throw UnavailableError(str("variables wait to be made on ", ps->name, ": ", ps->trouble),
                               ps->name);
    sync();
    co_await session_.changed.wait();
    if (sync_failure_) std::rethrow_exception(sync_failure_);
  }
}

// A layout that differs from the synced one only in its processes makes no table: it can be gone by
// at once. One with newer tables has them on this ps alone.
void ShardTables::attached(std::shared_ptr<const Layout> layout) {
  if (!same_tables(*synced_, *layout)) {
    resync_ = true;
    return;
  }
  synced_ = layout;
  synced_version_ = layout->version;
}

// Shards go by their own epoch alone. A layout that has newer tables, too, waits for the sync that
// makes them.
void ShardTables::backups_changed(std::shared_ptr<const Layout> layout) {
  if (layout->version <= synced_version_ || !same_tables(*synced_, *layout)) return;
  synced_ = layout;
  synced_version_ = layout->version;
}

std::vector<ProgramVariable> ShardTables::made_since(const Layout& layout) const {
  auto made = variables_of(layout);
  made.erase(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(synced_->variables.size()));
  return made;
}

// Variables that were made since the last sync: all fit what was restored, or none is made. What is
// not there begins anew.
rpc::Task<void> ShardTables::verify_restorable(std::shared_ptr<const Layout> layout) {
  const auto source = sources_.restored;
  const std::vector<ProgramVariable> made = made_since(*layout);
  if (!source || made.empty()) co_return;
  const RestorePlan& plan = *source->plan;
  if (plan.unusual(made))
    log_info("made after the restore of ", plan.folder(), ':', plan.lines(made));
  if (!source->partial) {
    plan.verify(made);
    std::string missing;
    for (const ProgramVariable& variable : made)
      if (const std::string& name = variable.spec->name; !plan.has(name) && !plan.leaves_out(name))
        missing += str(missing.empty() ? "" : ", ", '"', name, '"');
    if (!missing.empty())
      log_warning("not in the checkpoint ", source->folder, ", at their initial values: ", missing);
  }
  co_await verify_ids(source, made);
}

rpc::Task<void> ShardTables::verify_ids(std::shared_ptr<const CheckpointView> source,
                                        std::vector<ProgramVariable> made) {
  const std::shared_ptr<storage::RowStore> store = session_.parts.rows;
  if (store == nullptr) co_return;
  std::vector<storage::WantedIds> all;
  for (const ProgramVariable& variable : made)
    if (const VariableSpec& spec = *variable.spec; source->plan->may_not_fit(spec))
      if (const auto move = source->move_of(spec); move.has_value())
        all.push_back({move->from, spec.name, spec.rows()});
  if (all.empty()) co_return;
  std::function<void()> verify = [store, source, all, disk = &session_.parts.disk] {
    for (const storage::WantedIds& wanted : all) {
      const auto databases = needed_databases(*source, wanted.saved);
      for (const auto& database : databases)
        verify_seen(database, source->folder, *disk, wanted.variable);
      storage::verify_ids(*store, source->folder, names_of(databases), wanted);
    }
  };
  co_await rpc::on_offload(session_.parts.reactor, session_.parts.offload, 0, std::move(verify));
}

rpc::Task<void> ShardTables::sync_all() {
  std::exception_ptr error;
  sync_failure_ = nullptr;
  {
    const TableLock::Hold hold(lock_);
    // A shard cannot be restored while its mark is saved.
    while (sources_.restored && sources_.writing) co_await session_.changed.wait();
    auto layout = registry_->layout();
    // Tables of variables that were there before are sent again only from the first one that
    // changed (got slots).
    VariableId first = 0;
    while (first < synced_->variables.size() &&
           synced_->variables[first].rule == layout->variables[first].rule)
      ++first;
    try {
      co_await verify_restorable(layout);
      for (auto& ps : members_.ps) {
        // One that is connected again and not attached yet has to be attached first: it may be
        // another process.
        if (!ps->ready) throw UnavailableError(str(ps->name, " is away"), ps->name);
        co_await configure(ps.get(), layout, first);
        co_await restore_new(ps.get(), layout);
        for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
        follow_restore(ps.get());
      }
      synced_ = layout;
      synced_version_ = layout->version;
      backups_changed(registry_->layout());
      resync_ = false;
    } catch (...) {
      error = std::current_exception();
      // If a ps was lost, PsGroup sees it, and pumps when it is mended.
      if (error_parts(error).code != Code::kUnavailable) sync_failure_ = error;
    }
  }
  if (!error)
    pump_();
  else if (sync_failure_)
    session_.queue.fail_all(error);
}

rpc::Task<void> ShardTables::configure(Ps* ps, std::shared_ptr<const Layout> layout,
                                       VariableId first) {
  co_await keep_layout();
  auto last = static_cast<VariableId>(layout->variables.size());
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " is away"), ps->name);
  for (const PlacedShard& shard : ps->placed)
    for (const ShardPlace& place : shard.places) {
      if (!place.follows || place.client == nullptr) continue;
      // Without the tables it refuses the first change of them, and is a backup no more.
      try {
        co_await place.client->configure(session_.number, layout, first, last);
      } catch (const Error& error) {
        log_warning(place.host->name, ": a backup of shard ", shard.number,
                    " has not taken the newest tables: ", error.what());
      }
    }
  for (std::size_t s = 0; s < ps->shards.size(); ++s) {
    co_await ps->shards[s]->configure(session_.number, layout, first, last);
    if (!ps->shards.empty()) ps->placed[s].at().host->served = ps->placed[s].at().host->process;
  }
  // The loop ends early, and without an error, if the ps was lost during the last wait.
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
}

// One at a time, so that no older layout is kept after a newer one.
rpc::Task<std::shared_ptr<const Layout>> ShardTables::keep_layout() {
  while (keeping_) co_await session_.changed.wait();
  keeping_ = true;
  const auto kept = kj::defer([this] {
    keeping_ = false;
    session_.changed.notify_all();
  });
  const auto layout = registry_->layout();
  co_await config_.keep_shards(layout);
  if (recorder_.on()) co_await recorder_.keep_layout(layout);
  for (const auto& ps : members_.ps) ps->in_sync = 0;
  for (const ShardLayout& shard : layout->shards)
    members_.ps.at(shard.home)->in_sync += shard.backups.size();
  co_return layout;
}

// The rows that the shard gets are not those that its backups have. They leave the layout before,
// so that none of them takes over, and what the primary has told of them counts no more.
rpc::Task<void> ShardTables::forget_backups(ShardId shard) {
  const auto before = registry_->layout();
  Ps& ps = *members_.ps.at(before->shards[shard].home);
  for (ShardPlace& place : ps.placed.at(shard - ps.first_shard).places) place.follows = false;
  if (before->shards[shard].backups.empty()) co_return;
  registry_->set_backups(shard, {});
  backups_changed(co_await keep_layout());
}

// The variables from `first` on that have a part on the shard.
std::vector<VariableId> ShardTables::variables_on(const Layout& layout, ShardId shard,
                                                  VariableId first) {
  std::vector<VariableId> here;
  for (VariableId id = first; id < layout.variables.size(); ++id)
    for (const Part& part : layout.variables[id].parts)
      if (part.shard == shard && (here.empty() || here.back() != id)) here.push_back(id);
  return here;
}

rpc::Task<void> ShardTables::verify_databases(
    Ps* ps, std::shared_ptr<const Layout> layout, VariableId first,
    std::vector<std::shared_ptr<CheckpointView>> sources) {
  // each with its checkpoint
  std::map<std::string, std::pair<storage::DatabaseInfo, std::string>> needed;
  for (std::size_t s = 0; s < ps->shards.size(); ++s) {
    const ShardId number = ps->shards[s]->shard();
    std::vector<VariableId> here = variables_on(*layout, number, first);
    for (const auto& source : sources) {
      if (!source) continue;
      const auto others = std::partition(here.begin(), here.end(), [&](VariableId id) {
        return !source->move_of(*layout->variables[id].spec).has_value();
      });
      const std::vector<VariableId> wanted(others, here.end());
      here.erase(others, here.end());
      for (const auto& database : needed_databases(*source, *layout, number, wanted))
        if (storage::is_local(database.name))
          needed.try_emplace(database.name, database, source->folder);
    }
  }
  if (needed.empty()) co_return;
  std::vector<std::string> names;
  for (const auto& [name, database] : needed) names.push_back(name);
  const std::vector<std::string> troubles = co_await ps->shards[0]->find_databases(names);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const auto& [database, checkpoint] = needed.at(names[i]); !troubles[i].empty())
      refuse_not_there(*ps, database, checkpoint, troubles[i]);
}

}  // namespace cairn
