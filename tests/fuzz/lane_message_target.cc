#include "core/graph/ops.h"
#include "core/graph/wire/wire.h"
#include "data/stage/dataset_wire.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/sim_network.h"
#include "rpc/wire/layout_wire.h"
#include "tests/fuzz/refusal.h"
#include "worker/lane/lane.h"
#include "worker/lane/lane_wire.h"

namespace cairn::fuzz {
namespace {

constexpr unsigned kClosuresMax = 16;  // here each is waited for
// virtual: the shards that a layout names are not there
constexpr auto kPatience = std::chrono::seconds(60);
// Nor are the members of a group, which are dialled every few milliseconds.
constexpr auto kShortPatience = std::chrono::milliseconds(200);

Graph traced(const std::vector<SignatureEntry>& signature,
             const std::function<Array(const std::vector<TraceArgument>&)>& body) {
  return trace(
             [&](const std::vector<TraceArgument>& arguments) {
               return detail::to_outputs(body(arguments));
             },
             signature)
      .graph;
}

Graph sum_of_argument() {
  static const Graph graph = traced({TensorType{DType::kFloat32, {Shape::kUnknown}}},
                                    [](const auto& in) { return sum(std::get<Array>(in[0])); });
  return graph;
}

const Dataset& numbers() {
  static const Dataset dataset = Dataset::range(20).batch(4);
  return dataset;
}

Graph sum_of_batch() {
  static const Graph graph = traced({numbers().element_spec()}, [](const auto& in) {
    return sum(cast(std::get<Iterator>(in[0]).get_next().features["value"], DType::kFloat32));
  });
  return graph;
}

// A lane as the coordinator has set it up: function 1 of an argument, function 2 of a pipeline.
struct World {
  rpc::SimReactor reactor;
  rpc::SimNetwork network{reactor};
  worker::Lane lane{reactor, network.host("worker"), {}};

  World() {
    lane.configure({.session = 7, .incarnation = 3});
    lane.register_function(1, sum_of_argument());
    lane.register_function(2, sum_of_batch());
    lane.open_pipeline(4, numbers());
  }
  void run(worker::ClosureRun closure) {
    auto ran = lane.run(std::move(closure));
    reactor.wait(reactor.with_deadline(std::move(ran), kPatience, "the closure"));
  }
  void set_layout(std::shared_ptr<const Layout> layout) {
    lane.set_layout(layout);
    const worker::Routing routing(layout, RowEncoding::kRaw, 1 << 20);
    for (const VariableLayout& variable : layout->variables)
      may_refuse([&] {
        const Read whole{variable.id, {}, {}};
        routing.reads({&whole, 1});
      });
  }
};

std::span<const std::byte> bytes(capnp::Data::Reader in) {
  return {reinterpret_cast<const std::byte*>(in.begin()), in.size()};
}

void serve(World& world, unsigned choice, Message& message) {
  switch (choice % 5) {
    case 0:
      return world.set_layout(wire::read(message.root<wire::Lane::SetLayoutParams>().getLayout()));
    case 1:
      for (auto closure : wire::bounded(message.root<wire::Lane::RunParams>().getClosures(),
                                        kClosuresMax, "closures"))
        world.run(worker::read(closure));
      return;
    case 2: {
      const auto in = message.root<wire::Lane::RegisterParams>();
      return world.lane.register_function(in.getFunction(), parse_graph(bytes(in.getGraph())),
                                          in.getGraph().size());
    }
    case 3: {
      const auto in = message.root<wire::Lane::OpenPipelineParams>();
      return world.lane.open_pipeline(in.getPipeline(), parse_dataset(bytes(in.getDescription())),
                                      in.getDescription().size());
    }
    case 4: {
      auto joined =
          world.lane.group().join(worker::read(message.root<wire::Lane::JoinGroupParams>()));
      return world.reactor.wait(
          world.reactor.with_deadline(kj::mv(joined), kShortPatience, "the group"));
    }
  }
}

}  // namespace

// A byte for the call, then its parameters.
void lane_message(Bytes input) {
  const unsigned choice = take_choice(input);
  World world;
  may_refuse_call([&] {
    Message message(input);
    serve(world, choice, message);
  });
  worker::ClosureRun good;
  good.function = 1;
  good.arguments = {Tensor::of<float>({2}, std::vector<float>{1, 2})};
  may_refuse([&] { world.run(good); });
}

}  // namespace cairn::fuzz
