#include "worker/lane/lane_service.h"

#include <deque>
#include <span>

#include "core/graph/wire/wire.h"
#include "data/stage/dataset_wire.h"
#include "rpc/cairn.capnp.h"
#include "rpc/loop/error_wire.h"
#include "rpc/loop/task_group.h"
#include "rpc/wire/layout_wire.h"
#include "worker/lane/lane_wire.h"

namespace cairn::worker {
namespace {

std::span<const std::byte> bytes(capnp::Data::Reader in) {
  return {reinterpret_cast<const std::byte*>(in.begin()), in.size()};
}

// The numbers are the same on the wire.
Arithmetic arithmetic_of(wire::Arithmetic sent) {
  if (sent > wire::Arithmetic::MIXED_BFLOAT16)
    throw InvalidArgumentError(
        str("Lane.configure: there is no arithmetic ", static_cast<int>(sent)));
  return static_cast<Arithmetic>(sent);
}

class LaneService final : public wire::Lane::Server {
 public:
  LaneService(std::shared_ptr<Lane> lane, std::shared_ptr<const rpc::NewestTerm> terms,
              rpc::Connection& connection)
      : lane_(std::move(lane)), terms_(std::move(terms)), connection_(connection) {}
  ~LaneService() noexcept(false) {
    running_.cancel_all();  // first: no closure of this connection shall push once it is let go
    lane_->release_pushes(this);
  }

  kj::Promise<void> configure(ConfigureContext context) override {
    return rpc::at_once([&] {
      auto in = context.getParams();
      connection_.allow_coordinator("Lane.configure", in.getSession());
      terms_->verify("Lane.configure", connection_.peer());
      const auto encoding =
          in.getEncoding() == wire::Encoding::BFLOAT16 ? RowEncoding::kBfloat16 : RowEncoding::kRaw;
      lane_->configure({in.getSession(), in.getLane(), in.getPipelineDepth(), encoding,
                        in.getIncarnation(), arithmetic_of(in.getArithmetic()), in.getCheckCopies(),
                        in.getDeterministic()});
    });
  }
  kj::Promise<void> setLayout(SetLayoutContext context) override {
    return rpc::at_once([&] {
      from_coordinator("Lane.setLayout");
      lane_->set_layout(wire::read(context.getParams().getLayout()));
    });
  }
  kj::Promise<void> register_(RegisterContext context) override {
    return rpc::at_once([&] {
      from_coordinator("Lane.register");
      auto in = context.getParams();
      const auto graph = bytes(in.getGraph());
      lane_->register_function(in.getFunction(), parse_graph(graph), graph.size());
    });
  }
  kj::Promise<void> openPipeline(OpenPipelineContext context) override {
    return rpc::at_once([&] {
      from_coordinator("Lane.openPipeline");
      auto in = context.getParams();
      const auto description = bytes(in.getDescription());
      lane_->open_pipeline(in.getPipeline(), parse_dataset(description), description.size());
    });
  }

  // The call brings closures and takes away results, whichever there are: with results at hand it
  // is answered at once, and otherwise it waits for some. Its parameters are let go before that,
  // because they may be large and the closures have been read.
  kj::Promise<void> run(RunContext context) override {
    try {
      from_coordinator("Lane.run");
      connection_.verify_reading(ready_words_ * sizeof(capnp::word));
      take(wire::bounded(context.getParams().getClosures(), wire::kListMax, "closures of a call"));
    } catch (...) {
      return rpc::to_kj(std::current_exception());
    }
    context.releaseParams();
    if (waiting_.empty() && !ready_.empty()) {
      answer(context, take_results());
      return kj::READY_NOW;
    }
    context.allowCancellation();
    return connection_.guard(wait_for_results(context));
  }
  kj::Promise<void> holdPushes(HoldPushesContext context) override {
    try {
      from_coordinator("Lane.holdPushes");
    } catch (...) {
      return rpc::to_kj(std::current_exception());
    }
    return connection_.guard(hold(context));
  }
  kj::Promise<void> releasePushes(ReleasePushesContext) override {
    return rpc::at_once([&] {
      from_coordinator("Lane.releasePushes");
      lane_->release_pushes(this);
    });
  }
  kj::Promise<void> joinGroup(JoinGroupContext context) override {
    try {
      from_coordinator("Lane.joinGroup");
      return lane_->group().join(read(context.getParams()));
    } catch (...) {
      return rpc::to_kj(std::current_exception());
    }
  }

 private:
  // Refuses any caller but the coordinator of the session that the lane works for: a session that
  // was replaced has no say over its successor's lane.
  void from_coordinator(std::string_view call) const {
    const std::uint64_t session = lane_->stats().session;
    connection_.allow_coordinator(call, session == 0 ? connection_.peer().session : session);
    terms_->verify(call, connection_.peer());
  }

  struct Ready {
    ClosureResult result;
    std::uint64_t words;
  };
  struct Results {
    std::vector<ClosureResult> list;
    std::uint64_t words = 0;
  };

  // Begins every closure; none fails another, nor the call.
  void take(capnp::List<wire::Closure>::Reader closures) {
    for (auto closure : closures) {
      const std::uint64_t sequence = closure.getSequence();
      try {
        if (lane_->immediate(closure.getFunction()))
          ended(sequence, lane_->run_now(read(closure)));
        else
          running_.spawn("a closure", connection_.guard(run_closure(sequence, read(closure))));
      } catch (...) {
        failed(sequence, std::current_exception());
      }
    }
    tell_results();
  }

  // Calls told() at its end, when the closure's outcome is among the results.
  struct Telling {
    ~Telling() { lane->told(this); }
    std::shared_ptr<Lane> lane;
  };

  rpc::Task<void> run_closure(std::uint64_t sequence, ClosureRun closure) {
    const Telling telling{lane_};
    auto ran = lane_->run(std::move(closure), &telling);
    try {
      ClosureResult result = co_await std::move(ran);
      ended(sequence, std::move(result));
    } catch (...) {
      failed(sequence, std::current_exception());
    }
    tell_results();
  }

  // Errors ResourceExhausted: too large for a message, or too much is kept for a coordinator that
  // does not ask for it.
  void ended(std::uint64_t sequence, ClosureResult result) {
    const std::uint64_t words = message_words(result),
                        most = connection_.message_bytes_max() / sizeof(capnp::word) - kHeadWords;
    if (words > most)
      throw ResourceExhaustedError(str("closure ", sequence, ": its outputs make a message of ",
                                       words * sizeof(capnp::word), " bytes; at most ",
                                       most * sizeof(capnp::word),
                                       " can be sent: return less of it, or in more closures"));
    connection_.verify_reading((ready_words_ + words) * sizeof(capnp::word));
    keep(sequence, std::move(result), words);
  }
  // An error's message is short, so it is kept whatever the coordinator has left unread.
  void failed(std::uint64_t sequence, std::exception_ptr error) {
    ClosureResult result;
    result.error = rpc::error_text(error);
    const std::uint64_t words = message_words(result);
    keep(sequence, std::move(result), words);
  }
  void keep(std::uint64_t sequence, ClosureResult result, std::uint64_t words) {
    result.sequence = sequence;
    ++ended_;
    ready_words_ += words;
    ready_.push_back({std::move(result), words});
  }

  // As many as make a message of kAnswerWords, or one that is larger.
  Results take_results() {
    Results taken;
    while (!ready_.empty() &&
           (taken.list.empty() || taken.words + ready_.front().words <= kAnswerWords)) {
      taken.words += ready_.front().words;
      taken.list.push_back(std::move(ready_.front().result));
      ready_.pop_front();
    }
    ready_words_ -= taken.words;
    return taken;
  }
  // To the calls that have waited longest. Of more than kWaitingMax the first go empty-handed.
  void tell_results() {
    while (!waiting_.empty() && (!ready_.empty() || waiting_.size() > kWaitingMax)) {
      // else its caller has gone
      if (waiting_.front()->isWaiting()) waiting_.front()->fulfill(take_results());
      waiting_.pop_front();
    }
  }
  rpc::Task<void> wait_for_results(RunContext context) {
    auto pair = kj::newPromiseAndFulfiller<Results>();
    waiting_.push_back(kj::mv(pair.fulfiller));
    tell_results();
    const Results results = co_await kj::mv(pair.promise);
    answer(context, results);
  }
  // The size is said before the message is filled, so that one segment holds all of it.
  static void answer(RunContext& context, const Results& results) {
    auto out = context.getResults(capnp::MessageSize{results.words + kHeadWords, 0})
                   .initResults(static_cast<unsigned>(results.list.size()));
    for (unsigned i = 0; i < out.size(); ++i) write(out[i], results.list[i]);
  }

  // A closure that has just failed between two shards looks idle here, and whole to a coordinator
  // that has not read its result yet: the answer says how many results there are to be read first.
  rpc::Task<void> hold(HoldPushesContext context) {
    auto idle = lane_->hold_pushes(this);
    co_await kj::mv(idle);
    context.getResults(capnp::MessageSize{kHeadWords, 0}).setEnded(ended_);
  }

  static constexpr std::uint64_t kAnswerWords = (std::uint64_t{1} << 20) / sizeof(capnp::word);
  static constexpr std::uint64_t kHeadWords = 64;  // of a message around its results
  static constexpr std::size_t kWaitingMax = 16;

  std::shared_ptr<Lane> lane_;
  std::shared_ptr<const rpc::NewestTerm> terms_;
  rpc::Connection& connection_;
  std::uint64_t ended_ = 0;  // closures that this connection brought
  std::deque<Ready> ready_;  // ended, in that order, and not yet answered
  std::uint64_t ready_words_ = 0;
  std::deque<kj::Own<kj::PromiseFulfiller<Results>>> waiting_;  // calls
  // closures; an error is the connection's end
  rpc::TaskGroup running_{[](const std::string&, const ErrorParts&) {}};
};

}  // namespace

capnp::Capability::Client make_lane_service(std::shared_ptr<Lane> lane,
                                            std::shared_ptr<const rpc::NewestTerm> terms,
                                            rpc::Connection& connection) {
  return wire::Lane::Client(kj::heap<LaneService>(std::move(lane), std::move(terms), connection));
}

}  // namespace cairn::worker
