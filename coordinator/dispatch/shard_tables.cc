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

[[noreturn]] void rethrow_restoring(const Error& error, ShardId shard, const std::string& folder) {
  const bool damaged = error.code() == Code::kDataLoss || error.code() == Code::kNotFound;
  const std::string cure = damaged ? str("; `cairn ckpt verify ", folder,
                                         "` tells all that is wrong with it, restore a sound one")
                                   : "";
  throw_error(error.code(),
              str("restoring shard ", shard, " from ", folder, ": ", error.what(), cure),
              error.task());
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
  co_await config_.keep_epochs(layout);
  if (recorder_.on()) co_await recorder_.keep_layout(layout);
  auto last = static_cast<VariableId>(layout->variables.size());
  if (!ps->control || ps->shards.empty())
    throw UnavailableError(str(ps->name, " is away"), ps->name);
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    co_await ps->shards[s]->configure(session_.number, layout, first, last);
  // The loop ends early, and without an error, if the ps was lost during the last wait.
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
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

// All shards at once: each reads the disk and places rows by itself. ps->shards is looked at afresh
// after each wait: it is empty once the ps is lost.
rpc::Task<void> ShardTables::restore(Ps* ps, std::shared_ptr<const Layout> layout, VariableId first,
                                     std::vector<std::shared_ptr<CheckpointView>> sources,
                                     Rest rest) {
  std::vector<kj::Promise<void>> shards;
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    shards.push_back(restore_from(ps, s, layout, first, sources, rest).start());
  co_await rpc::all_ended(std::move(shards));
}

rpc::Task<void> ShardTables::restore_from(Ps* ps, std::size_t shard,
                                          std::shared_ptr<const Layout> layout, VariableId first,
                                          std::vector<std::shared_ptr<CheckpointView>> sources,
                                          Rest rest) {
  const ShardId number = ps->shards.at(shard)->shard();
  std::vector<VariableId> here = variables_on(*layout, number, first);
  // Sources are asked in their order, and the first that has rows for a variable gives it them.
  for (const auto& source : sources) {
    if (!source) continue;
    std::vector<VariableId> wanted, others;
    for (const VariableId id : here)
      (source->move_of(*layout->variables[id].spec) ? wanted : others).push_back(id);
    here = std::move(others);
    co_await restore_variables(ps, shard, source, layout, std::move(wanted));
  }
  // A shard takes an empty list for all of its tables.
  if (rest == Rest::kBeginsAnew && !here.empty()) {
    if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
    co_await ps->shards[shard]->begin_anew(std::move(here));
  }
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
}

// Row numbers of many rows fill a message, so that each variable that has some goes by itself.
rpc::Task<void> ShardTables::restore_variables(Ps* ps, std::size_t shard,
                                               std::shared_ptr<CheckpointView> source,
                                               std::shared_ptr<const Layout> layout,
                                               std::vector<VariableId> wanted) {
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
  const std::vector<std::string> databases =
      names_of(needed_databases(*source, *layout, ps->shards[shard]->shard(), wanted));
  for (auto at = wanted.begin(); at != wanted.end();) {
    if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
    std::vector<VariableId> together;
    std::map<std::string, RowMove> moves;
    for (bool alone = false; at != wanted.end() && !alone; ++at) {
      const VariableSpec& spec = *layout->variables[*at].spec;
      const RowMove move = source->move_of(spec).value();
      alone = move.numbers != nullptr;
      if (alone && !together.empty()) break;
      together.push_back(*at);
      if (!source->plan->as_saved(spec)) moves.emplace(spec.name, move);
    }
    co_await restore_shard(ps, shard, source, databases, std::move(together), std::move(moves));
  }
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
}

rpc::Task<void> ShardTables::restore_new(Ps* ps, std::shared_ptr<const Layout> layout) {
  std::vector<std::shared_ptr<CheckpointView>> sources{sources_.restored};
  co_await verify_databases(ps, layout, static_cast<VariableId>(synced_->variables.size()),
                            sources);
  co_await restore(ps, layout, static_cast<VariableId>(synced_->variables.size()), sources);
}

// A new process from the very beginning: an earlier attempt that came to nothing may have left it
// with rows, and with closures that it takes for applied, of which the sources know nothing.
rpc::Task<void> ShardTables::rebuild(Ps* ps, std::shared_ptr<const Layout> layout,
                                     std::shared_ptr<CheckpointView> newest) {
  const bool anew = ps->served != ps->process;
  ps->coming.begin({});
  std::vector<std::shared_ptr<CheckpointView>> sources{newest, sources_.restored};
  co_await verify_databases(ps, layout, 0, sources);
  if (anew)
    for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->begin_anew();
  // The same process needs rows only where a restore was cut short: its rows are of before that.
  co_await restore(ps, layout, 0, sources, anew ? Rest::kAsItIs : Rest::kBeginsAnew);
}

rpc::Task<void> ShardTables::restore_shard(Ps* ps, std::size_t shard,
                                           std::shared_ptr<CheckpointView> source,
                                           std::vector<std::string> databases,
                                           std::vector<VariableId> wanted,
                                           std::map<std::string, RowMove> moves) {
  const ShardId number = ps->shards[shard]->shard();
  AppliedClosures applied =
      source->session == session_.number ? source->applied : AppliedClosures{};
  const bool on_demand = source->on_demand || session_.options.recovery.on_demand;
  ShardRestored restored;
  try {
    restored = co_await ps->shards[shard]->restore(source->folder, std::move(databases), applied,
                                                   wanted, std::move(moves), on_demand);
  } catch (const Error& error) {
    rethrow_restoring(error, number, source->folder);
  }
  if (restored.later) ps->coming.begin(source->folder);
  if (restored.later)
    log_info("shard ", number, ": rows of ", wanted.size(), " variables come on demand from ",
             source->folder);
  else
    log_info("shard ", number, ": ", restored.rows, " rows of ", wanted.size(),
             " variables restored from ", source->folder);
}

// ---- rows that come on demand ----

void ShardTables::follow_restore(Ps* ps) {
  if (!ps->coming.from.empty() && ps->coming.error == nullptr)
    session_.tasks.spawn("wait for rows that are restored on demand", await_restore(ps));
}

// The loss of the ps ends this, and whoever attaches it again follows anew.
rpc::Task<void> ShardTables::await_restore(Ps* ps) {
  const Ps::Coming awaited = ps->coming;
  std::exception_ptr error;
  try {
    for (std::size_t s = 0; s < ps->shards.size(); ++s) {
      const ShardId number = ps->shards[s]->shard();
      try {
        co_await ps->shards[s]->await_restore();
      } catch (const Error& failure) {
        rethrow_restoring(failure, number, awaited.from);
      }
    }
  } catch (const UnavailableError&) {
    co_return;
  } catch (...) {
    error = std::current_exception();
  }
  if (ps->shards.empty() || ps->coming.number != awaited.number) co_return;
  if (error == nullptr) {
    ps->coming.begin({});
    log_info(ps->name, ": all rows are restored from ", awaited.from);
  } else {
    ps->coming.error = error;
    session_.queue.fail_all(error);
  }
  session_.changed.notify_all();
}

}  // namespace cairn
