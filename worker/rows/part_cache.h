// PartCache: copies of parts of dense variables that stand still, so that their values need not
// travel again.
//
// A part is copied once two pulls in a row found it with the same last write, so that what every
// step updates never is. Copies do not change: their readers share them.
//   Thread  the lane's.
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "core/base/incarnation.h"
#include "core/rows/variable_store.h"
#include "core/tensor/tensor.h"

namespace cairn::worker {

class PartCache {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;  // of all copies

  // A part's last write, as its shard numbers them: other values, another number. If the
  // lineage is 0, the write is not known.
  struct Written {
    Lineage lineage;
    std::uint64_t written = 0;
    bool operator==(const Written&) const = default;
  };
  struct Copy {
    Written at;
    Tensor values;  // rows x the variable's other axes; undefined: there is none
  };

  // Null: there is no copy of the part. Good until the next call.
  const Copy* find(VariableId variable, std::uint32_t part) const {
    const auto found = copies_.find({variable, part});
    return found == copies_.end() || !found->second.values.defined() ? nullptr : &found->second;
  }
  // A pull found the part, of so many bytes, last written at `at`. `copied` makes a copy of it, if
  // one is wanted.
  template <typename Copied>
  void saw(VariableId variable, std::uint32_t part, const Written& at, std::size_t bytes,
           Copied copied) {
    Copy& copy = copies_[{variable, part}];
    if (copy.at != at) {
      drop_values(copy);
      copy.at = at;
    } else if (!copy.values.defined() && bytes_ + bytes <= kBytesMax) {
      copy.values = copied();
      bytes_ += copy.values.bytes();
    }
  }
  void clear() {
    copies_.clear();
    bytes_ = 0;
  }

 private:
  void drop_values(Copy& copy) {
    if (!copy.values.defined()) return;
    bytes_ -= copy.values.bytes();
    copy.values = Tensor();
  }

  std::map<std::pair<VariableId, std::uint32_t>, Copy> copies_;
  std::size_t bytes_ = 0;
};

}  // namespace cairn::worker
