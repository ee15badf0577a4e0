// Events as records.

#include <capnp/message.h>
#include <capnp/serialize.h>

#include "coordinator/cluster/shard_client.h"
#include "coordinator/journal/journal.capnp.h"
#include "coordinator/journal/journal_event.h"
#include "core/graph/wire/wire.h"
#include "rpc/wire/layout_wire.h"

namespace cairn::journal {
namespace {

capnp::Data::Reader bytes_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}
capnp::Data::Reader bytes_of(const std::string& text) {
  return {reinterpret_cast<const kj::byte*>(text.data()), text.size()};
}
unsigned count(std::size_t size) { return static_cast<unsigned>(size); }

void write_numbers(capnp::List<std::uint64_t>::Builder out,
                   const std::vector<std::uint64_t>& numbers) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, numbers[i]);
}

void write_tensors(capnp::List<cairn::wire::TensorData>::Builder out,
                   const std::vector<Tensor>& tensors) {
  for (unsigned i = 0; i < out.size(); ++i) cairn::wire::write(out[i], tensors[i]);
}

void write(wire::Take::Builder out, const TakeRecord& take) {
  out.setPipeline(take.pipeline);
  out.setOrdinal(take.ordinal);
  out.setCount(take.count);
}

void write(wire::Position::Builder out, const PipelinePosition& position) {
  out.setName(position.name);
  out.setNext(position.next);
  auto open = out.initOpen(count(position.open.size()));
  for (unsigned i = 0; i < open.size(); ++i) {
    open[i].setOrdinal(position.open[i].ordinal);
    open[i].setCount(position.open[i].count);
  }
  auto states = out.initStates(count(position.states.size()));
  unsigned at = 0;
  for (const auto& [ordinal, state] : position.states) {
    states[at].setOrdinal(ordinal);
    states[at++].setState(bytes_of(state));
  }
}

void write(wire::Holdings::Builder out, const LossLedger::Holdings& holdings) {
  out.setCovers(holdings.covers);
  write_numbers(out.initMissing(count(holdings.missing.size())), holdings.missing);
}

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
void write(cairn::wire::AppliedSet::Builder out, std::uint64_t low_watermark,
           const Ranges& closures) {
  out.setLowWatermark(low_watermark);
  auto ranges = out.initClosures(count(closures.size()));
  for (unsigned i = 0; i < ranges.size(); ++i) {
    ranges[i].setBegin(closures[i].first);
    ranges[i].setEnd(closures[i].second);
  }
}

void write(wire::Rebuilt::Builder out, const PsRebuilt& rebuilt) {
  out.setPs(rebuilt.ps);
  out.setLayout(rebuilt.layout_version);
  auto processes = out.initProcesses(count(rebuilt.processes.size()));
  for (unsigned i = 0; i < processes.size(); ++i) processes.set(i, rebuilt.processes[i].number);
  write(out.initFrom(), rebuilt.from);
  if (rebuilt.applied != nullptr)
    write(out.initApplied(), rebuilt.applied->low_watermark, rebuilt.applied->ranges);
}

void write_texts(capnp::List<capnp::Text>::Builder out, const std::vector<std::string>& texts) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, texts[i]);
}

void write(wire::Source::Builder out, const SourcesAre::Source& source) {
  const RestoreOptions& options = source.options;
  out.setFolder(source.folder);
  write_texts(out.initInclude(count(options.include.size())), options.include);
  write_texts(out.initExclude(count(options.exclude.size())), options.exclude);
  auto rename = out.initRename(count(options.rename.size()));
  unsigned at = 0;
  for (const auto& [from, to] : options.rename) {
    rename[at].setFrom(from);
    rename[at++].setTo(to);
  }
  out.setWithoutSlots(!options.slots);
  auto rows = out.initRows(count(options.rows.size()));
  at = 0;
  for (const auto& [variable, numbers] : options.rows) {
    rows[at].setVariable(variable);
    auto list = rows[at++].initNumbers(count(numbers->size()));
    // kRowGone becomes 2^32 - 1.
    for (unsigned i = 0; i < list.size(); ++i)
      list.set(i, static_cast<std::uint32_t>((*numbers)[i]));
  }
  out.setOnDemand(options.on_demand);
  out.setNewData(options.new_data);
  write_texts(out.initPositionsOf(count(options.positions_of.size())), options.positions_of);
  out.setPartial(source.partial);
  write(out.initHoldings(), source.holdings);
}

struct Write {
  wire::Event::Builder& out;

  void operator()(const Opened& event) {
    auto to = out.initOpened();
    to.setFormat(kEventFormat);
    to.setCluster(event.cluster);
    to.setSession(event.session);
    to.setTerm(event.term.number);
    to.setHolder(event.holder);
    to.setConsistency(event.consistency);
  }
  void operator()(const FunctionMade& event) {
    auto to = out.initFunction();
    to.setId(event.id);
    to.setName(event.name);
    to.setGraph(bytes_of(event.graph));
    to.setTakesWorkerIndex(event.takes_worker_index);
    to.setReplicas(event.replicas);
  }
  void operator()(const VariableMade& event) {
    auto to = out.initVariable();
    to.setId(event.variable.id);
    cairn::wire::write(to.initLayout(), event.variable);
  }
  void operator()(const DatasetMade& event) {
    auto to = out.initDataset();
    to.setName(event.name);
    to.setFirstPipeline(event.first_pipeline);
    auto descriptions = to.initDescriptions(count(event.descriptions.size()));
    for (unsigned i = 0; i < descriptions.size(); ++i)
      descriptions.set(i, bytes_of(event.descriptions[i]));
    cairn::wire::write(to.initSpec(), event.spec);
    to.setShared(event.shared);
    auto positions = to.initPositions(count(event.positions.size()));
    for (unsigned i = 0; i < positions.size(); ++i) write(positions[i], event.positions[i]);
  }
  void operator()(const ShardsPlaced& event) {
    auto to = out.initShards();
    to.setLayout(event.layout_version);
    to.setSeed(event.seed);
    auto shards = to.initShards(count(event.shards.size()));
    for (unsigned i = 0; i < shards.size(); ++i) cairn::wire::write(shards[i], event.shards[i]);
  }
  void operator()(const ClosureSent& event) {
    auto to = out.initSent();
    to.setSequence(event.sequence);
    to.setFunction(event.function);
    to.setLayout(event.oldest_layout);
    to.setStep(event.global_step);
    if (!event.arguments.empty())
      write_tensors(to.initArguments(count(event.arguments.size())), event.arguments);
    if (!event.per_worker.empty()) {
      auto lists = to.initPerWorker(count(event.per_worker.size()));
      for (unsigned i = 0; i < lists.size(); ++i)
        if (const auto& values = event.per_worker[i])
          write_tensors(lists[i].initValues(count(values->size())), *values);
    }
    if (!event.datasets.empty())
      write_numbers(to.initDatasets(count(event.datasets.size())), event.datasets);
    if (event.takes.empty()) return;
    auto takes = to.initTakes(count(event.takes.size()));
    for (unsigned i = 0; i < takes.size(); ++i) write(takes[i], event.takes[i]);
  }
  void operator()(const ClosureEnded& event) {
    auto to = out.initEnded();
    to.setSequence(event.sequence);
    to.setUpdated(event.updated);
    to.setSteps(event.steps);
    to.setSentLayout(event.sent_layout);
    if (event.states.empty()) return;
    auto states = to.initStates(count(event.states.size()));
    for (unsigned i = 0; i < states.size(); ++i) {
      states[i].setOrdinal(event.states[i].ordinal);
      states[i].setState(bytes_of(event.states[i].bytes));
    }
  }
  void operator()(const RoundNamed& event) {
    auto to = out.initRound();
    to.setNumber(event.round);
    to.setStep(event.step);
    auto members = to.initMembers(count(event.members.size()));
    for (unsigned i = 0; i < members.size(); ++i) {
      members[i].setNumber(event.members[i].number);
      members[i].setSequence(event.members[i].sequence);
      members[i].setSentLayout(event.members[i].sent_layout);
    }
  }
  void operator()(const Announced& event) {
    auto to = out.initAnnounced();
    to.setClosuresBelow(event.closures_below);
    to.setSettledBelow(event.settled_below);
  }
  void operator()(const Known& event) {
    write(out.initKnown(), event.settled_below, event.closures);
  }
  void operator()(const PsRebuilt& event) { write(out.initRebuilt(), event); }
  void operator()(const SourcesAre& event) {
    auto to = out.initSources();
    if (event.restored) write(to.initRestored(), *event.restored);
    if (event.newest) write(to.initNewest(), *event.newest);
    to.setRestoring(event.restoring);
  }
  void operator()(const NoteMade& event) {
    auto to = out.initNote();
    to.setName(bytes_of(event.name));
    to.setText(bytes_of(event.text));
  }
  void operator()(const Standing& event) {
    auto to = out.initStanding();
    to.setStep(event.global_step);
    to.setClosuresBelow(event.closures_below);
    to.setCommitted(event.losses.committed);
    to.setLost(event.losses.lost);
    to.setLostBefore(event.losses.lost_before);
    to.setLostUndone(event.losses.lost_undone);
    auto missing = to.initMissing(count(event.losses.ps.size()));
    auto rebuilt = to.initRebuilt(count(event.losses.ps.size()));
    for (unsigned i = 0; i < rebuilt.size(); ++i) {
      const LossLedger::Ps& ps = event.losses.ps[i];
      missing.set(i, ps.missing);
      write(rebuilt[i],
            PsRebuilt{i, ps.rebuilt.layout_version, ps.rebuilt.from, ps.rebuilt.has, {}});
    }
    auto positions = to.initPositions(count(event.pipelines.size()));
    for (unsigned i = 0; i < positions.size(); ++i) {
      write(positions[i], event.pipelines[i].position);
      positions[i].setEnded(event.pipelines[i].ended);
    }
  }
};

}  // namespace

std::string to_record(std::span<const Event> events) {
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::Record>().initEvents(count(events.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    wire::Event::Builder out = list[i];
    std::visit(Write{out}, events[i]);
  }
  const kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

}  // namespace cairn::journal
