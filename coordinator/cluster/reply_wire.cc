#include "coordinator/cluster/reply_wire.h"

#include "core/graph/wire/wire.h"
#include "rpc/loop/error_wire.h"

namespace cairn {
namespace {

std::exception_ptr read_error(capnp::Text::Reader text, const std::string& worker) {
  ErrorParts parts = rpc::from_error_text(std::string(text));
  // An error that passed through names the task where it arose, a ps say. Only an error of the
  // worker's own is given the worker's name.
  if (parts.task.empty()) parts.task = worker;
  try {
    throw_error(parts);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

LaneReply read_reply(wire::ClosureResult::Reader in, const std::string& worker) {
  LaneReply reply;
  reply.sequence = in.getSequence();
  if (in.hasError()) {
    reply.error = read_error(in.getError(), worker);
    return reply;
  }
  for (auto output : wire::bounded(in.getOutputs(), kReplyListMax, "outputs"))
    reply.outputs.push_back(wire::read(output));
  for (auto state : wire::bounded(in.getStates(), kReplyListMax, "iterator states")) {
    auto bytes = state.getState();
    auto first = reinterpret_cast<const std::byte*>(bytes.begin());
    reply.states.push_back({state.getOrdinal(), {first, first + bytes.size()}, state.getSkipped()});
  }
  reply.staleness = in.getStaleness();
  reply.updated = in.getUpdated();
  reply.copies = in.getCopies();
  return reply;
}

// A program reads its outputs by place and type, and the book of positions takes one state for each
// iterator. A worker of another version might answer otherwise, and this should not look like a bug
// here.
void verify_reply(const LaneReply& reply, const Graph& graph, std::size_t takes) {
  if (reply.outputs.size() != graph.outputs.size() || reply.states.size() != takes)
    throw DataLossError(str("a worker answers with ", reply.outputs.size(), " outputs and ",
                            reply.states.size(), " iterator states where the function has ",
                            graph.outputs.size(), " and the closure took of ", takes,
                            " iterators: is it of another version?"));
  for (std::size_t i = 0; i < reply.outputs.size(); ++i) {
    const TensorType& promised = graph.type(graph.outputs[i]);
    const Tensor& came = reply.outputs[i];
    if (came.dtype() != promised.dtype || !promised.shape.admits(came.shape()))
      throw DataLossError(str("a worker answers with output ", i, " of ", came.type().to_string(),
                              " where the function has ", promised.to_string(),
                              ": is it of another version?"));
  }
}

ShardVersion read_version(wire::Version::Reader in) { return {in.getLineage(), in.getCounter()}; }

// The set is searched by bisection and merged with those of other shards, both of which rely on the
// order. It is verified here, where it is known which task sent it.
AppliedClosures read_applied(wire::AppliedSet::Reader in) {
  AppliedClosures applied;
  applied.low_watermark = in.getLowWatermark();
  for (auto range : wire::bounded(in.getClosures(), kReplyListMax, "ranges of closures")) {
    const std::uint64_t last = applied.ranges.empty() ? 0 : applied.ranges.back().second;
    if (range.getBegin() >= range.getEnd() || range.getBegin() < last)
      throw InvalidArgumentError(str("a shard answers that it applied closures ", range.getBegin(),
                                     " to ", range.getEnd(), " after ", last,
                                     ": such ranges ascend"));
    applied.ranges.emplace_back(range.getBegin(), range.getEnd());
  }
  return applied;
}

ShardMark read_mark(wire::Shard::MarkResults::Reader in) {
  return {read_version(in.getVersion()), read_applied(in.getApplied()), in.getDelta()};
}

ShardSaved read_saved(wire::Shard::SaveResults::Reader in) {
  ShardSaved saved;
  for (auto file : wire::bounded(in.getFiles(), kReplyListMax, "files"))
    saved.files.push_back({wire::read_name(file.getName()), file.getBytes(), file.getChecksum()});
  saved.rows = in.getRows();
  saved.bytes = in.getBytes();
  for (const std::uint64_t rows :
       wire::bounded(in.getDatabaseRows(), kReplyListMax, "databaseRows"))
    saved.database_rows.push_back(rows);
  return saved;
}

}  // namespace cairn
