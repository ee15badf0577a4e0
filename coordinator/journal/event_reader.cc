// Records as events.

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cstring>
#include <limits>
#include <utility>

#include "coordinator/cluster/shard_client.h"
#include "coordinator/journal/journal.capnp.h"
#include "coordinator/journal/journal_event.h"
#include "core/base/error.h"
#include "core/graph/wire/wire.h"
#include "rpc/wire/layout_wire.h"

namespace cairn::journal {
namespace {

std::vector<std::byte> read_bytes(capnp::Data::Reader in) {
  const auto* begin = reinterpret_cast<const std::byte*>(in.begin());
  return {begin, begin + in.size()};
}

std::string read_text(capnp::Data::Reader in) {
  return {reinterpret_cast<const char*>(in.begin()), in.size()};
}

std::vector<std::uint64_t> read_numbers(capnp::List<std::uint64_t>::Reader in) {
  std::vector<std::uint64_t> numbers;
  for (const std::uint64_t number : in) numbers.push_back(number);
  return numbers;
}

std::vector<Tensor> read_tensors(capnp::List<cairn::wire::TensorData>::Reader in) {
  std::vector<Tensor> tensors;
  for (auto tensor : in) tensors.push_back(cairn::wire::read(tensor));
  return tensors;
}

PipelinePosition read(wire::Position::Reader in) {
  PipelinePosition position{in.getName(), in.getNext(), {}, {}};
  for (auto open : in.getOpen()) position.open.push_back({open.getOrdinal(), open.getCount()});
  for (auto state : in.getStates())
    position.states[state.getOrdinal()] = read_bytes(state.getState());
  return position;
}

LossLedger::Holdings read(wire::Holdings::Reader in) {
  return {in.getCovers(), read_numbers(in.getMissing())};
}

PsRebuilt read(wire::Rebuilt::Reader in) {
  PsRebuilt rebuilt{in.getPs(), in.getLayout(), read(in.getFrom()), nullptr, {}};
  for (const std::uint64_t process : in.getProcesses()) rebuilt.processes.emplace_back(process);
  if (!in.hasApplied()) return rebuilt;
  auto applied = std::make_shared<AppliedClosures>();
  applied->low_watermark = in.getApplied().getLowWatermark();
  for (auto range : in.getApplied().getClosures())
    applied->ranges.emplace_back(range.getBegin(), range.getEnd());
  rebuilt.applied = std::move(applied);
  return rebuilt;
}

std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader in) {
  std::vector<std::string> texts;
  for (auto text : in) texts.emplace_back(text);
  return texts;
}

SourcesAre::Source read(wire::Source::Reader in) {
  SourcesAre::Source source{.folder = in.getFolder(), .partial = in.getPartial()};
  source.options.include = read_texts(in.getInclude());
  source.options.exclude = read_texts(in.getExclude());
  for (auto rename : in.getRename()) source.options.rename[rename.getFrom()] = rename.getTo();
  source.options.slots = !in.getWithoutSlots();
  for (auto rows : in.getRows()) {
    auto numbers = std::make_shared<RowNumbers>();
    for (const std::uint32_t number : rows.getNumbers())
      numbers->push_back(number == std::numeric_limits<std::uint32_t>::max() ? kRowGone : number);
    source.options.rows[rows.getVariable()] = std::move(numbers);
  }
  source.options.on_demand = in.getOnDemand();
  source.options.new_data = in.getNewData();
  source.options.positions_of = read_texts(in.getPositionsOf());
  source.holdings = read(in.getHoldings());
  return source;
}

Opened read(wire::Opened::Reader in, const std::string& where) {
  if (in.getFormat() != kEventFormat)
    throw FailedPreconditionError(str(where, " is of format ", in.getFormat(),
                                      ", this release knows ", kEventFormat,
                                      ": run the release that wrote it"));
  return {in.getCluster(), in.getSession(), in.getTerm(), in.getHolder(), in.getConsistency()};
}

DatasetMade read(wire::Dataset::Reader in) {
  DatasetMade event{
      in.getName(), in.getFirstPipeline(), {}, cairn::wire::read(in.getSpec()), in.getShared(), {}};
  for (auto description : in.getDescriptions())
    event.descriptions.push_back(read_bytes(description));
  for (auto position : in.getPositions()) event.positions.push_back(read(position));
  return event;
}

ShardsPlaced read(wire::Shards::Reader in) {
  ShardsPlaced event{in.getLayout(), in.getSeed(), {}};
  for (auto shard : in.getShards()) event.shards.push_back(cairn::wire::read(shard));
  return event;
}

ClosureSent read(wire::Sent::Reader in) {
  ClosureSent event{.sequence = in.getSequence(),
                    .function = in.getFunction(),
                    .oldest_layout = in.getLayout(),
                    .global_step = in.getStep(),
                    .arguments = read_tensors(in.getArguments()),
                    .datasets = read_numbers(in.getDatasets())};
  for (auto list : in.getPerWorker())
    event.per_worker.push_back(list.hasValues() ? std::make_shared<const std::vector<Tensor>>(
                                                      read_tensors(list.getValues()))
                                                : nullptr);
  for (auto take : in.getTakes())
    event.takes.push_back({take.getPipeline(), take.getOrdinal(), take.getCount()});
  return event;
}

ClosureEnded read(wire::Ended::Reader in) {
  ClosureEnded event{in.getSequence(), in.getUpdated(), in.getSteps(), in.getSentLayout(), {}};
  for (auto state : in.getStates())
    event.states.push_back({state.getOrdinal(), read_bytes(state.getState())});
  return event;
}

RoundNamed read(wire::Round::Reader in) {
  RoundNamed event{in.getNumber(), in.getStep(), {}};
  for (auto member : in.getMembers())
    event.members.push_back({member.getNumber(), member.getSequence(), member.getSentLayout()});
  return event;
}

Standing read(wire::Standing::Reader in) {
  Standing event{.global_step = in.getStep(), .closures_below = in.getClosuresBelow()};
  event.losses = {in.getCommitted(), in.getLost(), in.getLostBefore(), in.getLostUndone(), {}};
  if (in.getMissing().size() != in.getRebuilt().size())
    throw InvalidArgumentError("it tells of some ps what they lack, and of others not");
  for (auto rebuilt : in.getRebuilt()) {
    PsRebuilt ps = read(rebuilt);
    event.losses.ps.push_back(
        {in.getMissing()[static_cast<unsigned>(event.losses.ps.size())],
         {.layout_version = ps.layout_version, .from = std::move(ps.from), .has = ps.applied}});
  }
  for (auto position : in.getPositions())
    event.pipelines.push_back({read(position), position.getEnded()});
  return event;
}

Event read(wire::Event::Reader in, const std::string& where) {
  switch (in.which()) {
    case wire::Event::OPENED: return read(in.getOpened(), where);
    case wire::Event::FUNCTION: {
      auto made = in.getFunction();
      return FunctionMade{made.getId(), made.getName(), read_bytes(made.getGraph()),
                          made.getTakesWorkerIndex(), made.getReplicas()};
    }
    case wire::Event::VARIABLE:
      return VariableMade{
          cairn::wire::read(in.getVariable().getLayout(), in.getVariable().getId())};
    case wire::Event::DATASET: return read(in.getDataset());
    case wire::Event::SHARDS: return read(in.getShards());
    case wire::Event::SENT: return read(in.getSent());
    case wire::Event::ENDED: return read(in.getEnded());
    case wire::Event::ANNOUNCED:
      return Announced{in.getAnnounced().getClosuresBelow(), in.getAnnounced().getSettledBelow()};
    case wire::Event::KNOWN: {
      Known event{in.getKnown().getLowWatermark(), {}};
      for (auto range : in.getKnown().getClosures())
        event.closures.emplace_back(range.getBegin(), range.getEnd());
      return event;
    }
    case wire::Event::REBUILT: return read(in.getRebuilt());
    case wire::Event::STANDING: return read(in.getStanding());
    case wire::Event::ROUND: return read(in.getRound());
    case wire::Event::SOURCES: {
      SourcesAre event;
      if (in.getSources().hasRestored()) event.restored = read(in.getSources().getRestored());
      if (in.getSources().hasNewest()) event.newest = read(in.getSources().getNewest());
      event.restoring = in.getSources().getRestoring();
      return event;
    }
    case wire::Event::NOTE:
      return NoteMade{read_text(in.getNote().getName()), read_text(in.getNote().getText())};
  }
  throw FailedPreconditionError(
      str(where, " holds an event that this release does not know: run the release that wrote it"));
}

}  // namespace

// The bytes are ours, and a checksum has been compared: the reader's own limits are not needed, and
// whatever is wrong all the same is damage.
std::vector<Event> read_record(std::string_view record, const std::string& where) {
  try {
    kj::Array<capnp::word> words = kj::heapArray<capnp::word>(record.size() / sizeof(capnp::word));
    std::memcpy(words.begin(), record.data(), words.asBytes().size());
    capnp::ReaderOptions options;
    options.traversalLimitInWords = std::numeric_limits<std::uint64_t>::max();
    capnp::FlatArrayMessageReader message(words, options);
    std::vector<Event> events;
    for (auto event : message.getRoot<wire::Record>().getEvents())
      events.push_back(read(event, where));
    return events;
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(str(where, " is no record of a journal: ", error.what()));
  } catch (const kj::Exception& error) {
    throw DataLossError(str(where, " is no record of a journal: ", error.getDescription().cStr()));
  }
}

}  // namespace cairn::journal
