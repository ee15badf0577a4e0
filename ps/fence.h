// Fence: which worker incarnations a shard still listens to.
//
// The coordinator numbers incarnations upwards, so naming those that live fences all others ever
// issued: what has to be known grows with the cluster and not with its history. Thread: the shard's
// own.
#pragma once

#include <cstdint>
#include <set>
#include <span>

namespace cairn::ps {

class Fence {
 public:
  // Shuts out all incarnations up to `newest` that are not among `alive`. Who is shut out stays so,
  // whatever comes later.
  void raise(std::uint64_t newest, std::span<const std::uint64_t> alive);
  bool shuts_out(std::uint64_t incarnation) const {
    return incarnation < end_ && !alive_.contains(incarnation);
  }
  void clear();

 private:
  std::uint64_t end_ = 0;          // above all incarnations that were ever decided upon
  std::set<std::uint64_t> alive_;  // of those below
};

}  // namespace cairn::ps
