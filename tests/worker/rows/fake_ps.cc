#include "tests/worker/rows/fake_ps.h"

#include "rpc/net/shared_memory.h"

namespace cairn::worker {
namespace {

// The bytes that came in the message, or that lie in the memory shared with the worker.
capnp::Data::Reader bulk(bool placed, wire::Place::Reader place, capnp::Data::Reader sent,
                         const rpc::SharedMemory* shared) {
  if (!placed) return sent;
  const auto bytes = shared->at(place.getOffset(), place.getBytes());
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

std::vector<std::int64_t> ids_of(capnp::Data::Reader in) {
  const auto* begin = reinterpret_cast<const std::int64_t*>(in.begin());
  return {begin, begin + in.size() / sizeof(std::int64_t)};
}

template <typename Header>
PartRows rows_of(Header in) {
  PartRows rows{in.getVariable(), in.getPart(), in.getRows(), in.getWhole()};
  if constexpr (requires { in.getWritten(); }) rows.written = in.getWritten();
  return rows;
}

void write_version(wire::Version::Builder out, const ShardVersion& version) {
  out.setLineage(version.lineage.number);
  out.setCounter(version.counter);
}

// Calls `each(row, dim)` for each row that the headers name.
template <typename Each>
void for_rows(FakeShard& shard, const Asked& asked, Each each) {
  std::size_t next = 0;
  for (const PartUpdate& part : asked.parts) {
    std::vector<float>& all = shard.rows.at({part.rows.variable, part.rows.part});
    const std::int64_t dim = shard.dims.at(part.rows.variable);
    const std::int64_t n =
        part.rows.whole ? static_cast<std::int64_t>(all.size()) / dim : part.rows.rows;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t row = part.rows.whole ? i : asked.ids.at(next++);
      each(part, &all.at(static_cast<std::size_t>(row * dim)), dim);
    }
  }
}

std::vector<float> decode(capnp::Data::Reader in, bool narrow) {
  std::vector<float> out(in.size() / (narrow ? 2 : 4));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = narrow ? from_bfloat16(reinterpret_cast<const std::uint16_t*>(in.begin())[i])
                    : reinterpret_cast<const float*>(in.begin())[i];
  return out;
}

}  // namespace

kj::Promise<void> FakeShardService::pull(PullContext context) {
  auto in = context.getParams();
  Asked asked;
  asked.shard = shard_->id;
  asked.closure = in.getStep().getClosure();
  asked.incarnation = in.getStep().getIncarnation();
  asked.epoch = in.getStep().getEpoch();
  std::vector<std::uint64_t> written;
  for (auto header : in.getHeaders()) {
    const PartRows rows = rows_of(header);
    if (rows.whole)
      written.push_back(shard_->written.try_emplace({rows.variable, rows.part}, 1).first->second);
    const bool copied =
        rows.whole && in.getCopiesOf() == shard_->version.lineage && rows.written == written.back();
    if (!copied) asked.parts.push_back({rows, {}, 0});
  }
  asked.ids = ids_of(bulk(in.hasIdsAt(), in.getIdsAt(), in.getIds(), shared_.get()));
  asked.shared = in.hasValuesAt();
  const bool narrow = in.getEncoding() == wire::Encoding::BFLOAT16;
  cluster_.asked.push_back(asked);
  auto ready = cluster_.before(asked);
  return ready.then([this, asked, narrow, written, context]() mutable {
    std::vector<float> values;
    for_rows(*shard_, asked, [&](const PartUpdate&, float* row, std::int64_t dim) {
      values.insert(values.end(), row, row + dim);
    });
    auto out = context.getResults();
    write_version(out.initVersion(), shard_->version);
    auto told = out.initWritten(static_cast<unsigned>(written.size()));
    for (unsigned i = 0; i < told.size(); ++i) told.set(i, written[i]);
    const auto place = context.getParams().getValuesAt();
    kj::ArrayPtr<kj::byte> bytes;
    if (context.getParams().hasValuesAt())
      bytes = {reinterpret_cast<kj::byte*>(shared_->at(place.getOffset(), place.getBytes()).data()),
               static_cast<std::size_t>(place.getBytes())};
    else
      bytes = out.initValues(static_cast<unsigned>(values.size() * (narrow ? 2 : 4)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (narrow)
        reinterpret_cast<std::uint16_t*>(bytes.begin())[i] = to_bfloat16(values[i]);
      else
        reinterpret_cast<float*>(bytes.begin())[i] = values[i];
    }
  });
}

kj::Promise<void> FakeShardService::push(PushContext context) {
  auto in = context.getParams();
  Asked asked;
  asked.shard = shard_->id;
  asked.closure = in.getStep().getClosure();
  asked.incarnation = in.getStep().getIncarnation();
  asked.epoch = in.getStep().getEpoch();
  asked.push_number = in.getStep().getPushNumber();
  asked.push = true;
  for (auto header : in.getHeaders())
    asked.parts.push_back(
        {rows_of(header), wire::read(header.getRule()), header.getLearningRate()});
  asked.ids = ids_of(bulk(in.hasIdsAt(), in.getIdsAt(), in.getIds(), shared_.get()));
  asked.shared = in.hasValuesAt();
  asked.value_bytes = in.getValues().size();
  const bool narrow = in.getEncoding() == wire::Encoding::BFLOAT16;
  asked.values = decode(in.getValues(), narrow);
  for (const auto place : in.getValuesAt()) {
    const auto one = decode(bulk(true, place, {}, shared_.get()), narrow);
    asked.values.insert(asked.values.end(), one.begin(), one.end());
    asked.values_at.push_back(place.getOffset());
    asked.value_bytes += place.getBytes();
  }
  asked.pulled = {in.getPulled().getLineage(), in.getPulled().getCounter()};
  asked.piece = in.getPiece();
  asked.pieces = in.getPieces();
  asked.slice = in.getSlice();
  cluster_.asked.push_back(asked);
  auto ready = cluster_.before(asked);
  return ready.then([this, asked, context]() mutable {
    if (asked.pulled.lineage != 0 && asked.pulled.lineage != shard_->version.lineage)
      kj::throwRecoverableException(
          rpc::to_kj(Code::kAborted, "the rows were pulled before this shard was restarted",
                     str("/job:ps/task:", shard_->id)));
    const float* value = asked.values.data();
    for_rows(*shard_, asked, [&](const PartUpdate& part, float* row, std::int64_t dim) {
      const bool assigned = part.rule.kind == RuleKind::kAssign;
      for (std::int64_t c = 0; c < dim; ++c, ++value)
        row[c] = assigned ? *value : row[c] - part.learning_rate * *value;
    });
    ++shard_->version.counter;
    for (const PartUpdate& part : asked.parts)
      shard_->written.try_emplace({part.rows.variable, part.rows.part}, 1).first->second += 1;
    auto out = context.getResults();
    write_version(out.initVersion(), shard_->version);
    out.setStaleness(cluster_.staleness + shard_->id);
  });
}

FakeCluster::FakeCluster(std::size_t ps, std::vector<std::pair<std::string, Shape>> variables,
                         rpc::SimNetworkOptions options)
    : network(reactor, options), layout(std::make_shared<Layout>()), doors_(ps) {
  layout->version = 1;
  for (std::uint32_t i = 0; i < ps; ++i)
    layout->shards.push_back({{i, str("sim://ps", i), 1, 100 + i}, {}, 1});
  for (auto& [name, shape] : variables) {
    VariableSpec spec;
    spec.name = name;
    spec.shape = shape;
    VariableLayout place;
    place.id = static_cast<VariableId>(layout->variables.size());
    ShardId shard = 0;
    for (const RowRange& rows : split_rows(spec.rows(), static_cast<std::int64_t>(ps)))
      place.parts.push_back({shard++, rows});
    place.spec = std::make_shared<const VariableSpec>(std::move(spec));
    layout->variables.push_back(std::move(place));
  }
  for (ShardId i = 0; i < ps; ++i) {
    shards_.push_back(std::make_shared<FakeShard>());
    shards_.back()->id = i;
  }
  for (std::uint32_t i = 0; i < ps; ++i) start_ps(i);
}

void FakeCluster::fill(FakeShard& shard) const {
  for (const VariableLayout& variable : layout->variables) {
    const std::int64_t dim = variable.spec->dim();
    shard.dims[variable.id] = dim;
    for (std::uint32_t part = 0; part < variable.parts.size(); ++part) {
      if (variable.parts[part].shard != shard.id) continue;
      auto& rows = shard.rows[{variable.id, part}];
      rows.clear();
      for (std::int64_t r = variable.parts[part].rows.begin; r < variable.parts[part].rows.end; ++r)
        for (std::int64_t c = 0; c < dim; ++c) rows.push_back(initial_value(variable.id, r, c));
    }
  }
}

void FakeCluster::start_ps(std::uint32_t ps) {
  FakeShard& shard = *shards_.at(ps);
  shard.version = {next_lineage_++, 0};
  fill(shard);
  rpc::AcceptorOptions options;
  options.cluster = "test";
  options.role = rpc::Role::kPs;
  options.task = ps;
  auto none = [](const rpc::PeerInfo&, rpc::Connection&) {
    return capnp::Capability::Client(nullptr);
  };
  auto serve = [this, ps](const rpc::PeerInfo& peer,
                          rpc::Connection&) -> capnp::Capability::Client {
    return wire::Shard::Client(kj::heap<FakeShardService>(*this, shards_.at(ps), peer.shared));
  };
  std::vector<rpc::Endpoint> endpoints{{&reactor, none}, {&reactor, serve}};
  const auto host = str("ps", ps);
  doors_.at(ps) = std::make_unique<rpc::Acceptor>(
      network.host(host), rpc::Address::parse("sim://" + host), options, std::move(endpoints));
}

float FakeCluster::row(VariableId variable, std::int64_t row, std::int64_t column) const {
  const VariableLayout& place = layout->variables.at(variable);
  for (std::uint32_t part = 0; part < place.parts.size(); ++part) {
    const RowRange rows = place.parts[part].rows;
    if (row < rows.begin || row >= rows.end) continue;
    return shards_.at(place.parts[part].shard)
        ->rows.at({variable, part})
        .at(static_cast<std::size_t>((row - rows.begin) * place.spec->dim() + column));
  }
  throw NotFoundError(str("no row ", row));
}

}  // namespace cairn::worker
