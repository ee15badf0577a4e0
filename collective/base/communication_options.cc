#include "collective/base/communication_options.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr std::int64_t kPackBytes = std::int64_t{4} << 20;
// The largest slice, which is one message: everywhere in Cairn larger payloads travel in pieces.
constexpr std::int64_t kSliceBytesMax = std::int64_t{4} << 20;

}  // namespace

CommunicationOptions checked(CommunicationOptions options, int members) {
  if (options.bytes_per_pack < 0)
    throw InvalidArgumentError(
        str("bytes_per_pack must be at least 0 (automatic), not ", options.bytes_per_pack));
  if (options.timeout < Duration(0))
    throw InvalidArgumentError("the timeout of a group must not be negative (0: the default)");
  if (options.bytes_per_pack == 0) options.bytes_per_pack = kPackBytes;
  options.bytes_per_pack = std::min(options.bytes_per_pack, members * kSliceBytesMax);
  if (options.timeout == Duration(0)) options.timeout = kCollectiveTimeout;
  return options;
}

}  // namespace cairn
