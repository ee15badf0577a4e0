// Holder: the one coordinator that a ps or a worker works for, until that ends, falls silent, or is
// replaced on demand.
//
// A new session forgets what an old one has here, so it must not begin by mistake while the old one
// is at work. A coordinator joins each task on its control connection before it configures
// anything.
//   Thread  one loop's.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/clock.h"

namespace cairn::rpc {

struct Claim {
  std::uint64_t session = 0;
  std::string who;      // "pid 4711 on host ada"
  std::string address;  // from where it dialled
  Duration silence{0};  // after which it counts as gone, at most kSilenceMax
  bool take_over = false;
};

class Holder {
 public:
  static constexpr Duration kSilenceMax = std::chrono::seconds(60);

  explicit Holder(const Clock& clock) : clock_(clock) {}

  struct Answer {
    bool granted = false;
    std::string other;  // the coordinator at work, replaced if granted; empty: none
  };
  // `connection` names the connection that asks, `end` ends it: called when another takes over.
  Answer join(const void* connection, const Claim& claim, std::function<void()> end);
  void heard(const void* connection);  // it shows life
  void left(const void* connection);   // it has ended

 private:
  bool living() const;
  std::string text() const;

  const Clock& clock_;
  Claim claim_;
  const void* connection_ = nullptr;  // none: no coordinator is here
  std::function<void()> end_;
  std::int64_t since_us_ = 0;
  TimePoint last_heard_{};
};

}  // namespace cairn::rpc
