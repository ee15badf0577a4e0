#include "tools/ckpt/opened_checkpoint.h"

#include <utility>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "core/tensor/element.h"
#include "storage/any_disk.h"
#include "tools/ckpt/support.h"

namespace cairn::tools::ckpt {

OpenedCheckpoint::OpenedCheckpoint(std::string path, const storage::DatabaseFolders& folders)
    : path_(std::move(path)), manifest_(storage::read_manifest(storage::any_disk(), path_)) {
  folders.apply(manifest_);
  storage::verify_here(storage::any_disk(), path_, manifest_);
  const auto store = storage::make_rocks_row_store();
  reading(path_, [&] {
    for (const auto& database : manifest_.databases) {
      storage::verify_database_name(database.name);
      databases_.push_back(store->open(storage::place_of(path_, database.name)));
    }
  });
}

std::uint64_t OpenedCheckpoint::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& database : manifest_.databases) bytes += database.bytes;
  return bytes;
}

const storage::VariableInfo& OpenedCheckpoint::variable(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& variable : manifest_.variables) {
    if (variable.name == name) return variable;
    names.push_back(variable.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw InvalidArgumentError(str("the checkpoint ", path_, " has no variable \"", name, "\"",
                                 nearest.empty() ? "" : str("; did you mean \"", nearest, "\"?"),
                                 nearest.empty() ? ": `cairn ckpt show` lists them" : ""));
}

storage::MergedRows OpenedCheckpoint::rows(const storage::VariableInfo& variable) const {
  return rows(variable, {0, storage::row_count(variable)});
}

storage::MergedRows OpenedCheckpoint::rows(const storage::VariableInfo& variable,
                                           RowRange range) const {
  std::vector<storage::DatabaseReader*> readers;
  for (const auto& database : databases_) readers.push_back(database.get());
  return reading(path_, [&] { return storage::MergedRows(readers, variable, range); });
}

RowsAhead::RowsAhead(std::string path, storage::MergedRows rows)
    : path_(std::move(path)),
      rows_(std::move(rows)),
      form_(rows_.form()),
      updates_(rows_.updates()),
      seen_(rows_.seen()),
      thread_([this] { read(); }) {}

RowsAhead::~RowsAhead() {
  {
    const std::lock_guard hold(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RowsAhead::read() {
  for (;;) {
    storage::RowBatch batch;
    {
      std::unique_lock hold(mutex_);
      changed_.wait(hold, [this] { return stopped_ || !free_.empty(); });
      if (stopped_) return;
      batch = std::move(free_.back());
      free_.pop_back();
    }
    std::exception_ptr error;
    bool more = false;
    try {
      more = reading(path_, [&] { return rows_.next(batch); });
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard hold(mutex_);
    if (more) ready_.push_back(std::move(batch));
    ended_ = !more;
    error_ = error;
    changed_.notify_all();
    if (ended_) return;
  }
}

bool RowsAhead::next(storage::RowBatch& batch) {
  std::unique_lock hold(mutex_);
  changed_.wait(hold, [this] { return ended_ || !ready_.empty(); });
  if (ready_.empty()) {
    batch.clear();
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
    return false;
  }
  free_.push_back(std::exchange(batch, std::move(ready_.front())));
  ready_.erase(ready_.begin());
  changed_.notify_all();
  return true;
}

}  // namespace cairn::tools::ckpt
