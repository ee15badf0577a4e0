#include "core/memory/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLine = 64;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

[[noreturn]] void no_memory(std::size_t bytes) {
  throw ResourceExhaustedError(
      str("no memory for ", bytes, " bytes of rows; use more ps, or smaller tables"));
}

// A mapping that begins on a huge page: what is mapped beside it is given back.
// Not reserved: one that grows is mapped beside its successor, which takes over its pages.
std::byte* map_aligned(std::size_t bytes) {
  void* raw = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) no_memory(bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = round_up(begin, kHugePage);
  if (aligned > begin) munmap(raw, aligned - begin);
  if (const std::size_t tail = begin + kHugePage - aligned; tail > 0)
    munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  // a wish: without it the rows are only slower
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<std::byte*>(aligned);
}

}  // namespace

// Fresh pages of a mapping are zero and not touched here, so a large table takes memory only where
// rows are used. Memory of the heap may have been used before and has to be cleared.
Arena::Arena(std::size_t bytes) : bytes_(bytes) {
  if (bytes >= kHugePage) {
    mapped_ = round_up(bytes, kHugePage);
    data_ = map_aligned(mapped_);
    return;
  }
  const std::size_t rounded = round_up(bytes > 0 ? bytes : 1, kLine);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kLine, rounded));
  if (data_ == nullptr) no_memory(bytes);
  std::memset(data_, 0, rounded);
}

void Arena::grow(std::size_t bytes) {
  if (bytes <= std::max(bytes_, mapped_)) {
    bytes_ = std::max(bytes, bytes_);
    return;
  }
  Arena larger(bytes);
  if (mapped_ == 0) {
    if (bytes_ > 0) std::memcpy(larger.data_, data_, bytes_);
  } else {
    // Both begin on a huge page, so whole tables of pages change hands. The old mapping is made
    // longer: two side by side could not be moved again as one.
    if (mremap(data_, mapped_, larger.mapped_, MREMAP_MAYMOVE | MREMAP_FIXED, larger.data_) ==
        MAP_FAILED)
      no_memory(bytes);
    data_ = nullptr;
    mapped_ = 0;
  }
  swap(larger);
}

void Arena::take_pages() {
  if (mapped_ == 0) return;
#ifdef MADV_POPULATE_WRITE
  if (madvise(data_, mapped_, MADV_POPULATE_WRITE) == 0) return;
#endif
  // A kernel before 5.14. What is written may be rows already: it stays what it is.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < mapped_; at += page) {
    volatile std::byte* const byte = data_ + at;
    *byte = *byte;
  }
}

void Arena::give_back(std::size_t from) {
  const std::size_t begin = round_up(from, kHugePage);
  if (begin < mapped_) madvise(data_ + begin, mapped_ - begin, MADV_DONTNEED);
}

void Arena::take_small_pages(std::size_t from) {
  const std::size_t begin = round_up(from, kHugePage);
  if (begin < mapped_) madvise(data_ + begin, mapped_ - begin, MADV_NOHUGEPAGE);
}

void Arena::leave_pages(const std::byte* at, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(at - data_);
  CAIRN_CHECK(has_pages() && offset + bytes <= mapped_, "bytes ", offset, " to ", offset + bytes,
              " of ", mapped_);
  std::byte* const begin = data_ + offset / page * page;
  std::byte* const end = data_ + round_up(offset + bytes, page);
  const std::vector<std::byte> copy(begin, end);
  // Mapped anew rather than emptied by madvise, which locked memory refuses.
  void* const fresh = mmap(begin, copy.size(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (fresh == MAP_FAILED) no_memory(copy.size());
  madvise(begin, copy.size(), MADV_HUGEPAGE);
  std::memcpy(begin, copy.data(), copy.size());
}

Arena::~Arena() {
  if (mapped_ > 0)
    munmap(data_, mapped_);
  else
    std::free(data_);
}

}  // namespace cairn
