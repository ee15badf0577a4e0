// Making a chain of deltas full, beside the training.
#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/checkpoint/checkpointer.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "storage/consolidation.h"
#include "storage/manifest.h"

namespace cairn {

void Checkpointer::verify_chain(const CheckpointPolicy& policy, const Disk& disk) {
  const std::size_t after = policy.consolidate_after;
  if (after == 0) return;
  const std::string given = str("consolidate_after is ", after);
  if (policy.full_every <= after)
    throw InvalidArgumentError(str(given, " and full_every ", policy.full_every,
                                   ": no chain becomes so long; raise full_every above it"));
  if (policy.encoding.rows == storage::RowForm::kInt8 ||
      policy.encoding.slots == storage::SlotForm::kDropped)
    throw InvalidArgumentError(str(given,
                                   ", and int8 rows would lose by being written again, as "
                                   "slots are lost that were dropped: leave it out"));
  if (!disk.has_links(policy.folder))
    throw InvalidArgumentError(str(given, ", and ", policy.folder,
                                   " is in a bucket, whose deltas only the ps can make full: leave "
                                   "it out, and let full_every say how long a chain becomes"));
}

// Only one consolidation runs at a time. If another is due meanwhile, a later save begins it.
void Checkpointer::consolidate_if_due(const CheckpointPolicy& policy) {
  const std::size_t bound = policy.consolidate_after;
  if (bound == 0 || consolidating_ || base_.deltas < bound || !session_.parts.rows) return;
  consolidating_ = true;
  session_.tasks.spawn("a consolidation", consolidate(base_.path, base_.deltas));
}

// Training is worth more than this, so no error leaves it. A chain that cannot be read is not gone
// on with: the next checkpoint then has all rows from the ps.
rpc::Task<void> Checkpointer::consolidate(std::string path, std::size_t deltas) {
  std::string trouble;
  bool damaged = false;
  try {
    auto work = std::make_shared<std::shared_ptr<storage::Consolidation>>();
    std::function<void()> begin = [work, path, disk = &session_.parts.disk,
                                   rows = session_.parts.rows] {
      *work = std::make_shared<storage::Consolidation>(*disk, rows, path);
    };
    co_await on_disk_thread(begin);
    auto more = std::make_shared<bool>(true);
    std::function<void()> piece = [work, more] { *more = (*work)->step(); };
    while (*more) co_await on_disk_thread(piece);
    co_await put_in_place(*work, deltas);
    std::function<void()> end = [work] { work->reset(); };
    co_await on_disk_thread(end);
  } catch (const Error& error) {
    trouble = error.what();
    damaged = error.code() == Code::kDataLoss || error.code() == Code::kNotFound;
  }
  consolidating_ = false;
  if (trouble.empty()) co_return;
  if (damaged) base_ = {};
  log_warning("the deltas up to ", path, " were not made a full checkpoint: ", trouble,
              damaged ? ". The next checkpoint has all rows" : "");
}

// The newest checkpoint holds the new databases. It cannot while it is a base that is linked, or is
// about to be removed.
rpc::Task<void> Checkpointer::put_in_place(std::shared_ptr<storage::Consolidation> work,
                                           std::size_t deltas) {
  while (busy_) co_await session_.changed.wait();
  if (base_.mark == 0) co_return;  // a restore, or a full one in another form
  busy_ = true;
  auto manifest = std::make_shared<std::optional<storage::Manifest>>();
  std::exception_ptr error;
  try {
    std::function<void()> put = [work, manifest, path = base_.path] {
      *manifest = work->put_into(path);
    };
    co_await on_disk_thread(put);
  } catch (...) {
    error = std::current_exception();
  }
  if (manifest->has_value()) {
    base_.deltas -= std::min(deltas, base_.deltas);
    auto view = std::make_shared<CheckpointView>(*sources_.newest);
    view->databases = (*manifest)->databases;
    sources_.newest = view;
    log_info("checkpoint ", base_.path, base_.deltas == 0 ? " is a full one now" : " has all rows ",
             base_.deltas == 0 ? "" : str("up to ", base_.deltas, " deltas before it"), ": ",
             deltas, " deltas were made one, beside the training");
  }
  busy_ = false;
  session_.changed.notify_all();
  if (error) std::rethrow_exception(error);
}

}  // namespace cairn
