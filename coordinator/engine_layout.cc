// The layout's way to the shards: new variables become tables, restored ones get their rows.

#include <algorithm>

#include "coordinator/checkpoint_view.h"
#include "coordinator/engine.h"
#include "core/base/log.h"

namespace cairn {

void Engine::sync_layout() {
  if (layout_busy_ || !all_ps_ready()) return;  // whoever is busy pumps again
  tasks_.spawn("send the layout", sync_layout_task());
}

namespace {
bool same_tables(const Layout& a, const Layout& b) {
  return a.variables.size() == b.variables.size() &&
         std::equal(a.variables.begin(), a.variables.end(), b.variables.begin(),
                    [](const auto& x, const auto& y) { return x.rule == y.rule; });
}
}  // namespace

// One ps has the layout. Lanes go by it once all have, and the others have all but tables that are
// newer than the last sync.
void Engine::synced(std::shared_ptr<const Layout> layout) {
  if (!same_tables(*synced_, *layout)) {
    resync_ = true;
    return;
  }
  synced_ = layout;
  synced_version_ = layout->version;
}

// Variables that were made since the last sync: all fit what was restored, or none is made. What is
// not there begins anew.
void Engine::verify_restorable(const Layout& layout) const {
  if (!restored_ || restored_->partial) return;
  auto made = variables_of(layout);
  made.erase(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(synced_->variables.size()));
  verify_types(made, restored_->variables, restored_->folder);
  std::string missing;
  for (const ProgramVariable& variable : made)
    if (!restored_->variables.contains(variable.spec->name))
      missing += str(missing.empty() ? "" : ", ", '"', variable.spec->name, '"');
  if (!missing.empty())
    log_warning("not in the checkpoint ", restored_->folder,
                ", at their initial values: ", missing);
}

rpc::Task<void> Engine::sync_layout_task() {
  std::exception_ptr error;
  {
    const Busy busy(*this);
    // A shard cannot be restored while its mark is saved.
    while (restored_ && writing_) co_await changed_.wait();
    auto layout = registry_->layout();
    // Tables of variables that were there before are sent again only from the first one that
    // changed (got slots).
    VariableId first = 0;
    while (first < synced_->variables.size() &&
           synced_->variables[first].rule == layout->variables[first].rule)
      ++first;
    try {
      verify_restorable(*layout);
      for (auto& ps : ps_) {
        // One that is connected again and not attached yet has to be attached first: it may be
        // another process.
        if (!ps->ready) throw UnavailableError(str(ps->name, " is away"), ps->name);
        co_await configure_shards(ps.get(), layout, first);
        co_await restore_new_variables(ps.get(), layout);
        for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
      }
      synced_ = layout;
      synced_version_ = layout->version;
      resync_ = false;
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (!error)
    pump();
  else if (error_parts(error).code != Code::kUnavailable)
    queue_->fail_all(error);  // else: ps_loop sees the loss, and pumps when it is mended
}

rpc::Task<void> Engine::configure_shards(Ps* ps, std::shared_ptr<const Layout> layout,
                                         VariableId first) {
  auto last = static_cast<VariableId>(layout->variables.size());
  if (!ps->control || ps->shards.empty())
    throw UnavailableError(str(ps->name, " is away"), ps->name);
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    co_await ps->shards[s]->configure(session_, layout, first, last);
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
}

// Each variable from `first` on, from the first of the sources that holds it; the others are left
// alone. Closes the shards: nobody shall see half a model.
rpc::Task<void> Engine::restore_shards(Ps* ps, std::shared_ptr<const Layout> layout,
                                       VariableId first,
                                       std::vector<std::shared_ptr<CheckpointView>> sources) {
  for (std::size_t s = 0; s < ps->shards.size(); ++s) {
    std::vector<bool> done(layout->variables.size());
    for (const auto& source : sources) {
      if (!source) continue;
      std::vector<VariableId> wanted;
      for (VariableId id = first; id < layout->variables.size(); ++id) {
        const VariableLayout& variable = layout->variables[id];
        bool here =
            std::any_of(variable.parts.begin(), variable.parts.end(),
                        [&](const Part& part) { return part.shard == ps->shards[s]->shard(); });
        if (!here || done[id] || !source->holds(*variable.spec)) continue;
        done[id] = true;
        wanted.push_back(id);
      }
      if (wanted.empty()) continue;  // a shard takes an empty list for all of its tables
      co_await restore_shard(ps->shards[s].get(), source, wanted);
      if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
    }
  }
}

// Variables that no lane knows of yet. What only got slots keeps its rows.
rpc::Task<void> Engine::restore_new_variables(Ps* ps, std::shared_ptr<const Layout> layout) {
  std::vector<std::shared_ptr<CheckpointView>> sources{restored_};
  co_await restore_shards(ps, layout, static_cast<VariableId>(synced_->variables.size()), sources);
}

// A new process from the very beginning: an earlier attempt that came to nothing may have left it
// with rows, and with closures that it takes for applied, of which the sources know nothing.
rpc::Task<void> Engine::rebuild_shards(Ps* ps, std::shared_ptr<const Layout> layout,
                                       std::shared_ptr<CheckpointView> newest) {
  if (ps->served != ps->incarnation)
    for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->begin_anew();
  std::vector<std::shared_ptr<CheckpointView>> sources{newest, restored_};
  co_await restore_shards(ps, layout, 0, sources);
}

rpc::Task<void> Engine::restore_shard(ShardClient* shard, std::shared_ptr<CheckpointView> source,
                                      std::vector<VariableId> wanted) {
  const ShardId number = shard->shard();
  AppliedClosures applied = source->session == session_ ? source->applied : AppliedClosures{};
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
