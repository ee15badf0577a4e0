#include "worker/lane/lane_wire.h"

#include "core/graph/wire/wire.h"

namespace cairn::worker {
namespace {

std::vector<std::byte> read_bytes(capnp::Data::Reader in) {
  const auto* begin = reinterpret_cast<const std::byte*>(in.begin());
  return {begin, begin + in.size()};
}

// An iterator only goes forward, so a state behind the wanted element could never lead to it.
Take read(wire::Take::Reader in) {
  if (in.getStateOrdinal() > in.getOrdinal())
    throw InvalidArgumentError(str("a closure takes element ", in.getOrdinal(), " of pipeline ",
                                   in.getPipeline(), " from a state at element ",
                                   in.getStateOrdinal(), ", which lies behind it"));
  return {in.getPipeline(), in.getOrdinal(), in.getCount(), in.getStateOrdinal(),
          read_bytes(in.getState())};
}

}  // namespace

// Nothing is allocated by a number that was only claimed: the lists are bounded before they are
// read, and each tensor brings the bytes that its shape promises.
ClosureRun read(wire::Closure::Reader in) {
  ClosureRun out;
  out.sequence = in.getSequence();
  out.function = in.getFunction();
  out.global_step = in.getGlobalStep();
  out.sent_layout = in.getSentLayout();
  out.round = in.getRound();
  out.member = in.getMember();
  out.group = in.getGroup();
  out.base = in.getBase();
  out.ahead = in.getAhead();
  if (in.hasArguments()) {
    const auto arguments =
        wire::bounded(in.getArguments(), wire::kListMax, "arguments of a closure");
    out.arguments.reserve(arguments.size());
    for (auto argument : arguments) out.arguments.push_back(wire::read(argument));
  }
  if (in.hasTakes()) {
    const auto takes = wire::bounded(in.getTakes(), wire::kListMax, "takes of a closure");
    out.takes.reserve(takes.size());
    for (auto take : takes) out.takes.push_back(read(take));
  }
  return out;
}

GroupConfig read(wire::Lane::JoinGroupParams::Reader in) {
  GroupConfig out{in.getGroup(), in.getRank(), {}};
  for (auto member :
       wire::bounded(in.getMembers(), LaneGroup::kMembersMax, "members of a group of lanes"))
    out.members.push_back({member.getTask(), wire::read_name(member.getAddress())});
  return out;
}

// A result with an error carries nothing else: whatever was computed before it is of no use.
void write(wire::ClosureResult::Builder out, const ClosureResult& result) {
  out.setSequence(result.sequence);
  if (!result.error.empty()) return out.setError(result.error);
  if (!result.outputs.empty()) {
    auto outputs = out.initOutputs(static_cast<unsigned>(result.outputs.size()));
    for (unsigned i = 0; i < outputs.size(); ++i) wire::write(outputs[i], result.outputs[i]);
  }
  if (!result.positions.empty()) {
    auto states = out.initStates(static_cast<unsigned>(result.positions.size()));
    for (unsigned i = 0; i < states.size(); ++i) {
      const Position& position = result.positions[i];
      states[i].setOrdinal(position.ordinal);
      states[i].setState(
          {reinterpret_cast<const kj::byte*>(position.state.data()), position.state.size()});
      states[i].setSkipped(position.skipped);
    }
  }
  out.setStaleness(result.staleness);
  out.setUpdated(result.updated);
  out.setCopies(result.copies);
}

namespace {

// An estimate from above: the constants cover the fields and pointers of the struct and of what it
// points to, and the rounding of each blob to a whole word.
std::uint64_t message_words(const Tensor& tensor) {
  std::uint64_t words = 12 + static_cast<std::uint64_t>(tensor.shape().rank());
  if (tensor.dtype() != DType::kString) return words + tensor.bytes() / sizeof(capnp::word);
  for (const std::string& text : tensor.string_values())
    words += 2 + text.size() / sizeof(capnp::word);
  return words;
}

}  // namespace

std::uint64_t message_words(const ClosureResult& result) {
  std::uint64_t words = 10 + result.error.size() / sizeof(capnp::word);
  for (const Tensor& output : result.outputs) words += message_words(output);
  for (const Position& position : result.positions)
    words += 6 + position.state.size() / sizeof(capnp::word);
  return words;
}

}  // namespace cairn::worker
