// Checkpoints whose rows lie in a local folder of each ps.
#include <map>
#include <utility>

#include "coordinator/checkpoint/checkpointer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "rpc/loop/task_group.h"
#include "storage/any_disk.h"

namespace cairn {

void Checkpointer::verify_local_folder(const CheckpointPolicy& policy) const {
  if (policy.local_folder.empty()) return;
  const std::string given = str("local_folder is \"", policy.local_folder, "\"");
  if (!policy.local_folder.starts_with('/') || policy.local_folder.ends_with('/') ||
      storage::absolute_place(policy.local_folder) != policy.local_folder)
    throw InvalidArgumentError(
        str(given, ": give an absolute path, as /data/cairn, which every ps has on its machine"));
  if (!session_.parts.disk.has_links(policy.folder))
    throw InvalidArgumentError(str(given, ", and ", policy.folder,
                                   " is in a bucket, which all ps reach: let it have the rows too, "
                                   "and leave the local folder out"));
  if (policy.consolidate_after > 0)
    throw InvalidArgumentError(str(given, " and consolidate_after ", policy.consolidate_after,
                                   ": the coordinator makes chains full of what it has on its "
                                   "disk, and the rows are on those of the ps; leave it out"));
  if (session_.options.recovery.replicas > 1)
    throw InvalidArgumentError(
        str(given, " and replicas ", session_.options.recovery.replicas,
            ": rows may be answered for on another machine than the one that "
            "wrote them; leave the local folder out"));
  if (!policy.lasting)
    throw InvalidArgumentError(str(given,
                                   ": a checkpoint that is not to last is read by its caller at "
                                   "once, who may not see the folders of the ps; leave it out"));
}

// Noted before a ps writes anything.
rpc::Task<void> Checkpointer::choose_local_rows(std::shared_ptr<Cut> cut, CheckpointPolicy policy) {
  for (const auto& ps : members_.ps)
    cut->local_rows.push_back(
        local_rows_of_ps(policy.local_folder, ps->index, ps->name, session_.number, cut->mark));
  std::function<void()> note = [disk = &session_.parts.disk, folder = policy.folder, cut] {
    note_local_rows(*disk, folder, cut->local_rows);
  };
  co_await on_disk_thread(note);
}

// Rows that stay since a ps is away, or fails, are removed at a later save. No save fails for it.
rpc::Task<void> Checkpointer::remove_local_rows(std::string folder) {
  try {
    auto gone = std::make_shared<std::vector<LocalRows>>();
    std::function<void()> find = [disk = &session_.parts.disk, folder, gone] {
      *gone = unnamed_local_rows(*disk, folder);
    };
    co_await on_disk_thread(find);
    if (gone->empty()) co_return;
    std::map<std::string, std::vector<std::string>> paths;  // by whose they are
    for (const LocalRows& rows : *gone) paths[rows.task].push_back(rows.path);
    auto all = std::make_shared<bool>(true);
    std::vector<kj::Promise<void>> removals;
    for (const auto& ps : members_.ps)
      if (auto own = paths.extract(ps->name); !own.empty())
        removals.push_back(remove_rows_on(ps.get(), std::move(own.mapped()), all).start());
    co_await rpc::all_ended(std::move(removals));
    // A folder of a task that is no more may be on any machine, and several ps on one.
    for (const auto& [task, others] : paths)
      for (const auto& ps : members_.ps) co_await remove_rows_on(ps.get(), others, all);
    if (!*all) co_return;
    std::function<void()> forget = [disk = &session_.parts.disk, folder, gone] {
      forget_local_rows(*disk, folder, *gone);
    };
    co_await on_disk_thread(forget);
  } catch (const Error& error) {
    log_warning("rows of removed checkpoints stay in the local folders of the ps: ", error.what());
  }
}

rpc::Task<void> Checkpointer::remove_rows_on(Ps* ps, std::vector<std::string> paths,
                                             std::shared_ptr<bool> all) {
  if (!ps->ready || ps->shards.empty()) {
    *all = false;
    co_return;
  }
  try {
    co_await ps->shards[0]->remove_rows(std::move(paths));
  } catch (const Error& error) {
    *all = false;
    log_warning(ps->name, " could not remove rows of earlier checkpoints: ", error.what());
  }
}

}  // namespace cairn
