#include "rpc/net/hello.h"

#include <algorithm>

#include "core/base/error.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {

void hello(Bytes input) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(input.data());
  const std::span<const std::uint8_t> bytes(begin, input.size());
  if (bytes.size() < rpc::kHelloPrefixBytes) return;
  may_refuse([&] {
    const auto prefix = rpc::decode_prefix(bytes.first<rpc::kHelloPrefixBytes>());
    const auto rest =
        bytes.subspan(rpc::kHelloPrefixBytes,
                      std::min<std::size_t>(prefix.rest, bytes.size() - rpc::kHelloPrefixBytes));
    may_refuse([&] {
      CAIRN_CHECK(rpc::encode(rpc::decode_hello(prefix.version, rest)).size() ==
                  rpc::kHelloPrefixBytes + rest.size());
    });
    may_refuse([&] { rpc::encode(rpc::decode_reply(prefix.version, rest)); });
  });
}

}  // namespace cairn::fuzz
