#include "ps/table/lending.h"

#include <algorithm>

namespace cairn::ps {

// Only of memory that has pages of its own, which is large: less is copied faster than lent.
std::shared_ptr<Loan> Lending::lend(const RowMemory& memory, RowRange rows) {
  const RowLayout& layout = memory.layout();
  if (memory.hashed() || !layout.packed() || !memory.arena()->has_pages()) return nullptr;
  const auto bytes = (static_cast<std::size_t>(rows.size()) * layout.row_bytes() + 7) / 8 * 8;
  const std::byte* const at = memory.block(rows).base;
  // A message's data lies at multiples of its 8-byte words, and is sent from where it lies.
  if (reinterpret_cast<std::uintptr_t>(at) % 8 != 0) return nullptr;
  std::erase_if(loans_, [](const auto& entry) { return entry.second.expired(); });
  auto loan = std::make_shared<Loan>(std::span(at, bytes), memory.arena());
  loans_.emplace_back(rows, loan);
  return loan;
}

void Lending::end_loans_of(Arena& arena, std::span<const std::int64_t> places) {
  std::erase_if(loans_, [&](const auto& entry) {
    const RowRange rows = entry.first;
    const auto loan = entry.second.lock();
    // Few loans are out at a time, so that each is compared with the places that are about to be
    // written.
    const bool written = std::any_of(places.begin(), places.end(), [rows](std::int64_t place) {
      return place >= rows.begin && place < rows.end;
    });
    if (loan != nullptr && written) end(arena, *loan);
    return loan == nullptr || written;
  });
}

void Lending::before_write_all(Arena& arena) {
  for (const auto& [rows, lent] : loans_)
    if (const auto loan = lent.lock()) end(arena, *loan);
  loans_.clear();
}

// The loan goes on with a copy. Pages that the kernel may still be sending from are given up
// instead of written to: the bytes under a socket's send must not change.
void Lending::end(Arena& arena, Loan& loan) {
  const std::span<const std::byte> lent = loan.bytes();
  auto aside = std::make_shared<const std::vector<std::byte>>(lent.begin(), lent.end());
  if (loan.pinned()) arena.leave_pages(lent.data(), lent.size());
  loan.move_to(*aside, aside);
}

}  // namespace cairn::ps
