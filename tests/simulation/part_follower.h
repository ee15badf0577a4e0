// A subscriber of one shard without a network: its answers are lost at times, it stops, begins
// again without its copy, or with the copy and the cursor of an earlier time, or of a shard that is
// gone.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/rows/layout.h"
#include "ps/follow/subscriptions.h"

namespace cairn::simulation {

class PartFollower {
 public:
  using Row = std::vector<float>;

  PartFollower(std::uint64_t seed, RowRange part, std::int64_t dim)
      : random_(seed), part_(part), dim_(static_cast<std::size_t>(dim)) {}

  // Another process has the shard now: this one comes with the cursor that `before` had.
  void take_cursor(const PartFollower& before);
  // One call, or none.
  void ask(ps::Subscriptions& subscriptions);
  // The copy is what the shard's rows are, as the last answer says.
  bool settled() const { return settled_; }
  // Answers are not lost any more, and nothing else goes wrong.
  void ask_well(ps::Subscriptions& subscriptions);
  // Null: the row is at its initial value.
  const Row* row(std::int64_t row) const;

 private:
  void call(ps::Subscriptions& subscriptions, bool lost, bool small);
  void apply(const ps::ChangesAnswer& answer);

  Random random_;
  RowRange part_;
  std::size_t dim_;
  std::uint64_t number_ = 1, described_ = 0;
  bool settled_ = false;
  std::uint64_t resting_ = 0;
  struct State {
    std::uint64_t incarnation = 0, cursor = 0;
    bool complete = false;
    std::map<std::int64_t, Row> copy;
    std::set<std::int64_t> unsure;  // of before the last beginning
  };
  State now_, backup_;
};

}  // namespace cairn::simulation
