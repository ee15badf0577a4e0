#include "core/rows/cold_index.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/base/error.h"

namespace cairn {
namespace {

// A table grows when more than 92 of 100 cells are taken.
constexpr std::uint64_t kFullOf100 = 92;
constexpr std::uint64_t kFewestCells = 64, kFewestBehind = 32;
constexpr std::size_t kMappedPage = 4096;

}  // namespace

std::size_t ColdIndex::bytes() const {
  std::size_t bytes = sizeof *this;
  for (const Table& table : tables_) bytes += table.mapped;
  return bytes;
}

// Pages of its own, which grow where they are, or move by their page tables: fresh ones cost more
// than all else. A cell is read as eight bytes, so that the last one needs one behind it.
void ColdIndex::Table::map(std::uint64_t wanted_capacity, std::uint64_t wanted_slack) {
  const std::size_t wanted = ((wanted_capacity + wanted_slack) * kCellBytes + 8 + kMappedPage - 1) /
                             kMappedPage * kMappedPage;
  if (wanted > mapped) {
    void* const pages = mapped == 0 ? ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                    : ::mremap(cells, mapped, wanted, MREMAP_MAYMOVE);
    if (pages == MAP_FAILED)
      throw ResourceExhaustedError(
          str("no memory for the places of rows on the disk: ", wanted, " bytes"));
    cells = static_cast<std::byte*>(pages);
    mapped = wanted;
  }
  capacity = wanted_capacity;
  slack = wanted_slack;
}

// After the homes have moved: all entries go to the end of the cells, which keeps their order, and
// from there each to its home or behind the one before it. It never meets one that has not moved
// yet, since it has no more room before it there than it needs. If the last ones would pass the
// end, the cells behind the last home get more.
void ColdIndex::Table::spread(std::uint64_t old_end) {
  std::uint64_t to = end();
  for (std::uint64_t from = old_end; from-- > 0;) {
    const Cell moved = at(from);
    if (moved.free()) continue;
    set(from, {});
    set(--to, moved);
  }
  std::uint64_t next = 0;
  for (std::uint64_t from = to; from < end(); ++from) {
    const Cell moved = at(from);
    next = std::max(next, home(moved.fragment()));
    if (next > from) {  // those that are left lie side by side, up to the end
      const std::uint64_t packed = end();
      map(capacity, 2 * slack + (next - from));
      return spread(packed);
    }
    set(from, {});
    set(next++, moved);
  }
}

void ColdIndex::add(std::uint64_t hash, Place place) {
  if (place >= kPlacesMax)
    throw ResourceExhaustedError(
        str("a table has ", kPlacesMax, " places on a shard's disk, the most it can; use more ps"));
  Table& table = tables_[table_of(hash)];
  if (table.used * 100 >= table.capacity * kFullOf100) {
    const std::uint64_t old_end = table.end();
    if (old_end == 0)
      table.map(kFewestCells, kFewestBehind);
    else
      table.map(table.capacity + table.capacity / 32 + 16, table.slack);
    table.spread(old_end);
  }
  const std::uint64_t fragment = fragment_of(hash);
  const std::uint64_t cell = table.first(fragment);
  std::uint64_t free = cell;
  while (free < table.end() && !table.at(free).free()) ++free;
  if (free == table.end()) table.map(table.capacity, 2 * table.slack);
  std::memmove(table.cells + (cell + 1) * kCellBytes, table.cells + cell * kCellBytes,
               static_cast<std::size_t>(free - cell) * kCellBytes);
  table.set(cell, {fragment << kPlaceBits | (std::uint64_t{place} + 1)});
  ++table.used;
  ++size_;
}

// The end of the table's cells, where that place is not there.
std::uint64_t ColdIndex::cell_of(const Table& table, std::uint64_t hash, Place place) const {
  const std::uint64_t fragment = fragment_of(hash);
  if (table.used == 0) return table.end();
  for (std::uint64_t cell = table.first(fragment); cell < table.end(); ++cell) {
    const Cell found = table.at(cell);
    if (found.free() || found.fragment() != fragment) break;
    if (found.place() == place) return cell;
  }
  return table.end();
}

bool ColdIndex::remove(std::uint64_t hash, Place place) {
  Table& table = tables_[table_of(hash)];
  std::uint64_t cell = cell_of(table, hash, place);
  if (cell == table.end()) return false;
  // Those behind it that are not at home come one nearer.
  std::uint64_t next = cell + 1;
  for (; next < table.end(); ++next) {
    const Cell moved = table.at(next);
    if (moved.free() || table.home(moved.fragment()) == next) break;
  }
  std::memmove(table.cells + cell * kCellBytes, table.cells + (cell + 1) * kCellBytes,
               static_cast<std::size_t>(next - cell - 1) * kCellBytes);
  table.set(next - 1, {});
  --table.used;
  --size_;
  return true;
}

bool ColdIndex::move(std::uint64_t hash, Place from, Place to) {
  if (to >= kPlacesMax)
    throw ResourceExhaustedError(
        str("a table has ", kPlacesMax, " places on a shard's disk, the most it can; use more ps"));
  Table& table = tables_[table_of(hash)];
  const std::uint64_t cell = cell_of(table, hash, from);
  if (cell == table.end()) return false;
  table.set(cell, {table.at(cell).fragment() << kPlaceBits | (std::uint64_t{to} + 1)});
  return true;
}

void ColdIndex::clear() {
  for (Table& table : tables_) {
    if (table.mapped > 0) ::munmap(table.cells, table.mapped);
    table = {};
  }
  size_ = 0;
}

}  // namespace cairn
