// LeastLoaded: who of many has least to do, known at once however many there are.
//
// A queue for each load, numbered members in them. Of those with equal load the one that has waited
// longest is first, so that equals take turns and one history gives one order.
//   Thread  one.
//   Cost  put() and remove() constant; first() at most the range of loads, whatever the number of
//         members.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace cairn {

class LeastLoaded {
 public:
  // `who` may be given work and has `load` of it: behind others with as much, unless that is what
  // is known of it already.
  void put(std::size_t who, std::size_t load);
  void remove(std::size_t who);
  std::optional<std::size_t> first();

 private:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  struct Member {
    std::size_t load = 0, before = kNobody, behind = kNobody;
    bool here = false;
  };
  struct Queue {
    std::size_t first = kNobody, last = kNobody;
  };

  std::vector<Member> members_;  // by number
  std::vector<Queue> queues_;    // by load
  std::size_t lowest_ = 0;       // the queues below are empty
};

}  // namespace cairn
