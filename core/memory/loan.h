// Loan: bytes that one reader will read later from where they lie. Should they change before that,
// their owner first copies them aside, and the loan says where they are now.
//
//   auto loan = std::make_shared<Loan>(bytes, arena);   // the owner, who remembers it weakly
//   read(loan->bytes());                                // the reader, whenever that is
//   Thread  owner and reader share one.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace cairn {

class Loan {
 public:
  // `kept` keeps the bytes where they are.
  Loan(std::span<const std::byte> bytes, std::shared_ptr<const void> kept)
      : bytes_(bytes), kept_(std::move(kept)) {}

  // Where they lie now.
  std::span<const std::byte> bytes() const { return bytes_; }

  // The reader: from now on something reads them that does not ask this loan where they are. The
  // memory in which they lie at present must go on holding them, also after the owner has copied
  // them aside.
  void pin() { pinned_ = true; }
  bool pinned() const { return pinned_; }

  // The owner: they lie elsewhere from now on.
  void move_to(std::span<const std::byte> bytes, std::shared_ptr<const void> kept) {
    bytes_ = bytes;
    kept_ = std::move(kept);
  }

 private:
  std::span<const std::byte> bytes_;
  bool pinned_ = false;
  std::shared_ptr<const void> kept_;
};

}  // namespace cairn
