#include "ps/server/follow_service.h"

#include <algorithm>
#include <cstring>

#include "core/graph/wire/wire.h"
#include "ps/server/await_rows.h"
#include "ps/wire/wire_requests.h"

namespace cairn::ps {
namespace {

// A lane that no fence knows: a reader is no lane.
constexpr std::uint64_t kNoLane = ~std::uint64_t{0};

std::int64_t step_of(const ShardHost& host) {
  return static_cast<std::int64_t>(
      host.shard.counters().follow.step.load(std::memory_order_relaxed));
}

// Rows of a variable whose initial value is given are all sent, so that its bytes stay here.
void write(wire::Shard::DescribeResults::Builder out, const Shard::Described& described) {
  out.setDescription(described.described);
  out.setSeed(described.seed);
  auto tables = out.initTables(static_cast<unsigned>(described.tables.size()));
  for (unsigned i = 0; i < tables.size(); ++i) {
    const auto& [id, table] = described.tables[i];
    VariableSpec spec = table->spec();
    if (spec.initializer.kind == Initializer::Kind::kValue) spec.initializer = {};
    tables[i].setVariable(id.variable);
    cairn::wire::write(tables[i].initSpec(), spec);
    auto part = tables[i].initParts(1)[0];
    part.setVariable(id.variable);
    part.setIndex(id.part);
    part.setBegin(table->range().begin);
    part.setEnd(table->range().end);
  }
}

template <typename T>
capnp::Data::Reader bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const kj::byte*>(values.data()), values.size() * sizeof(T)};
}

void write(wire::Shard::ChangesResults::Builder out, const ChangesAnswer& answer) {
  out.setDescription(answer.described);
  out.setIncarnation(answer.incarnation);
  out.setCursor(answer.cursor);
  out.setStep(answer.step);
  out.setAgeUs(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(answer.age).count()));
  out.setMore(answer.more);
  const ChangedRows& changed = answer.changed;
  auto tables = out.initTables(static_cast<unsigned>(changed.tables.size()));
  for (unsigned i = 0; i < tables.size(); ++i) {
    const ChangedRows::OfTable& table = changed.tables[i];
    tables[i].setVariable(table.variable);
    tables[i].setPart(table.part);
    tables[i].setRows(table.rows);
    tables[i].setGone(table.gone);
    tables[i].setBegins(table.begins);
    tables[i].setComplete(table.complete);
  }
  out.setRows(bytes_of(changed.rows));
  out.setGone(bytes_of(changed.gone));
  out.setValues(bytes_of(changed.values));
}

}  // namespace

kj::Promise<void> FollowService::describe(DescribeContext context) {
  return rpc::at_once([&] {
    connection_.allow({rpc::Role::kReader, rpc::Role::kTool}, "Shard.describe");
    auto results = context.initResults();
    write(results, host_->shard.describe());
    results.setSession(host_->shard.session());
    results.setStep(step_of(*host_));
  });
}

kj::Promise<void> FollowService::changes(ChangesContext context) {
  return rpc::at_once([&] {
    connection_.allow({rpc::Role::kReader}, "Shard.changes");
    connection_.verify_reading();
    ChangesRequest request = read_changes(context.getParams());
    request.from = str(connection_.peer().name(), " at ", connection_.peer().address);
    context.releaseParams();
    const ChangesAnswer answer = host_->subscriptions.changes(request);
    write(context.initResults(), answer);
  });
}

kj::Promise<void> FollowService::readRows(ReadRowsContext context) {
  std::optional<kj::Promise<void>> later;
  auto answered = rpc::at_once([&] {
    connection_.allow({rpc::Role::kReader, rpc::Role::kTool}, "Shard.readRows");
    connection_.verify_reading();
    const auto params = context.getParams();
    const Shard::Described described = host_->shard.describe();
    if (params.getDescription() != described.described) {
      context.initResults().setDescription(described.described);
      return;
    }
    DecodedPull pull = read_rows(params);
    pull.request.step.session = host_->shard.session();
    pull.request.step.epoch = host_->shard.epoch();
    pull.request.step.incarnation = kNoLane;
    if (host_->shard.must_wait(pull.request)) {
      std::vector<std::int64_t> ids(pull.request.ids.begin(), pull.request.ids.end());
      later = connection_.guard(
          answer_rows_later(context, pull.request, std::move(pull.headers), std::move(ids)));
    } else {
      answer_rows(context, pull.request);
    }
  });
  return later.has_value() ? kj::mv(*later) : kj::mv(answered);
}

// Some rows of this read are not in memory. As for a pull, they are fetched first, and the read is
// answered then. If a restore comes meanwhile, the rows are asked for again.
rpc::Task<void> FollowService::answer_rows_later(ReadRowsContext context, PullRequest request,
                                                 std::vector<ReadHeader> headers,
                                                 std::vector<std::int64_t> ids) {
  request.headers = headers;
  request.ids = ids;
  while (host_->shard.must_wait(request)) {
    const Lineage seen = host_->shard.version().lineage;
    const Hold hold{host_, host_->shard.wait(request)};
    kj::Promise<PushResult> rows = await_rows(host_, hold.wait);
    co_await kj::mv(rows);
    if (seen != host_->shard.version().lineage) continue;
    connection_.verify_reading();
    co_return answer_rows(context, request);
  }
  connection_.verify_reading();
  answer_rows(context, request);
}

void FollowService::answer_rows(ReadRowsContext context, const PullRequest& request) {
  VerifiedPull& rows = host_->shard.pull(request);
  auto results = context.initResults();
  results.setDescription(host_->shard.describe().described);
  results.setStep(step_of(*host_));
  rpc::BufferPool::Buffer buffer = connection_.buffers().take(rows.bytes());
  rows.read(reinterpret_cast<std::byte*>(buffer.get()));
  const void* const values = buffer.get();
  const auto orphanage = capnp::Orphanage::getForMessageContaining(results);
  const std::size_t bytes = rows.bytes();
  results.adoptValues(
      connection_.attach(orphanage, rpc::Attachment(values, bytes, std::move(buffer))));
}

}  // namespace cairn::ps
