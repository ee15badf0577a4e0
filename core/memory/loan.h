// Loan: bytes that one reader will read later from where they lie. If they are to change before
// that, their owner first copies them aside.
//   Thread  owner and reader share one.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace cairn {

struct Loan {
  std::span<const std::byte> bytes;  // where they lie by now
  // The reader's word: pages of their first place are read by the system, which knows no other.
  // They must not change either.
  bool paged = false;
  std::shared_ptr<const void> kept;  // where they lie
};

}  // namespace cairn
