#include "core/kernels/cuda/rows/row_cache.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/kernels/cuda/rows/row_cache_work.h"

namespace cairn::cuda {
namespace {

std::int64_t row_bytes(const RowBlock& block) {
  return block.row_stride * static_cast<std::int64_t>(dtype_bytes(block.dtype));
}

void verify(const RowBlock& home, const std::vector<std::int64_t>& first_row,
            const RowCacheOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (options.places < 1 || options.places >= kMost || options.lookups_max < 1 ||
      options.lookups_max >= kMost || options.lookahead < 0)
    throw InvalidArgumentError(str("a cache of ", options.places, " rows for batches of ",
                                   options.lookups_max, " lookups and a lookahead of ",
                                   options.lookahead,
                                   ": rows and lookups must be from 1 to 2^31 - 1, and the "
                                   "lookahead at least 0"));
  if (row_bytes(home) % 16 != 0 || reinterpret_cast<std::uintptr_t>(home.base) % 16 != 0 ||
      home.slot_offset >= home.row_stride)
    throw InvalidArgumentError(str("rows that lie ", row_bytes(home),
                                   " bytes apart cannot be cached: they must be a multiple of 16 "
                                   "bytes apart, with their slots beside them"));
  if (home.rows < 1 || first_row.size() < 2 || first_row.front() != 0 ||
      first_row.back() != home.rows || !std::is_sorted(first_row.begin(), first_row.end()))
    throw InvalidArgumentError(
        str("the first rows of cached tables must lead from 0 to ", home.rows, ", in order"));
}

}  // namespace

struct RowCache::Parts {
  Parts(Queue& ahead, const RowBlock& home, const std::vector<std::int64_t>& first_row,
        const RowCacheOptions& options);

  template <typename T>
  void allocate(T*& of, std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    memory.push_back(queue.memory(bytes, Use::kCache));
    scratch.push_back({memory.back()->data(), bytes});
    of = memory.back()->as<T>();
  }

  Queue& queue;
  OrderedIds order;
  CacheView view{};
  std::vector<std::shared_ptr<Memory>> memory;  // of `view` and `places`
  std::vector<Range> scratch;                   // of it, what no step reads
  // By batch, modulo lookahead + 1.
  std::vector<std::int32_t*> places;
  std::vector<Event> ready, released;
  // A copy of the sums that is on its way to pinned memory, and those that came last.
  CacheSums* coming = nullptr;
  Event came = nullptr;
  bool under_way = false;
  CacheSums lately{};
};

RowCache::Parts::Parts(Queue& ahead, const RowBlock& home,
                       const std::vector<std::int64_t>& first_row, const RowCacheOptions& options)
    : queue(ahead), order(ahead, options.lookups_max, home.rows) {
  const std::int64_t n = options.lookups_max;
  CacheView& v = view;
  v.places = options.places;
  v.rows = home.rows;
  v.words = row_bytes(home) / static_cast<std::int64_t>(sizeof(CacheWord));
  v.lookups = n;
  v.batches = std::int64_t{options.lookahead} + 1;
  v.window = std::min(v.places, n * (v.batches + kSpareBatches));
  v.home = reinterpret_cast<CacheWord*>(home.base);
  v.ids = order.ids();
  v.positions = order.positions();
  for (std::int64_t i = 0; i < v.batches; ++i) {
    allocate(places.emplace_back(), n);
    ready.push_back(queue.driver().make_event());
    released.push_back(queue.driver().make_event());
  }
  allocate(v.cached, v.places * v.words);
  scratch.clear();
  allocate(v.entries, v.places);
  allocate(v.place_of, v.rows);
  allocate(v.first_row, std::ssize(first_row));
  allocate(v.sums, 1);
  allocate(v.batch.numbers, n);
  allocate(v.batch.requests, n);
  for (std::int32_t** of :
       {&v.batch.flags, &v.batch.ordinals, &v.batch.found, &v.batch.ranks, &v.batch.missing})
    allocate(*of, n);
  for (std::uint64_t** of : {&v.victims.candidates_dear, &v.victims.dear}) allocate(*of, v.window);
  for (std::int32_t** of : {&v.victims.candidates, &v.victims.places}) allocate(*of, v.window);
  allocate(v.sort_scratch,
           static_cast<std::int64_t>(queue.driver().sort_scratch(v.window, kDearBits)));
  allocate(v.sum_scratch, static_cast<std::int64_t>(queue.driver().sum_scratch(n)));
  queue.driver().copy(queue.stream(), Device::Direction::kIn,
                      reinterpret_cast<std::byte*>(v.first_row),
                      reinterpret_cast<const std::byte*>(first_row.data()),
                      first_row.size() * sizeof(std::int64_t));
}

RowCache::RowCache(Queue& queue, const RowBlock& home, const std::vector<std::int64_t>& first_row,
                   const RowCacheOptions& options)
    : queue_(queue),
      home_((verify(home, first_row, options), home)),
      options_(options),
      ahead_(queue.driver(), queue.cpu()),
      parts_(std::make_unique<Parts>(ahead_, home, first_row, options)) {
  if (!options.table.empty())
    bad_id_ = queue.add_fault([options, rows = home.rows](std::int64_t position, std::int64_t id) {
      return str("the variable \"", options.table, "\": id ", id, " at position ", position,
                 " is outside [0, ", rows, ")");
    });
  no_room_ = queue.add_fault([options](std::int64_t, std::int64_t missing) {
    if (options.lookahead == 0 && !options.table.empty())
      return str("the table \"", options.table, "\" has a cache of ", options.places,
                 " rows on the device, and a batch looks up ", options.places + missing,
                 " different ones: give tables more of the device's memory "
                 "(device_cache), or run smaller batches");
    return str("a cache of ", options.places, " rows has no room for ", missing,
               " more: the batches in flight, up to ", options.lookahead,
               " ahead of the one in use, look up too many different rows. Prepare fewer ahead, or "
               "make the cache larger");
  });
  parts_->coming = reinterpret_cast<CacheSums*>(queue.driver().allocate_pinned(sizeof(CacheSums)));
  parts_->came = queue.driver().make_event();
  if (queue.driver().watches()) queue.driver().announce(stream(), {}, parts_->scratch);
  // Steps and the batches ahead of them share the cache, but no rows.
  if (options.lookahead > 0)
    queue.driver().watch_rows(block().base, static_cast<std::size_t>(row_bytes(home)));
  clear_cache(ahead_, parts_->view);
  ahead_.wait();
}

RowCache::~RowCache() {
  Driver& driver = queue_.driver();
  try {
    queue_.join();
    driver.wait(queue_.stream());
    driver.wait(stream());
  } catch (const Error&) {
    // A device that has failed has nothing under way.
  }
  for (const Event event : parts_->ready) driver.destroy(event);
  for (const Event event : parts_->released) driver.destroy(event);
  driver.destroy(parts_->came);
  driver.release_pinned(reinterpret_cast<std::byte*>(parts_->coming));
}

RowBlock RowCache::block() const {
  RowBlock made = home_;
  made.base = reinterpret_cast<std::byte*>(parts_->view.cached);
  made.rows = options_.places;
  return made;
}

void RowCache::prepare(const Lookups& lookups, Access access) {
  Parts& p = *parts_;
  if (lookups.count < 0 || lookups.count > options_.lookups_max)
    throw InvalidArgumentError(str("a batch of ", lookups.count, " lookups; the cache is made for ",
                                   options_.lookups_max, " at most"));
  if (prepared_ - released_ >= p.view.batches)
    throw FailedPreconditionError(str(p.view.batches,
                                      " batches are prepared and not released, as many as a "
                                      "lookahead of ",
                                      options_.lookahead, " allows; release one first"));
  const auto slot = static_cast<std::size_t>(prepared_) % p.places.size();
  const bool changes = access == Access::kChanges;
  Driver& driver = queue_.driver();
  if (prepared_ >= p.view.batches) driver.wait_for(stream(), p.released[slot]);
  announce(lookups, p.places[slot]);
  find_requests(ahead_, p.view, p.order, lookups, prepared_, changes,
                bad_id_ ? *bad_id_ : FaultSite{});
  choose_victims(ahead_, p.view, prepared_);
  exchange_rows(ahead_, p.view, prepared_, changes, *no_room_);
  write_places(ahead_, p.view, p.places[slot]);
  driver.record(p.ready[slot], stream());
  ++prepared_;
  look_at_sums();
}

// One copy is under way at a time.
void RowCache::look_at_sums() {
  Parts& p = *parts_;
  Driver& driver = queue_.driver();
  if (p.under_way) {
    if (!driver.reached(p.came)) return;
    p.lately = *p.coming;
  }
  driver.copy(stream(), Device::Direction::kOut, reinterpret_cast<std::byte*>(p.coming),
              reinterpret_cast<const std::byte*>(p.view.sums), sizeof *p.coming);
  driver.record(p.came, stream());
  p.under_way = true;
}

RowCache::Counts RowCache::counts_lately() const {
  const CacheSums& sums = parts_->lately;
  return {sums.found, sums.read, sums.written};
}

void RowCache::announce(const Lookups& lookups, const std::int32_t* places) {
  if (!queue_.driver().watches()) return;
  const auto bytes = [](std::int64_t count, std::size_t each) {
    return static_cast<std::size_t>(count) * each;
  };
  const std::vector<Range> reads = {{static_cast<const std::byte*>(lookups.ids),
                                     bytes(lookups.count, lookups.type == IdType::kInt32 ? 4 : 8)}};
  std::vector<Range> writes = parts_->scratch;
  writes.push_back({reinterpret_cast<const std::byte*>(places),
                    bytes(options_.lookups_max, sizeof(std::int32_t))});
  queue_.driver().announce(stream(), reads, writes);
}

const std::int32_t* RowCache::use() {
  if (in_use_)
    throw FailedPreconditionError("a batch of a row cache is in use; release it before the next");
  if (prepared_ == released_) throw FailedPreconditionError("no batch of a row cache is prepared");
  const auto slot = static_cast<std::size_t>(released_) % parts_->places.size();
  queue_.driver().wait_for(queue_.stream(), parts_->ready[slot]);
  in_use_ = true;
  return parts_->places[slot];
}

void RowCache::release() {
  if (!in_use_) throw FailedPreconditionError("no batch of a row cache is in use");
  queue_.join();
  const auto slot = static_cast<std::size_t>(released_) % parts_->places.size();
  queue_.driver().record(parts_->released[slot], queue_.stream());
  in_use_ = false;
  ++released_;
}

void RowCache::flush() {
  queue_.wait();
  ahead_.wait();
  copy_home(ahead_, parts_->view, released_);
  ahead_.wait();
}

RowCache::Counts RowCache::counts() {
  CacheSums sums{};
  queue_.driver().copy(stream(), Device::Direction::kOut, reinterpret_cast<std::byte*>(&sums),
                       reinterpret_cast<const std::byte*>(parts_->view.sums), sizeof sums);
  ahead_.wait();
  return {sums.found, sums.read, sums.written};
}

}  // namespace cairn::cuda
