// GroupCalls: the calls of a member of a group that spans processes, over PeerLinks.
//
// A call is cut into parts, which are exchanged independently. All members admit the parts in the
// same order, as many at a time as the window has bytes for, so that sums and transfers overlap.
// The oldest part that has not ended is admitted on every member that has made its call, so that no
// two members can wait for parts that the other has not admitted.
//   Thread  the reactor's.
#pragma once
#include <kj/async.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collective/base/call.h"
#include "collective/base/flat_values.h"
#include "collective/network/inbox.h"
#include "collective/network/peer_links.h"
#include "rpc/loop/gate.h"
#include "rpc/loop/task_group.h"
#include "rpc/server/signal.h"

namespace cairn {

class GroupCalls {
 public:
  explicit GroupCalls(CommunicationOptions options);
  ~GroupCalls();
  // Before the first call.
  void use(PeerLinks& links);
  // Drops what is under way; before `links` goes.
  void stop();

  // Makes the member's next call. Resolves with what it gets: the tensors of all members, or the
  // one that was broadcast or reduced; nothing for the other kinds.
  //   Errors  those of Collective. An InvalidArgument of check_call() makes no call.
  kj::Promise<std::vector<Tensor>> run(CollectiveCall call);
  std::size_t under_way() const { return running_.size(); }

  // PeerLinks::Events
  kj::Promise<void> parcel(int from, Parcel parcel);
  void left(int rank, const ErrorParts& error);

 private:
  struct Running {
    std::uint64_t number = 0;
    CollectiveCall call;
    std::uint64_t signature = 0;
    std::string asked;
    FlatValues values{{}, WireFormat::kRaw};
    std::vector<Tensor> results;
    std::size_t parts_left = 0;
    kj::Own<kj::PromiseFulfiller<void>> ended;
    TimePoint begun{};  // for the trace
    bool met = false;   // something of another member's call has come
  };
  struct Part {
    std::shared_ptr<Running> of;
    std::uint32_t number = 0;
    FlatValues::Range range;
  };

  rpc::Task<void> admit_parts();
  rpc::Task<void> let_go();
  rpc::Task<void> exchange(Part part, rpc::Gate::Pass admitted);
  rpc::Task<void> too_late(std::shared_ptr<Running> running);
  kj::Promise<void> exchange_of(const Part& part);
  void enqueue(const std::shared_ptr<Running>& running);
  void hear_early(int from, const Parcel& parcel);
  static void meets(Running& own);
  void compare(const Running& own, int from, std::uint64_t signature, const std::string& asked);

  // ---- exchanges ----
  rpc::Task<void> ring(Part part);
  rpc::Task<void> tree(Part part);
  rpc::Task<void> sum_up_tree(Part part, int root);
  rpc::Task<void> replace_down_tree(Part part);
  rpc::Task<void> spread(std::shared_ptr<Running> running, int root, Tensor value);
  rpc::Task<void> gather(std::shared_ptr<Running> running);
  kj::Promise<void> announce(const Running& running);

  int rank() const { return links_->rank(); }
  int size() const { return links_->size(); }
  Parcel parcel_of(const Running& running, std::uint32_t part, std::uint32_t step) const;
  kj::Promise<void> send(int to, const Part& part, std::uint32_t step, FlatValues::Range range);
  kj::Promise<void> send_piece(int to, const Running& running, std::uint32_t piece,
                               std::uint32_t step, const Tensor& value, std::size_t begin,
                               std::size_t end);
  kj::Promise<void> arrival(Inbox::Key key);

  const CommunicationOptions options_;
  PeerLinks* links_ = nullptr;
  Inbox inbox_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Running>> running_;
  struct Heard {
    int from = 0;
    std::uint64_t signature = 0;
    std::string asked;
  };
  std::multimap<std::uint64_t, Heard> early_;  // of calls that this member has not made yet
  std::deque<Part> queue_;
  rpc::Signal queued_;
  rpc::Gate window_;
  rpc::TaskGroup tasks_;
};

}  // namespace cairn
