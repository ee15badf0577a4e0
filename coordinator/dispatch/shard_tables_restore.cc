// Rows of checkpoints come into the tables of shards.

#include <utility>

#include "coordinator/dispatch/needed_databases.h"
#include "coordinator/dispatch/shard_tables.h"
#include "core/base/log.h"
#include "rpc/loop/task_group.h"

namespace cairn {
namespace {

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
    co_await forget_backups(number);
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
// with rows, and with closures that it takes for applied, of which the sources know nothing. The
// same process needs rows only where a restore was cut short: its rows are of before that.
rpc::Task<void> ShardTables::rebuild(Ps* ps, std::shared_ptr<const Layout> layout,
                                     std::shared_ptr<CheckpointView> newest) {
  ps->coming.begin({});
  std::vector<std::shared_ptr<CheckpointView>> sources{newest, sources_.restored};
  const std::vector<std::shared_ptr<CheckpointView>> of_new_variables{sources_.restored};
  co_await verify_databases(ps, layout, 0, sources);
  std::vector<kj::Promise<void>> shards;
  const auto made = static_cast<VariableId>(synced_->variables.size());
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    shards.push_back((ps->placed[s].needs_rows
                          ? rebuild_shard(ps, s, layout, sources)
                          : restore_from(ps, s, layout, made, of_new_variables, Rest::kAsItIs))
                         .start());
  co_await rpc::all_ended(std::move(shards));
}

rpc::Task<void> ShardTables::rebuild_shard(Ps* ps, std::size_t shard,
                                           std::shared_ptr<const Layout> layout,
                                           std::vector<std::shared_ptr<CheckpointView>> sources) {
  const PlacedShard& placed = ps->placed[shard];
  const bool anew = placed.served != placed.at().host->process;
  if (anew) co_await ps->shards[shard]->begin_anew();
  co_await restore_from(ps, shard, layout, 0, sources, anew ? Rest::kAsItIs : Rest::kBeginsAnew);
}

rpc::Task<void> ShardTables::restore_shard(Ps* ps, std::size_t shard,
                                           std::shared_ptr<CheckpointView> source,
                                           std::vector<std::string> databases,
                                           std::vector<VariableId> wanted,
                                           std::map<std::string, RowMove> moves) {
  const ShardId number = ps->shards[shard]->shard();
  co_await forget_backups(number);
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
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
