#include "rpc/server/seat.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::rpc {
namespace {
constexpr std::size_t kWhoBytesMax = 300;  // it goes into messages and logs
}  // namespace

void Seat::join(wire::Claim::Reader asked, std::uint64_t configured,
                wire::ClaimAnswer::Builder out) {
  const PeerInfo& peer = connection_.peer();
  if (peer.role != Role::kCoordinator)
    throw PermissionDeniedError(str("only a coordinator joins, and this is ", peer.name()));
  Claim claim;
  claim.session = asked.getSession();
  const auto who = asked.getWho();
  claim.who.assign(who.begin(), std::min(who.size(), kWhoBytesMax));
  claim.address = peer.address;
  claim.silence = std::chrono::milliseconds(asked.getSilenceMs());
  claim.take_over = asked.getTakeOver();
  // A connection has one seat, whose address names the connection to the holder.
  const Holder::Answer answer = holder_->join(this, claim, [this] { connection_.close(); });
  out.setGranted(answer.granted);
  out.setHolder(answer.other.c_str());
  out.setConfigured(configured);
}

}  // namespace cairn::rpc
