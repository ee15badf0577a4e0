#include "rpc/server/this_host.h"

#include <unistd.h>

#include "rpc/net/socket_address.h"

namespace cairn::rpc {

bool is_on_this_host(const Address& address) {
  if (address.scheme == Address::Scheme::kUnix) return true;
  if (address.scheme != Address::Scheme::kTcp) return false;
  if (const auto numeric = numeric_addresses(address.host, address.port); !numeric.empty())
    return is_own(numeric.front());
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && address.host == name;
}

}  // namespace cairn::rpc
