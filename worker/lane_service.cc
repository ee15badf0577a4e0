#include "worker/lane_service.h"

#include <span>

#include "data/dataset_wire.h"
#include "rpc/cairn.capnp.h"
#include "worker/lane_wire.h"

namespace cairn::worker {
namespace {

std::span<const std::byte> bytes(capnp::Data::Reader in) { return {reinterpret_cast<const std::byte*>(in.begin()), in.size()}; }

class LaneService final : public wire::Lane::Server {
 public:
  LaneService(std::shared_ptr<Lane> lane, rpc::Connection& connection) : lane_(std::move(lane)), connection_(connection) {}
  ~LaneService() noexcept(false) {
    if (holding_) lane_->release_pushes();
  }

  kj::Promise<void> configure(ConfigureContext context) override {
    return rpc::at_once([&] {
      auto in = context.getParams();
      const auto encoding = in.getEncoding() == wire::Encoding::BFLOAT16 ? Encoding::kBfloat16 : Encoding::kRaw;
      lane_->configure({in.getSession(), in.getLane(), in.getPipelineDepth(), encoding, in.getIncarnation(),
                        in.getBfloat16Products() ? Arithmetic::kBfloat16 : Arithmetic::kFloat32});
      holding_ = false;
    });
  }
  kj::Promise<void> setLayout(SetLayoutContext context) override {
    return rpc::at_once([&] { lane_->set_layout(read(context.getParams().getLayout())); });
  }
  kj::Promise<void> register_(RegisterContext context) override {
    return rpc::at_once([&] {
      auto in = context.getParams();
      const auto graph = bytes(in.getGraph());
      lane_->register_function(in.getFunction(), parse_graph(graph), graph.size());
    });
  }
  kj::Promise<void> openPipeline(OpenPipelineContext context) override {
    return rpc::at_once([&] {
      auto in = context.getParams();
      const auto description = bytes(in.getDescription());
      lane_->open_pipeline(in.getPipeline(), parse_dataset(description), description.size());
    });
  }
  kj::Promise<void> closePipeline(ClosePipelineContext context) override {
    return rpc::at_once([&] { lane_->close_pipeline(context.getParams().getPipeline()); });
  }

  kj::Promise<void> run(RunContext context) override {
    try {
      connection_.verify_reading();
    } catch (...) {
      return rpc::to_kj(std::current_exception());
    }
    const auto closure = context.getParams().getClosure();
    if (lane_->immediate(closure.getFunction())) {
      return rpc::at_once([&] { answer(context, lane_->run_now(read(closure))); });
    }
    context.allowCancellation();
    return connection_.guard(run_closure(context));
  }
  kj::Promise<void> holdPushes(HoldPushesContext) override {
    holding_ = true;
    return connection_.guard(hold());
  }
  kj::Promise<void> releasePushes(ReleasePushesContext) override {
    return rpc::at_once([&] {
      holding_ = false;
      lane_->release_pushes();
    });
  }

 private:
  rpc::Task<void> run_closure(RunContext context) {
    auto ran = lane_->run(read(context.getParams().getClosure()));
    const ClosureResult result = co_await std::move(ran);
    answer(context, result);
  }

  rpc::Task<void> hold() {
    auto idle = lane_->hold_pushes();
    co_await kj::mv(idle);
  }

  static void answer(RunContext& context, const ClosureResult& result) {
    auto size = message_size(result);
    size.wordCount += 4;
    write(context.getResults(size).initResult(), result);
  }

  std::shared_ptr<Lane> lane_;
  rpc::Connection& connection_;
  bool holding_ = false;  // by this connection
};

}  // namespace

capnp::Capability::Client make_lane_service(std::shared_ptr<Lane> lane, rpc::Connection& connection) {
  return wire::Lane::Client(kj::heap<LaneService>(std::move(lane), connection));
}

}  // namespace cairn::worker
