// MemoryBudget: the memory of a server's models, under one limit: what versions hold in memory,
// and the caches for rows of the tables that they read from disk.
//
//   The limit is one of the whole process: some of it is kept for what the budget does not count,
//   such as graphs and requests. Of the rest versions hold what they need, as much is left free as
//   the largest of them holds, so that its successor finds room beside it, and the caches have all
//   else. A cache that has to become smaller begins anew.
//   Thread  any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "serving/model/row_cache.h"

namespace cairn::serving {

class MemoryBudget : public std::enable_shared_from_this<MemoryBudget> {
 public:
  // Kept for the process itself, its graphs and its requests.
  static constexpr std::size_t kProcessBytes = std::size_t{48} << 20;
  // The least that caches have together.
  static constexpr std::size_t kCacheBytesMin = std::size_t{1} << 20;

  //   Errors  InvalidArgument: it is less than what is kept for the process and the caches.
  static std::shared_ptr<MemoryBudget> make(std::size_t limit);

  // Bytes of tables that are read from disk, by the size of their rows.
  using TableBytes = std::map<std::size_t, std::size_t>;

  // A version's part; it ends with the object, which outlives the version's tables.
  class Hold {
   public:
    Hold(std::shared_ptr<MemoryBudget> of, std::size_t bytes, TableBytes tables)
        : of_(std::move(of)), bytes_(bytes), tables_(std::move(tables)) {}
    ~Hold() { of_->end(*this); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    std::size_t bytes() const { return bytes_; }
    // The cache for rows of this size, of which the version has tables.
    std::shared_ptr<RowCache> cache(std::size_t row_bytes) const { return of_->cache(row_bytes); }
    // A number that no other table has had.
    std::uint32_t next_table() const { return of_->next_table(); }

   private:
    friend class MemoryBudget;
    std::shared_ptr<MemoryBudget> of_;
    std::size_t bytes_;
    TableBytes tables_;
  };
  // `bytes`: of what the version holds in memory. `what` names the version in messages. Caches of
  // several sizes share the memory as the bytes of their tables do.
  //   Errors  ResourceExhausted: the limit does not leave so much.
  std::unique_ptr<Hold> hold(std::size_t bytes, TableBytes tables, const std::string& what);
  // Whether a version that holds so much would leave room for its successor. `replaced`: the bytes
  // that the version before it holds, which will be free by then.
  bool has_room_for(std::size_t bytes, std::size_t replaced) const;

  std::size_t limit() const { return limit_; }
  std::size_t cache_bytes() const;
  std::size_t held_bytes() const;  // by versions

 private:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}
  struct Cache {
    std::shared_ptr<RowCache> rows;
    std::size_t table_bytes = 0;  // of all tables that use it
    std::size_t uses = 0;         // by versions
  };
  void end(const Hold& hold);
  std::shared_ptr<RowCache> cache(std::size_t row_bytes) const;
  std::uint32_t next_table();
  void fit_caches();  // `mutex_` is held, as it is by the next one
  std::size_t all_caches() const;

  const std::size_t limit_;
  mutable std::mutex mutex_;  // guards what follows
  std::size_t held_ = 0;
  std::map<std::size_t, std::size_t> holds_;  // how many there are, by their bytes
  std::map<std::size_t, Cache> caches_;       // by the size of a row
  std::uint32_t tables_ = 0;
};

}  // namespace cairn::serving
