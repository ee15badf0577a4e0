#include "rpc/server/newest_term.h"

#include <algorithm>

#include "core/base/error.h"
#include "rpc/net/connection.h"

namespace cairn::rpc {

void NewestTerm::raise(std::uint64_t session, Term term) {
  std::lock_guard hold(mutex_);
  term_ = session == session_ ? std::max(term_, term) : term;
  session_ = session;
}

void NewestTerm::verify(std::string_view call, const PeerInfo& peer) const {
  std::lock_guard hold(mutex_);
  if (peer.session != session_ || peer.term >= term_) return;
  throw FailedPreconditionError(
      str(call, ": this connection is of term ", peer.term, " of session ", session_,
          ", which another coordinator goes on ", "with in term ", term_));
}

}  // namespace cairn::rpc
