// The calls of a played peer to lanes and to control services.
#include "core/base/error.h"
#include "core/graph/wire/wire.h"
#include "data/dataset/dataset.h"
#include "tests/fuzz/player/sequence_parts.h"
#include "tests/fuzz/player/sequence_player.h"

namespace cairn::fuzz {
namespace {

capnp::Data::Reader data_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

void SequencePlayer::configure_lane(wire::Lane::Client lane) {
  auto request = lane.configureRequest();
  request.setSession(script_.number(attacked_.session));
  request.setPipelineDepth(static_cast<std::uint32_t>(script_.number(2)));
  request.setIncarnation(script_.number(incarnation_));
  if (script_.lies()) request.setEncoding(static_cast<wire::Encoding>(script_.below(3)));
  keep(request.send());
}

void SequencePlayer::set_layout(wire::Lane::Client lane) {
  auto request = lane.setLayoutRequest();
  auto layout = request.initLayout();
  layout.setVersion(script_.number(layout_));
  layout.setSeed(42);
  const std::string elsewhere[] = {attacked_.worker.str(), "sim://nowhere", "127.0.0.1:1",
                                   "unix:/nowhere", "no address"};
  auto shards = layout.initShards(2);
  for (unsigned i = 0; i < 2; ++i) {
    auto primary = shards[i].initPrimary();
    primary.setAddress(script_.lies() ? elsewhere[script_.below(5)] : attacked_.ps.str());
    primary.setEndpoint(static_cast<std::uint32_t>(script_.number(1 + i)));
    primary.setProcess(script_.number(attacked_.ps_incarnation));
    shards[i].setEpoch(script_.number(epoch_));
  }
  const auto& known = played_variables();
  const auto count = static_cast<unsigned>(script_.lies() ? script_.below(variables_) : variables_);
  auto variables = layout.initVariables(count);
  for (unsigned v = 0; v < count; ++v) {
    VariableSpec spec = *known[v].spec;
    if (script_.lies()) spec.name = script_.name(known[script_.below(4)].spec->name);
    if (script_.lies())
      spec.shape = Shape{static_cast<std::int64_t>(script_.number(8)),
                         static_cast<std::int64_t>(script_.number(2))};
    wire::write(variables[v].initSpec(), spec);
    wire::write(variables[v].initRule(), known[v].rule);
    auto parts = variables[v].initParts(2);
    for (unsigned p = 0; p < 2; ++p) {
      parts[p].setShard(static_cast<std::uint32_t>(script_.number(p)));
      parts[p].setBegin(static_cast<std::int64_t>(
          script_.number(static_cast<std::uint64_t>(known[v].parts[p].rows.begin))));
      parts[p].setEnd(static_cast<std::int64_t>(
          script_.number(static_cast<std::uint64_t>(known[v].parts[p].rows.end))));
    }
  }
  keep(request.send());
}

void SequencePlayer::add_function(wire::Lane::Client lane, std::uint32_t id) {
  auto request = lane.registerRequest();
  request.setFunction(static_cast<std::uint32_t>(script_.number(id)));
  std::vector<std::byte> graph = played_function(id);
  if (script_.lies()) graph[script_.number(0) % graph.size()] ^= std::byte(script_.byte());
  request.setGraph(data_of(graph));
  keep(request.send());
}

void SequencePlayer::open_pipeline(wire::Lane::Client lane) {
  if (script_.below(4) == 3) return keep(lane.releasePushesRequest().send());  // none are held
  auto request = lane.openPipelineRequest();
  request.setPipeline(script_.number(4));
  std::vector<std::byte> dataset = played_dataset();
  if (script_.lies()) dataset[script_.number(0) % dataset.size()] ^= std::byte(script_.byte());
  request.setDescription(data_of(dataset));
  keep(request.send());
}

void SequencePlayer::run(wire::Lane::Client lane) {
  auto request = lane.runRequest();
  const unsigned count = script_.below(4);
  auto closures = request.initClosures(count);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t function = script_.below(kFunctions);
    closures[i].setSequence(script_.number(++closure_));
    closures[i].setFunction(static_cast<std::uint32_t>(script_.number(function)));
    closures[i].setSentLayout(script_.number(layout_));
    closures[i].setGlobalStep(static_cast<std::int64_t>(script_.number(0)));
    if (function == 1) {
      auto take = closures[i].initTakes(1)[0];
      take.setPipeline(script_.number(4));
      take.setOrdinal(script_.number(script_.byte()));
      take.setCount(static_cast<std::uint32_t>(script_.number(1)));
      take.setStateOrdinal(script_.number(0));
      if (script_.lies()) take.initState(script_.below(64));
      continue;
    }
    auto argument = closures[i].initArguments(1)[0];
    if (function == 2)
      wire::write(argument,
                  Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{
                                                    static_cast<std::int64_t>(script_.number(1)),
                                                    static_cast<std::int64_t>(script_.number(6))}));
    else
      wire::write(argument, Tensor::of<float>({2}, std::vector<float>{1, 2}));
  }
  keep(request.send());
}

void SequencePlayer::hold(wire::Lane::Client lane) {
  if (script_.below(2) == 0)
    keep(lane.holdPushesRequest().send());
  else
    keep(lane.releasePushesRequest().send());
}

void SequencePlayer::claim(wire::TaskControl::Client control) {
  auto request = control.joinRequest();
  auto claim = request.initClaim();
  claim.setSession(script_.number(attacked_.session));
  claim.setWho(script_.name("a peer").c_str());
  claim.setSilenceMs(static_cast<std::uint32_t>(script_.number(1000)));
  claim.setTakeOver(script_.lies());
  keep(request.send());
}

void SequencePlayer::control(Line& line) {
  const unsigned what = script_.below(3);
  if (line.kind != Kind::kChief) {
    auto control = service<wire::TaskControl>(line);
    if (what == 0) return keep(control.pingRequest().send());
    if (what == 1) return keep(control.statusRequest().send());
    return claim(control);
  }
  auto control = service<wire::CoordinatorControl>(line);
  // seldom: it ends what is attacked
  if (what != 0 && script_.lies()) return keep(control.stopRequest().send());
  if (what == 1) return keep(control.saveRequest().send());
  keep(control.statusRequest().send());
}

}  // namespace cairn::fuzz
