// LaneClient: the coordinator's side of one lane of a worker.
//   Thread  the engine's.
//   Errors  Unavailable once the connection is lost; else what the lane reports.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coordinator/cluster/closure.h"
#include "core/base/arithmetic.h"
#include "core/base/incarnation.h"
#include "core/rows/layout.h"
#include "rpc/net/connection.h"

namespace cairn {

struct LaneTake {
  TakeRecord take;
  std::uint64_t state_ordinal = 0;
  std::span<const std::byte> state;  // valid during the call of run()
};

// Closures that go to a lane together.
struct LaneMessage {
  std::vector<std::shared_ptr<Closure>> closures;
  std::vector<LaneTake> takes;    // of all of them, in their order
  std::uint64_t sent_layout = 0;  // by which they are sent
  std::size_t lane_number = 0;
  std::size_t bytes = 0;  // about, of the closures
};

// The outcome of one closure.
struct LaneReply {
  struct State {
    std::uint64_t ordinal = 0;
    std::vector<std::byte> bytes;
    std::uint64_t skipped = 0;
  };
  std::uint64_t sequence = 0;
  std::exception_ptr error;  // set: it failed, and the rest is void
  std::vector<Tensor> outputs;
  std::vector<State> states;  // beside the takes
  std::uint64_t staleness = 0;
  bool updated = false;
  std::uint64_t copies = 0;  // a hash of the lane's copies of what is mirrored; 0: not asked
};

// A member of a group of lanes that all-reduces; lists of members are in the order of their ranks.
struct LaneGroupMember {
  std::uint32_t task = 0;
  std::string address;
};

struct LaneConfiguration {
  std::uint64_t session = 0;
  std::uint32_t lane = 0;
  std::uint32_t pipeline_depth = 2;
  LaneIncarnation incarnation;
  bool bfloat16_wire = false;
  Arithmetic products = Arithmetic::kFloat32;
  bool check_copies = false;
  bool deterministic = false;
};

class LaneClient {
 public:
  explicit LaneClient(std::unique_ptr<rpc::Connection> connection);
  ~LaneClient();

  rpc::Task<void> configure(LaneConfiguration configuration);
  rpc::Task<void> set_layout(std::shared_ptr<const Layout> layout);
  rpc::Task<void> register_function(std::uint32_t id,
                                    std::shared_ptr<const ConcreteFunction> function);
  rpc::Task<void> open_pipeline(std::uint64_t pipeline, std::vector<std::byte> description);
  // Sends the closures, and answers with what has become of some: of these or of others that were
  // sent before, each once. Until everything is answered, at least one call has to wait. The
  // message is built and let go before run() returns.
  //   Errors  none of these closures has begun.
  rpc::Task<std::vector<LaneReply>> run(LaneMessage message);
  // About how much a closure takes of a message to lane number `lane`.
  static std::size_t message_bytes(const Closure& closure, std::size_t lane);
  // Resolves when no push of the lane is under way, to the number of results that the lane has
  // sent, or will have sent, of closures that ended before.
  rpc::Task<std::uint64_t> hold_pushes();
  rpc::Task<void> release_pushes();
  // Resolves when the lane is in the group, as the member of that rank, and in no other. No
  // members: it leaves the one that it is in.
  rpc::Task<void> join_group(std::uint64_t number, std::uint32_t rank,
                             std::vector<LaneGroupMember> members);
  rpc::Connection& connection() { return *connection_; }

 private:
  struct Stub;
  std::unique_ptr<rpc::Connection> connection_;
  std::unique_ptr<Stub> stub_;
};

}  // namespace cairn
