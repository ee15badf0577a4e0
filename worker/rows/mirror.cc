#include "worker/rows/mirror.h"

#include <kj/vector.h>

#include <algorithm>
#include <optional>

#include "core/disk/trace.h"

namespace cairn::worker {

// One fetch: what its calls share.
struct Mirror::Fetching {
  // Where the shard is; not at another place than when the fetch began.
  std::shared_ptr<ShardLink> link(ShardId shard) const {
    if (store.routing() != routing)
      throw AbortedError("the layout changed while copies of variables were fetched by it");
    return store.link(shard);
  }
  void saw(const ShardLink& link, ShardId shard, const StateReply& reply) {
    const auto [first, fresh] = lineages.try_emplace(shard, reply.version.lineage);
    if (!fresh && first->second != reply.version.lineage)
      throw AbortedError(
          str(link.name(), " was replaced or restored while copies of its variables were fetched"));
  }

  RemoteStore& store;
  StepContext step;
  std::shared_ptr<const Routing> routing;
  std::map<VariableId, VariableCopy> copies;
  std::map<ShardId, Lineage> lineages;  // of the shards, as first seen
  bool failed = false;                  // then no further calls are made
};

namespace {

// Notes a failure where its scope ends early.
class NotesFailure {
 public:
  explicit NotesFailure(bool& failed) : failed_(failed) {}
  ~NotesFailure() { failed_ = failed_ || !well_; }
  NotesFailure(const NotesFailure&) = delete;
  NotesFailure& operator=(const NotesFailure&) = delete;
  void ended_well() { well_ = true; }

 private:
  bool& failed_;
  bool well_ = false;
};

}  // namespace

void Mirror::forget() {
  copies_.clear();
  round_ = 0;
  ++changes_;
}

VariableCopy& Mirror::copy(VariableId variable) {
  const auto found = copies_.find(variable);
  if (found == copies_.end())
    throw FailedPreconditionError(
        str("this lane has no copy of variable number ", variable, ": fetch it first"));
  return found->second;
}

rpc::Task<void> Mirror::fetch(RemoteStore& store, StepContext step,
                              std::vector<VariableId> variables) {
  std::erase_if(variables, [this](VariableId one) { return has(one); });
  if (variables.empty()) co_return;
  if (store.routing() == nullptr)
    throw FailedPreconditionError("this lane has no layout yet, and cannot know where rows are");
  const TraceSpan span("fetch copies", step.closure, TraceSpan::Kind::kOverlapping);
  const std::uint64_t changes = changes_;
  Fetching fetching{store, step, store.routing(), {}, {}};
  for (const VariableId one : variables)
    fetching.copies.try_emplace(one, fetching.routing->variable(one));
  kj::Vector<kj::Promise<void>> calls;
  for (const auto& [variable, copy] : fetching.copies)
    for (std::uint32_t part = 0; part < copy.parts(); ++part)
      calls.add(fetch_part(fetching, variable, part).start());
  // All of them end before this does, so that nothing of a failed fetch is left under way.
  auto all = kj::joinPromises(calls.releaseAsArray());
  co_await kj::mv(all);
  if (changes != changes_)
    throw AbortedError("the copies of this lane changed while others were fetched");
  copies_.merge(fetching.copies);
}

// Calls one after the other, each for as many rows as a message should have. Nothing holds the part
// still between two of them, so that they are asked as of which write they are.
rpc::Task<void> Mirror::fetch_part(Fetching& fetching, VariableId variable, std::uint32_t part) {
  NotesFailure of_fetch(fetching.failed);
  VariableCopy& copy = fetching.copies.at(variable);
  const ShardId shard = fetching.routing->variable(variable).parts[part].shard;
  const std::size_t row_bytes = std::max<std::size_t>(copy.saved_row_bytes(), 1);
  const auto rows_a_call = static_cast<std::int64_t>(
      std::max<std::size_t>(fetching.routing->piece_bytes_max() / row_bytes, 1));
  std::optional<std::uint64_t> written;
  StateCall call{fetching.step.session, fetching.routing->shard(shard).epoch, variable, part};
  do {
    if (fetching.failed) co_return;
    call.rows = static_cast<std::uint32_t>(std::min(rows_a_call, copy.rows(part) - call.begin));
    call.bytes = call.rows * copy.saved_row_bytes();
    const std::shared_ptr<ShardLink> link = fetching.link(shard);
    const StateReply reply = co_await link->read_state(call);
    fetching.saw(*link, shard, reply);
    if (written.value_or(reply.written) != reply.written)
      throw AbortedError(str("variable \"", copy.spec().name, "\", part ", part,
                             ", was written to while a copy of it was fetched"));
    // The coordinator lays out slots on the ps before it sends the layout to the lanes.
    if (reply.rows.size() != call.bytes)
      throw AbortedError(str(link->name(), " has ", reply.rows.size(), " bytes of ", call.rows,
                             " rows of variable \"", copy.spec().name, "\", layout version ",
                             fetching.routing->layout().version, " of this lane ", call.bytes));
    written = reply.written;
    copy.put(part, call.begin, reply.rows);
    copy.set_updates(part, reply.updates);
    call.begin += call.rows;
  } while (call.begin < copy.rows(part));
  of_fetch.ended_well();
}

void Mirror::read(std::span<Read> reads) {
  for (Read& one : reads) one.value = copy(one.variable).read(one.ids);
}

// All updates are checked before the first is applied, so that a wrong one leaves everything as it
// was.
void Mirror::apply(std::span<const Update> updates, std::uint64_t round, RowEncoding encoding) {
  for (const Update& one : updates) copy(one.variable).verify(one);
  for (const Update& one : updates) copy(one.variable).apply(one, encoding);
  round_ = round;
  ++changes_;
}

std::uint64_t Mirror::fingerprint(const std::set<VariableId>& variables) const {
  std::uint64_t hash = 0;
  for (const auto& [variable, copy] : copies_)
    if (variables.contains(variable)) hash = copy.fingerprint(hash + variable + 1);
  return hash;
}
std::uint64_t Mirror::fingerprint() const {
  std::set<VariableId> all;
  for (const auto& [variable, copy] : copies_) all.insert(variable);
  return fingerprint(all);
}

}  // namespace cairn::worker
