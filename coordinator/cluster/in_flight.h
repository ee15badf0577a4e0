// InFlight: the closures that one lane has, in the order in which they were sent to it.
//
// Results come back in about that order, so that a closure is found among the first few, and
// keeping one allocates nothing of its own. With many lanes a closure has left the caches by the
// time its result comes: finding one fetches a later one.
//   Thread  one loop's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/fetch_ahead.h"

namespace cairn {

class InFlight {
 public:
  struct Entry {
    std::uint64_t sequence = 0;
    std::shared_ptr<Closure> closure;
  };

  void add(std::shared_ptr<Closure> closure) {
    const std::uint64_t sequence = closure->sequence;
    entries_.push_back({sequence, std::move(closure)});
  }
  std::shared_ptr<Closure> find(std::uint64_t sequence) const {  // null: it is not among them
    const auto at = place(sequence);
    if (at == entries_.end()) return nullptr;
    if (entries_.end() - at > kAhead) fetch_ahead(*(at + kAhead)->closure);
    return at->closure;
  }
  void remove(std::uint64_t sequence) {
    if (const auto at = place(sequence); at != entries_.end()) entries_.erase(at);
  }
  std::vector<std::shared_ptr<Closure>> take_all() {
    std::vector<std::shared_ptr<Closure>> all;
    for (Entry& entry : std::exchange(entries_, {})) all.push_back(std::move(entry.closure));
    return all;
  }

  std::size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  static constexpr std::ptrdiff_t kAhead = 8;

  std::deque<Entry>::const_iterator place(std::uint64_t sequence) const {
    auto at = entries_.begin();
    while (at != entries_.end() && at->sequence != sequence) ++at;
    return at;
  }
  std::deque<Entry> entries_;
};

}  // namespace cairn
