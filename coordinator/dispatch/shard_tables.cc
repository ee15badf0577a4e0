#include "coordinator/dispatch/shard_tables.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "rpc/loop/task_group.h"

namespace cairn {
namespace {
bool same_tables(const Layout& a, const Layout& b) {
  return a.variables.size() == b.variables.size() &&
         std::equal(a.variables.begin(), a.variables.end(), b.variables.begin(),
                    [](const auto& x, const auto& y) { return x.rule == y.rule; });
}
}  // namespace

void ShardTables::begin(std::vector<ShardServer> servers) {
  registry_ = std::make_unique<VariableRegistry>(session_.options.variables, std::move(servers));
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

// Variables that were made since the last sync: all fit what was restored, or none is made. What is
// not there begins anew.
void ShardTables::verify_restorable(const Layout& layout) const {
  if (!sources_.restored || sources_.restored->partial) return;
  auto made = variables_of(layout);
  made.erase(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(synced_->variables.size()));
  verify_types(made, sources_.restored->variables, sources_.restored->folder);
  std::string missing;
  for (const ProgramVariable& variable : made)
    if (!sources_.restored->variables.contains(variable.spec->name))
      missing += str(missing.empty() ? "" : ", ", '"', variable.spec->name, '"');
  if (!missing.empty())
    log_warning("not in the checkpoint ", sources_.restored->folder,
                ", at their initial values: ", missing);
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
      verify_restorable(*layout);
      for (auto& ps : members_.ps) {
        // One that is connected again and not attached yet has to be attached first: it may be
        // another process.
        if (!ps->ready) throw UnavailableError(str(ps->name, " is away"), ps->name);
        co_await configure(ps.get(), layout, first);
        co_await restore_new(ps.get(), layout);
        for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
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
  auto last = static_cast<VariableId>(layout->variables.size());
  if (!ps->control || ps->shards.empty())
    throw UnavailableError(str(ps->name, " is away"), ps->name);
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    co_await ps->shards[s]->configure(session_.number, layout, first, last);
  // The loop ends early, and without an error, if the ps was lost during the last wait.
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
}

// ps->shards is looked at afresh after each wait: it is empty once the ps is lost.
// All shards at once: each reads the disk and places rows by itself.
rpc::Task<void> ShardTables::restore(Ps* ps, std::shared_ptr<const Layout> layout, VariableId first,
                                     std::vector<std::shared_ptr<CheckpointView>> sources) {
  std::vector<kj::Promise<void>> shards;
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    shards.push_back(restore_from(ps, s, layout, first, sources).start());
  co_await rpc::all_ended(std::move(shards));
}

rpc::Task<void> ShardTables::restore_from(Ps* ps, std::size_t shard,
                                          std::shared_ptr<const Layout> layout, VariableId first,
                                          std::vector<std::shared_ptr<CheckpointView>> sources) {
  // Sources are asked in their order, and the first that holds a variable gives it its rows.
  std::vector<bool> done(layout->variables.size());
  for (const auto& source : sources) {
    if (!source) continue;
    if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
    ShardClient* const client = ps->shards[shard].get();
    std::vector<VariableId> wanted;
    for (VariableId id = first; id < layout->variables.size(); ++id) {
      const VariableLayout& variable = layout->variables[id];
      bool here = std::any_of(variable.parts.begin(), variable.parts.end(),
                              [&](const Part& part) { return part.shard == client->shard(); });
      if (!here || done[id] || !source->holds(*variable.spec)) continue;
      done[id] = true;
      wanted.push_back(id);
    }
    // A shard takes an empty list for all of its tables.
    if (!wanted.empty()) co_await restore_shard(client, source, wanted);
  }
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
}

rpc::Task<void> ShardTables::restore_new(Ps* ps, std::shared_ptr<const Layout> layout) {
  std::vector<std::shared_ptr<CheckpointView>> sources{sources_.restored};
  co_await restore(ps, layout, static_cast<VariableId>(synced_->variables.size()), sources);
}

// A new process from the very beginning: an earlier attempt that came to nothing may have left it
// with rows, and with closures that it takes for applied, of which the sources know nothing.
rpc::Task<void> ShardTables::rebuild(Ps* ps, std::shared_ptr<const Layout> layout,
                                     std::shared_ptr<CheckpointView> newest) {
  if (ps->served != ps->process)
    for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->begin_anew();
  std::vector<std::shared_ptr<CheckpointView>> sources{newest, sources_.restored};
  co_await restore(ps, layout, 0, sources);
}

rpc::Task<void> ShardTables::restore_shard(ShardClient* shard,
                                           std::shared_ptr<CheckpointView> source,
                                           std::vector<VariableId> wanted) {
  const ShardId number = shard->shard();
  AppliedClosures applied =
      source->session == session_.number ? source->applied : AppliedClosures{};
  std::uint64_t rows = 0;
  try {
    rows = co_await shard->restore(source->folder, source->databases, applied, wanted);
  } catch (const Error& error) {
    const bool damaged = error.code() == Code::kDataLoss || error.code() == Code::kNotFound;
    const std::string cure = damaged ? str("; `cairn ckpt verify ", source->folder,
                                           "` tells all that is wrong with it, restore a sound one")
                                     : "";
    throw_error(error.code(),
                str("restoring shard ", number, " from ", source->folder, ": ", error.what(), cure),
                error.task());
  }
  log_info("shard ", number, ": ", rows, " rows of ", wanted.size(), " variables restored from ",
           source->folder);
}

}  // namespace cairn
