#include "ps/server/shard_service.h"

#include <algorithm>
#include <optional>

#include "core/disk/trace.h"
#include "core/graph/wire/wire.h"
#include "ps/server/await_rows.h"
#include "ps/server/checkpoint_calls.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/replica_service.h"
#include "ps/wire/wire_requests.h"

namespace cairn::ps {
namespace {

// Answers below this are copied into the message: a segment of its own costs more.
constexpr std::size_t kCopiedBytes = 2 << 10;
// Rows of an answer from this size on leave from where the table has them: below, a copy costs less
// than keeping book of a loan.
constexpr std::size_t kLentBytesMin = std::size_t{2} << 20;
constexpr capnp::MessageSize kSmallAnswer{32, 0};

class ShardService final : public ReplicaService {
 public:
  ShardService(std::shared_ptr<ShardHost> host, rpc::Connection& connection)
      : ReplicaService(std::move(host), connection),
        number_(++host_->connections),
        shared_{connection.peer().shared.get(), {}} {}

 protected:
  kj::Promise<void> pull(PullContext context) override {
    if (host_->log.is_cut_off()) return once_confirmed(context, &ShardService::pull_now);
    return pull_now(context);
  }
  kj::Promise<void> push(PushContext context) override {
    if (host_->log.is_cut_off()) return once_confirmed(context, &ShardService::push_now);
    return push_now(context);
  }
  kj::Promise<void> readState(ReadStateContext context) override {
    if (host_->log.is_cut_off()) return once_confirmed(context, &ShardService::read_state_now);
    return read_state_now(context);
  }
  kj::Promise<void> configure(ConfigureContext context) override {
    return rpc::at_once([&] {
      connection_.allow_coordinator("Shard.configure", context.getParams().getSession());
      host_->terms->verify("Shard.configure", connection_.peer());
      const Configuration configuration = read_configuration(context.getParams());
      take_charge();
      const bool news = configuration.session != host_->shard.session();
      const Epoch before = host_->shard.epoch();
      const ShardVersion version = host_->shard.configure(configuration);
      if (news || configuration.epoch != before) host_->log.end_lease();
      if (news && host_->on_session) host_->on_session(configuration.session);
      write(context.initResults(kSmallAnswer).initVersion(), version);
    });
  }
  kj::Promise<void> open(OpenContext) override {
    return rpc::at_once([&] {
      from_coordinator("Shard.open");
      host_->shard.open();
    });
  }
  kj::Promise<void> fence(FenceContext context) override {
    return rpc::at_once([&] {
      from_coordinator("Shard.fence");
      const auto params = context.getParams();
      host_->shard.fence(params.getSession(), params.getNewest(), read_alive(params));
    });
  }
  kj::Promise<void> mark(MarkContext context) override {
    return rpc::at_once([&] {
      from_coordinator("Shard.mark");
      const auto params = context.getParams();
      const MarkResult marked = host_->shard.mark(
          params.getAttempt(), {params.getBase(), params.getTrack(), params.getPassing()});
      auto results = context.initResults();
      write(results.initVersion(), marked.version);
      write(results.initApplied(), marked.applied);
      results.setDelta(marked.delta);
    });
  }
  kj::Promise<void> dropMark(DropMarkContext context) override {
    return rpc::at_once([&] {
      from_coordinator("Shard.dropMark");
      host_->shard.drop_mark(context.getParams().getAttempt());
    });
  }
  kj::Promise<void> announce(AnnounceContext context) override {
    return rpc::at_once([&] {
      from_coordinator("Shard.announce");
      const auto params = context.getParams();
      host_->shard.announce(params.getSession(), params.getClosuresBelow(),
                            params.getSettledBelow());
      host_->subscriptions.forget_idle();  // this call comes again and again
    });
  }
  kj::Promise<void> applied(AppliedContext context) override {
    return rpc::at_once([&] {
      from_coordinator("Shard.applied");
      write(context.initResults().initClosures(), host_->shard.applied());
    });
  }
  kj::Promise<void> applyRound(ApplyRoundContext context) override {
    std::optional<kj::Promise<void>> later;
    auto answered = rpc::at_once([&] {
      from_coordinator("Shard.applyRound");
      const DecodedRound round = read_round(context.getParams());
      const TraceSpan span("apply a round", round.request.round);
      const PushResult result = host_->shard.apply_round(round.request);
      if (result.waits != 0)
        later = connection_.guard(answer_round_later(host_, context, result.waits));
      else
        write(context.initResults(kSmallAnswer).initVersion(), result.version);
      if (!later.has_value() && host_->log.must_wait())
        later = connection_.guard(everywhere(host_));
    });
    return later.has_value() ? kj::mv(*later) : kj::mv(answered);
  }
  kj::Promise<void> save(SaveContext context) override {
    return serve("Shard.save", [&] { return save_and_answer(host_, context); });
  }
  kj::Promise<void> restore(RestoreContext context) override {
    return serve("Shard.restore", [&] { return restore_and_answer(host_, context); });
  }
  kj::Promise<void> awaitRestore(AwaitRestoreContext) override {
    return serve("Shard.awaitRestore", [&] { return await_restore(host_); });
  }
  kj::Promise<void> findDatabases(FindDatabasesContext context) override {
    return serve("Shard.findDatabases", [&] { return find_and_answer(host_, context); });
  }
  kj::Promise<void> removeRows(RemoveRowsContext context) override {
    return serve("Shard.removeRows", [&] {
      return remove_rows(host_, read_rows_folders(context.getParams().getFolders()));
    });
  }

 private:
  kj::Promise<void> pull_now(PullContext context) {
    // The usual pull is answered within the call. A coroutine, whose frame costs an allocation, is
    // begun only if rows are elsewhere.
    std::optional<kj::Promise<void>> later;
    auto answered = rpc::at_once([&] {
      connection_.allow({rpc::Role::kWorker}, "Shard.pull");
      connection_.verify_reading();
      DecodedPull pull = read_pull(context.getParams(), shared_);
      if (host_->shard.must_wait(pull.request))
        later = connection_.guard(answer_pull_later(context, std::move(pull)));
      else
        answer_pull(context, pull);
    });
    return later.has_value() ? kj::mv(*later) : kj::mv(answered);
  }
  kj::Promise<void> push_now(PushContext context) {
    std::optional<kj::Promise<void>> unused, later;
    auto answered = rpc::at_once([&] {
      connection_.allow({rpc::Role::kWorker}, "Shard.push");
      DecodedPush push = read_push(context.getParams(), shared_);
      // A push in one piece is applied before the call returns, and needs nothing kept.
      if (push.request.pieces > 1) unused = keep_values(push);
      const TraceSpan span("apply a push", push.request.step.closure);
      const PushResult result = host_->shard.push(push.request);
      context.releaseParams();  // unless they were kept, their buffer may serve the next message
      if (result.waits != 0)
        later = connection_.guard(answer_push_later(host_, context, result.waits));
      else
        answer_push(context, result);
      if (!later.has_value() && host_->log.must_wait())
        later = connection_.guard(everywhere(host_));
    });
    if (later.has_value()) answered = kj::mv(*later);
    if (!unused.has_value()) return answered;
    return answered.then([until = kj::mv(*unused)]() mutable { return kj::mv(until); });
  }
  kj::Promise<void> read_state_now(ReadStateContext context) {
    std::optional<kj::Promise<void>> later;
    auto answered = rpc::at_once([&] {
      connection_.allow({rpc::Role::kWorker}, "Shard.readState");
      const StateRequest request = read_state(context.getParams());
      if (host_->shard.hurry(request))
        later = connection_.guard(answer_state_later(context, request));
      else
        answer_state(context, request);
    });
    return later.has_value() ? kj::mv(*later) : kj::mv(answered);
  }

  // The lease has run out: nothing is read or changed before it is certain that this shard still is
  // the primary.
  template <typename Context>
  kj::Promise<void> once_confirmed(Context context,
                                   kj::Promise<void> (ShardService::*now)(Context)) {
    return connection_.guard(confirm_and_go_on(context, now));
  }
  template <typename Context>
  rpc::Task<void> confirm_and_go_on(Context context,
                                    kj::Promise<void> (ShardService::*now)(Context)) {
    co_await host_->log.confirm();
    kj::Promise<void> answered = (this->*now)(context);
    co_await kj::mv(answered);
  }

  // A call on a connection that the coordinator has given up may arrive after calls on its next
  // connection, or after another coordinator has begun. A late restore would then replace rows that
  // lanes are working with.
  void take_charge() {
    verify_not_replaced();
    if (number_ == host_->in_charge) return;
    host_->in_charge = number_;
    host_->shard.change_hands();
  }
  void verify_not_replaced() const {
    if (number_ < host_->in_charge)
      throw UnavailableError(str(
          host_->database,
          ": a later connection has configured this shard and is in charge of it; connect anew"));
  }
  // Refuses any caller but the coordinator of the session that this shard was configured for.
  // Before that there is no session to protect, and the shard says so itself.
  void from_coordinator(std::string_view call) const override {
    const std::uint64_t session = host_->shard.session();
    connection_.allow_coordinator(call, session == 0 ? connection_.peer().session : session);
    host_->terms->verify(call, connection_.peer());
    verify_not_replaced();
  }

  // A call of the coordinator that touches files, and so goes on after it returned.
  template <typename Begin>
  kj::Promise<void> serve(std::string_view call, Begin begin) {
    try {
      from_coordinator(call);
      return connection_.guard(begin());
    } catch (...) {
      return rpc::to_kj(std::current_exception());
    }
  }

  // A piece waits where it came, until the last one is there. Where that is shared memory the
  // worker may use it again once it has an answer: it gets one, as the promise says, when the shard
  // lets go of the place.
  std::optional<kj::Promise<void>> keep_values(DecodedPush& push) {
    struct Place {
      ~Place() { unused->fulfill(); }
      std::shared_ptr<rpc::SharedMemory> memory;
      kj::Own<kj::PromiseFulfiller<void>> unused;
    };
    if (push.places.empty()) {
      const std::span<const std::byte> values = push.request.values.together;
      push.request.owner = connection_.buffers().buffer_of(values.data(), values.size());
      return std::nullopt;
    }
    auto pair = kj::newPromiseAndFulfiller<void>();
    push.request.owner =
        std::shared_ptr<Place>(new Place{connection_.peer().shared, kj::mv(pair.fulfiller)});
    return kj::mv(pair.promise);
  }

  // Memory that is attached to an answer must be sent at once, so the pull is answered here and not
  // in its turn. Rows stay from then on; only a restore may have moved them since.
  rpc::Task<void> answer_pull_later(PullContext context, DecodedPull pull) {
    const std::vector<std::int64_t> ids(pull.request.ids.begin(), pull.request.ids.end());
    // `shared_` keeps the ids only until the next request of this connection.
    pull.request.ids = ids;
    while (host_->shard.must_wait(pull.request)) {
      const Lineage seen = host_->shard.version().lineage;
      const Hold hold{host_, host_->shard.wait(pull.request)};
      kj::Promise<PushResult> rows = await_rows(host_, hold.wait);
      co_await kj::mv(rows);
      if (seen != host_->shard.version().lineage) continue;
      connection_.verify_reading();
      co_return answer_pull(context, pull);
    }
    connection_.verify_reading();
    answer_pull(context, pull);
  }

  void answer_state(ReadStateContext context, const StateRequest& request) {
    connection_.verify_reading();
    const VerifiedState state = host_->shard.read_state(request);
    auto results = context.initResults(kSmallAnswer);
    results.setUpdates(state.updates());
    results.setWritten(state.written());
    write(results.initVersion(), host_->shard.version());
    const std::size_t bytes = state.bytes();
    if (bytes <= kCopiedBytes)
      return state.read(
          reinterpret_cast<std::byte*>(results.initRows(static_cast<unsigned>(bytes)).begin()));
    const auto orphanage = capnp::Orphanage::getForMessageContaining(results);
    results.adoptRows(gathered(orphanage, bytes, state));
  }

  // Rows of the part are still being restored.
  rpc::Task<void> answer_state_later(ReadStateContext context, StateRequest request) {
    const TimePoint until = host_->reactor.clock().now() + kPushPatience;
    while (host_->reactor.clock().now() < until && host_->shard.hurry(request)) {
      kj::Promise<void> went_on = host_->restore_to_go_on();
      kj::Promise<void> either =
          went_on.exclusiveJoin(host_->reactor.sleep(until - host_->reactor.clock().now()));
      co_await kj::mv(either);
    }
    answer_state(context, request);
  }

  static rpc::Task<void> answer_push_later(std::shared_ptr<ShardHost> host, PushContext context,
                                           std::uint64_t wait) {
    kj::Promise<PushResult> applied = await_rows(host, wait);
    const PushResult result = co_await kj::mv(applied);
    answer_push(context, result);
    co_await everywhere(std::move(host));
  }

  static rpc::Task<void> answer_round_later(std::shared_ptr<ShardHost> host,
                                            ApplyRoundContext context, std::uint64_t wait) {
    kj::Promise<PushResult> applied = await_rows(host, wait, kRoundPatience);
    const PushResult result = co_await kj::mv(applied);
    write(context.initResults(kSmallAnswer).initVersion(), result.version);
    co_await everywhere(std::move(host));
  }

  static void answer_push(PushContext context, const PushResult& result) {
    auto results = context.initResults(kSmallAnswer);
    write(results.initVersion(), result.version);
    results.setStaleness(result.staleness);
    results.setDuplicate(result.duplicate);
  }

  void answer_pull(PullContext context, const DecodedPull& pull) {
    const TraceSpan span("gather for a pull", pull.request.step.closure);
    // Verified and counted before anything is allocated for the answer.
    VerifiedPull& rows = host_->shard.pull(pull.request);
    const std::size_t bytes = rows.bytes();
    auto results = context.initResults(kSmallAnswer);
    write(results.initVersion(), host_->shard.version());
    write_written(results, rows.reads());
    if (!pull.to.empty()) {
      if (pull.to.size() < bytes || (pull.to.size() > bytes && pull.request.copies_of == 0))
        throw InvalidArgumentError(
            str("a pull of ", bytes, " bytes of values, with room for ", pull.to.size()));
      rows.read(pull.to.data());
      return;
    }
    if (bytes <= kCopiedBytes) {
      auto values = results.initValues(static_cast<unsigned>(bytes));
      rows.read(reinterpret_cast<std::byte*>(values.begin()));
      return;
    }
    // Rows that lie as they travel leave from the table. Should a push change them before they have
    // left, the table copies them aside first, and the loan finds them there.
    const auto orphanage = capnp::Orphanage::getForMessageContaining(results);
    if (auto loan = bytes >= kLentBytesMin ? rows.lend() : nullptr) {
      results.adoptValues(connection_.attach(orphanage, rpc::Attachment(std::move(loan), bytes)));
      return;
    }
    results.adoptValues(gathered(orphanage, bytes, rows));
  }

  // `rows` are copied to a pooled buffer, which the answer refers to.
  template <typename Rows>
  capnp::Orphan<capnp::Data> gathered(capnp::Orphanage orphanage, std::size_t bytes, Rows& rows) {
    rpc::BufferPool::Buffer buffer = connection_.buffers().take(bytes);
    rows.read(reinterpret_cast<std::byte*>(buffer.get()));
    const void* const values = buffer.get();
    return connection_.attach(orphanage, rpc::Attachment(values, bytes, std::move(buffer)));
  }

  // The number of a part's last write goes with its values, and comes back with the next pull of
  // the caller, who is then spared what has not changed.
  static void write_written(wire::Shard::PullResults::Builder& results,
                            std::span<const VerifiedRead> reads) {
    const auto whole = std::count_if(reads.begin(), reads.end(),
                                     [](const VerifiedRead& read) { return read.whole; });
    if (whole == 0) return;
    auto written = results.initWritten(static_cast<unsigned>(whole));
    unsigned next = 0;
    for (const VerifiedRead& read : reads)
      if (read.whole) written.set(next++, read.table->written());
  }

  const std::uint64_t number_;  // of the connection: later ones have higher numbers
  SharedBulk shared_;
};

}  // namespace

wire::Shard::Client serve_shard(std::shared_ptr<ShardHost> host, rpc::Connection& connection) {
  return kj::heap<ShardService>(std::move(host), connection);
}

}  // namespace cairn::ps
