// Memory for a table, or for a step's values: zeroed, 64-byte aligned, on huge pages where it is
// large and the system allows.
#pragma once
#include <cstddef>
#include <utility>

namespace cairn {

// Thread: one. Cost: pages are only taken when touched.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::size_t bytes);  // ResourceExhausted: not enough memory
  // One owner: an arena can be moved and cannot be copied.
  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Arena();

  // More bytes, zero; what was there stays, though elsewhere. Large ones move by their page tables,
  // without a copy.
  //   Errors  ResourceExhausted: not enough memory; nothing has changed.
  void grow(std::size_t bytes);

  // Takes all pages now and not when they are touched, which on a machine whose memory is the
  // host's to give may take milliseconds for each 2 MB.
  //   Thread  any, while nobody else uses the arena.
  void take_pages();

  // The bytes from `from` on are of no use at present: pages that hold no others go to the system,
  // and are zero when they are touched again.
  void give_back(std::size_t from);

  // Bytes from `from` on that have no page yet are given small ones when they are touched. The
  // first touch of a huge page takes milliseconds, in which all of its 2 MB are zeroed.
  void take_small_pages(std::size_t from);

  // Moves [at, at + bytes) to other pages. A reader that was lent the old ones, such as a socket,
  // goes on reading there what it was lent.
  // Cost  that of two copies, and of small pages from then on. Needs memory of its own pages, see
  //       has_pages().
  void leave_pages(const std::byte* at, std::size_t bytes);
  bool has_pages() const { return mapped_ > 0; }

  // Where the bytes lie now: grow() may move them.
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Arena& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
  }
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_ = 0;  // bytes from mmap, 0: from the heap
};

}  // namespace cairn
