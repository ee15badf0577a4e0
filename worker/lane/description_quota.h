// DescriptionQuota: how many descriptions of one kind a lane keeps, and how large they are as they
// came. A coordinator sends as many as it likes, so they are bounded.
//   Thread  one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/base/error.h"

namespace cairn::worker {

class DescriptionQuota {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{1} << 30;

  DescriptionQuota(std::string kind, std::size_t count_max)
      : kind_(std::move(kind)), count_max_(count_max) {}

  // Books `bytes` under `id`, instead of what was booked there before.
  //   Errors  ResourceExhausted: one too many, or too large.
  void book(std::uint64_t id, std::size_t bytes) {
    const auto known = sizes_.find(id);
    const bool fresh = known == sizes_.end();
    const std::size_t all = bytes_ + bytes - (fresh ? 0 : known->second);
    if (all > kBytesMax || (fresh && sizes_.size() >= count_max_))
      throw ResourceExhaustedError(str(kind_, " ", id, ": with it this lane would keep ",
                                       sizes_.size() + 1, " of its kind in ", all,
                                       " bytes; at most ", count_max_, " in ", kBytesMax,
                                       " bytes are kept: register fewer or smaller ones"));
    sizes_[id] = bytes;
    bytes_ = all;
  }
  void clear() {
    sizes_.clear();
    bytes_ = 0;
  }

 private:
  const std::string kind_;
  const std::size_t count_max_;
  std::map<std::uint64_t, std::size_t> sizes_;
  std::size_t bytes_ = 0;
};

}  // namespace cairn::worker
