#include "serving/model/memory_budget.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"

namespace cairn::serving {
namespace {

std::size_t in_mb(std::size_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

std::shared_ptr<MemoryBudget> MemoryBudget::make(std::size_t limit) {
  if (limit < kProcessBytes + kCacheBytesMin)
    throw InvalidArgumentError(str("a memory limit of ", limit >> 20, " MB is too small: the ",
                                   "process itself takes ", in_mb(kProcessBytes),
                                   " MB, and rows want some, too"));
  return std::shared_ptr<MemoryBudget>(new MemoryBudget(limit));
}

std::unique_ptr<MemoryBudget::Hold> MemoryBudget::hold(std::size_t bytes, TableBytes tables,
                                                       const std::string& what) {
  const std::lock_guard hold(mutex_);
  const std::size_t most = limit_ - kProcessBytes - kCacheBytesMin;
  if (held_ + bytes > most)
    throw ResourceExhaustedError(
        str(what, " needs ", in_mb(bytes), " MB of memory for what is not read from disk, and ",
            "--memory-limit leaves ", (most - std::min(held_, most)) >> 20, " MB: of ",
            limit_ >> 20, " MB other versions hold ", in_mb(held_), " MB and the process itself ",
            in_mb(kProcessBytes + kCacheBytesMin), " MB. Raise the limit to ",
            in_mb(held_ + bytes + kProcessBytes + kCacheBytesMin), " MB or more"));
  held_ += bytes;
  ++holds_[bytes];
  for (const auto& [row_bytes, table_bytes] : tables) {
    Cache& of = caches_[row_bytes];
    if (of.rows == nullptr) of.rows = std::make_shared<RowCache>(row_bytes);
    of.table_bytes += table_bytes;
    ++of.uses;
  }
  auto made = std::make_unique<Hold>(shared_from_this(), bytes, std::move(tables));
  fit_caches();
  return made;
}

void MemoryBudget::end(const Hold& ending) {
  const std::lock_guard hold(mutex_);
  held_ -= ending.bytes_;
  const auto found = holds_.find(ending.bytes_);
  if (--found->second == 0) holds_.erase(found);
  for (const auto& [row_bytes, table_bytes] : ending.tables_) {
    Cache& of = caches_.at(row_bytes);
    of.table_bytes -= table_bytes;
    if (--of.uses == 0) caches_.erase(row_bytes);
  }
  fit_caches();
}

bool MemoryBudget::has_room_for(std::size_t bytes, std::size_t replaced) const {
  const std::lock_guard hold(mutex_);
  const std::size_t others = held_ - std::min(held_, replaced);
  const std::size_t next = holds_.empty() ? bytes : std::max(bytes, holds_.rbegin()->first);
  return others + bytes + next + kCacheBytesMin + kProcessBytes <= limit_;
}

std::shared_ptr<RowCache> MemoryBudget::cache(std::size_t row_bytes) const {
  const std::lock_guard hold(mutex_);
  return caches_.at(row_bytes).rows;
}

std::uint32_t MemoryBudget::next_table() {
  const std::lock_guard hold(mutex_);
  return ++tables_;
}

std::size_t MemoryBudget::all_caches() const {
  std::size_t bytes = 0;
  for (const auto& [row_bytes, each] : caches_) bytes += each.rows->bytes();
  return bytes;
}

std::size_t MemoryBudget::cache_bytes() const {
  const std::lock_guard hold(mutex_);
  return all_caches();
}
std::size_t MemoryBudget::held_bytes() const {
  const std::lock_guard hold(mutex_);
  return held_;
}

// A cache that changes its size is empty afterwards. So one becomes smaller only if the limit, or
// much of another one's share, asks for it, and larger only if that is worth it.
void MemoryBudget::fit_caches() {
  const std::size_t most = limit_ - kProcessBytes - held_;
  const std::size_t successor = holds_.empty() ? 0 : holds_.rbegin()->first;
  const std::size_t wanted = std::max(kCacheBytesMin, most - std::min(most, successor));
  std::size_t tables = 0;
  for (const auto& [row_bytes, each] : caches_) tables += each.table_bytes;
  const auto share = [&](const Cache& of) {
    return static_cast<std::size_t>(static_cast<double>(std::min(wanted, most)) *
                                    static_cast<double>(of.table_bytes) /
                                    static_cast<double>(std::max<std::size_t>(tables, 1)));
  };
  const bool too_much = all_caches() > most;
  std::vector<std::pair<RowCache*, std::size_t>> sizes;  // those that become smaller first
  for (auto& [row_bytes, each] : caches_) {
    const std::size_t has = each.rows->bytes(), due = share(each);
    if (has > due && (too_much || has - due > has / 4))
      sizes.insert(sizes.begin(), {each.rows.get(), due});
    else if (due > has + has / 4)
      sizes.emplace_back(each.rows.get(), due);
  }
  for (const auto& [cache, bytes] : sizes) try {
      cache->resize(bytes);
    } catch (const ResourceExhaustedError& error) {
      log_warning("rows of ", cache->row_bytes(),
                  " bytes are read from disk and not kept: ", error.what());
    }
}

}  // namespace cairn::serving
