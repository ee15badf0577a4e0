#include "core/base/clock.h"
#include "ps/replica/backup.h"
#include "ps/replica/log_record.h"
#include "ps/shard/shard.h"
#include "ps/wire/wire_requests.h"
#include "rpc/net/shared_memory.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {
namespace {

using ps::Shard;

constexpr std::uint64_t kSession = 7;

std::shared_ptr<const VariableSpec> variable(std::string name, Shape shape) {
  return std::make_shared<const VariableSpec>(
      VariableSpec{.name = std::move(name), .shape = std::move(shape)});
}

// A shard as it stands in the middle of a training run: a table with a row rule, one with a table
// rule, a vector.
struct World {
  ManualClock clock;
  Shard shard{clock,
              {.lineage = 100,
               .answer_bytes_max = 1 << 16,
               .tables_bytes_max = 1 << 20,
               .staging = {.bytes_max = 1 << 16}}};
  ps::Subscriptions subscriptions{shard, clock};

  Shard copy{clock, {.lineage = 200, .tables_bytes_max = 1 << 20}};
  ps::Backup backup{copy};

  const std::shared_ptr<rpc::SharedMemory> memory = rpc::SharedMemory::create(1 << 16);
  ps::SharedBulk shared{memory.get(), {}};

  World() {
    const UpdateRule adagrad{RuleKind::kAdagrad, {0.1f, 1e-7f}},
        adam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
    const ps::Configuration configuration{
        kSession,
        1,
        42,
        {{0, variable("w", {8, 2}), adagrad, {{0, {0, 8}}}},
         {1, variable("m", {4, 3}), adam, {{0, {0, 2}}, {1, {2, 4}}}},
         {2, variable("b", {5}), {}, {{0, {0, 5}}}}}};
    copy.configure(configuration);
    shard.configure(configuration);
    shard.announce(kSession, 1 << 20, 0);
    shard.open();
  }

  void pull(const ps::PullRequest& request) {
    ps::VerifiedPull& rows = shard.pull(request);
    std::vector<std::byte> out(rows.bytes());
    rows.read(out.data());
  }
  void pull(const ps::DecodedPull& decoded) {
    ps::VerifiedPull& rows = shard.pull(decoded.request);
    if (!decoded.to.empty() && decoded.to.size() == rows.bytes()) rows.read(decoded.to.data());
    pull(decoded.request);
  }
  // Whatever came before, a good peer's pull is served or has to wait.
  void pull_well() {
    const ps::ReadHeader header{0, 0, 0, true};
    ps::PullRequest request{{}, {&header, 1}, {}, {}};
    request.step.session = kSession;
    request.step.incarnation = 5;
    may_refuse([&] { pull(request); });
  }
  void read_state(const ps::StateRequest& request) {
    const ps::VerifiedState state = shard.read_state(request);
    std::vector<std::byte> out(state.bytes());
    state.read(out.data());
  }
  void changes(ps::ChangesRequest request) {
    // Few inputs would find the number of the description.
    if (request.described == 1) request.described = shard.describe().described;
    subscriptions.changes(request);
  }
  void read_rows(ps::DecodedPull decoded) {
    decoded.request.step.session = kSession;
    decoded.request.step.incarnation = 5;
    pull(decoded.request);
  }
  // Said to a shard that is configured alike and closed: as a call, and as if all that a call has
  // to say of its place in the stream were right.
  void record(wire::Shard::RecordParams::Reader in) {
    may_refuse([&] { backup.take(in); });
    const auto payload = in.getPayload();
    ps::replay(copy, in.getRecord(),
               {reinterpret_cast<const std::byte*>(payload.begin()), payload.size()});
  }
  void restore(wire::Shard::RestoreParams::Reader in) {
    std::vector<VariableId> only;
    for (const auto id : in.getVariables()) only.push_back(id);
    const ps::AppliedSet applied = ps::read_applied(in.getApplied());
    ps::read_moves(in.getMoves());
    shard.begin_restore(only);
    shard.end_restore(applied);
    shard.open();
  }
  void save(wire::Shard::MarkParams::Reader in) {
    shard.mark(in.getAttempt(), {in.getBase(), in.getTrack()});
    shard.begin_save(in.getAttempt());
    while (shard.next_frozen(in.getAttempt())) continue;
    shard.drop_mark(in.getAttempt());
  }
};

void serve(World& world, unsigned choice, Message& message) {
  switch (choice % 11) {
    case 0: return world.pull(ps::read_pull(message.root<wire::Shard::PullParams>(), world.shared));
    case 1:
      world.shard.push(
          ps::read_push(message.root<wire::Shard::PushParams>(), world.shared).request);
      return;
    case 2:
      world.shard.configure(ps::read_configuration(message.root<wire::Shard::ConfigureParams>()));
      return;
    case 3: return world.restore(message.root<wire::Shard::RestoreParams>());
    case 4: return world.save(message.root<wire::Shard::MarkParams>());
    case 5: {
      const auto fence = message.root<wire::Shard::FenceParams>();
      return world.shard.fence(fence.getSession(), fence.getNewest(), ps::read_alive(fence));
    }
    case 6:
      world.shard.apply_round(
          ps::read_round(message.root<wire::Shard::ApplyRoundParams>()).request);
      return;
    case 7: return world.read_state(ps::read_state(message.root<wire::Shard::ReadStateParams>()));
    case 8: return world.changes(ps::read_changes(message.root<wire::Shard::ChangesParams>()));
    case 9: return world.read_rows(ps::read_rows(message.root<wire::Shard::ReadRowsParams>()));
    case 10: return world.record(message.root<wire::Shard::RecordParams>());
  }
}

}  // namespace

// A byte for the call, then its parameters.
void shard_message(Bytes input) {
  const unsigned choice = take_choice(input);
  World world;
  may_refuse_call([&] {
    Message message(input);
    serve(world, choice, message);
    serve(world, choice, message);  // the same again: a retry
  });
  world.pull_well();
}

}  // namespace cairn::fuzz
