#include "collective/network/peer_group.h"

#include "core/base/error.h"

namespace cairn {
namespace {

CommunicationOptions checked_of(const NetworkGroupOptions& options) {
  return checked(options.communication, static_cast<int>(options.members.size()));
}

}  // namespace

PeerGroup::PeerGroup(rpc::Reactor& reactor, rpc::Network& network, NetworkGroupOptions options)
    : calls_(checked_of(options)) {
  options.communication = checked_of(options);
  PeerLinks::Events events;
  events.parcel = [this](int from, Parcel parcel) {
    return calls_.parcel(from, std::move(parcel));
  };
  events.left = [this](int rank, const ErrorParts& error) { calls_.left(rank, error); };
  links_ = std::make_unique<PeerLinks>(reactor, network, std::move(options), std::move(events));
  calls_.use(*links_);
}

PeerGroup::~PeerGroup() {
  calls_.stop();
  links_.reset();
}

void PeerGroup::abort(const ErrorParts& error) {
  ErrorParts told = error;
  told.message = str(links_->name(rank()), " gave up: ", error.message);
  if (told.task.empty()) told.task = links_->task();
  links_->fail(std::move(told));
}

kj::Promise<void> PeerGroup::leave() {
  if (calls_.under_way() > 0)
    links_->fail({Code::kUnavailable,
                  str(links_->name(rank()), " has left the group in the middle of ",
                      calls_.under_way(), " calls"),
                  links_->task()});
  return links_->leave();
}

}  // namespace cairn
