// How much of a device's memory tables may take: variables of which steps look up and update rows
// by ids. What is beyond that lies in the host's memory, and the device has a cache of the rows in
// use.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace cairn {

// How much of the device's memory all tables of a workspace may take together. By default, if all
// of them fit into what is free there, they lie on the device whole.
struct DeviceCache {
  std::optional<std::size_t> bytes = {};
  std::optional<double> share = {};  // of the device's memory, above 0 and up to 1
  // Batches whose rows a cache brings in ahead, while the steps before theirs compute, where ids
  // are columns of elements as they come. Fewer where the cache has no room for so many.
  int lookahead = 4;
  bool given() const { return bytes.has_value() || share.has_value(); }
  // The bytes that tables may take on a device of `device_bytes`. Requires given().
  std::size_t bytes_of(std::size_t device_bytes) const {
    return bytes ? *bytes : static_cast<std::size_t>(*share * static_cast<double>(device_bytes));
  }
};

// As job files and flags have it: "8 GB" (also KB, MB, TB, KiB, MiB, GiB, TiB), a share as "0.1" or
// "10%", or "auto", which is the default.
//   Errors  InvalidArgument: none of these.
DeviceCache parse_device_cache(std::string_view text);

}  // namespace cairn
