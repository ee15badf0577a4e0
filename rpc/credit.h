// CreditGate: bounds the bytes that calls may have under way on one connection; plain RPC calls
// have no back-pressure.
#pragma once
#include <kj/async.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cairn::rpc {

namespace detail {
struct CreditState;
}

// Bytes taken from a gate; given back on destruction.
class Credit {
 public:
  Credit() = default;
  Credit(Credit&& other) noexcept;
  Credit& operator=(Credit&& other) noexcept;
  ~Credit();
  std::size_t bytes() const { return bytes_; }

 private:
  friend struct detail::CreditState;
  friend class CreditGate;
  Credit(std::shared_ptr<detail::CreditState> state, std::size_t bytes);
  std::shared_ptr<detail::CreditState> state_;
  std::size_t bytes_ = 0;
};

enum class Way : std::uint8_t { kOut, kIn };  // a connection has a gate for each

class CreditGate {
 public:
  // `ended`: what waiters are told once it is closed.
  explicit CreditGate(std::size_t bytes_max, std::string ended = "the connection has ended");
  ~CreditGate();  // as close()

  // Waits, first come first served, until `bytes` fit; a larger wish than the whole gate waits for
  // the gate alone. Errors Unavailable once closed.
  // Thread  one loop's.
  kj::Promise<Credit> acquire(std::size_t bytes);
  std::size_t in_use() const;
  void close();

 private:
  std::shared_ptr<detail::CreditState> state_;
};

}  // namespace cairn::rpc
