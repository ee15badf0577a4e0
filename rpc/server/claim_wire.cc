#include "rpc/server/claim_wire.h"

#include <algorithm>
#include <chrono>

namespace cairn::rpc {
namespace {

constexpr std::size_t kWhoBytesMax = 300;
constexpr std::size_t kOwnerBytesMax = 1000;

std::string cut(capnp::Text::Reader text, std::size_t bytes_max) {
  return {text.begin(), std::min(text.size(), bytes_max)};
}

}  // namespace

void write(wire::Claim::Builder out, const Claim& claim) {
  out.setSession(claim.session);
  out.setWho(claim.who.c_str());
  out.setSilenceMs(static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(claim.silence).count()));
  out.setTakeOver(claim.take_over);
}

Claim read(wire::Claim::Reader in) {
  return {in.getSession(), cut(in.getWho(), kWhoBytesMax),
          std::chrono::milliseconds(in.getSilenceMs()), in.getTakeOver(), Term()};
}

void write(wire::ClaimAnswer::Builder out, const ClaimAnswer& answer) {
  out.setGranted(answer.granted);
  out.setOwner(answer.owner.c_str());
  out.setConfigured(answer.configured);
  out.setNewestTerm(answer.newest_term.number);
}

ClaimAnswer read(wire::ClaimAnswer::Reader in) {
  return {in.getGranted(), cut(in.getOwner(), kOwnerBytesMax), in.getConfigured(),
          Term(in.getNewestTerm())};
}

std::string cut_owner(capnp::Text::Reader text) { return cut(text, kOwnerBytesMax); }

}  // namespace cairn::rpc
