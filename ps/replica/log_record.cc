#include "ps/replica/log_record.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/graph/wire/wire.h"
#include "ps/wire/wire_requests.h"
#include "rpc/wire/step_wire.h"

namespace cairn::ps {
namespace {

// Smaller payloads take no buffer of the pool, whose buffers are large.
constexpr std::size_t kPooledBytesMin = std::size_t{16} << 10;

std::size_t size_of(const RowChange& change) {
  std::size_t bytes = 0;
  for (const LoggedUpdate& update : change.updates)
    bytes += update.ids.size_bytes() + update.values.size();
  return bytes;
}

// Row numbers first: behind them the values are aligned.
void fill(LogRecord& record, RowChange& change, rpc::BufferPool& buffers) {
  std::byte* out = record.allocate(size_of(change), buffers).data();
  for (const LoggedUpdate& update : change.updates) {
    if (!update.ids.empty()) std::memcpy(out, update.ids.data(), update.ids.size_bytes());
    out += update.ids.size_bytes();
  }
  for (LoggedUpdate& update : change.updates) {
    const std::size_t bytes = update.values.size();
    if (bytes > 0) std::memcpy(out, update.values.data(), bytes);
    update.values = {out, bytes};
    out += bytes;
  }
}

void write(capnp::List<wire::UpdateHeader>::Builder out, const RowChange& change) {
  for (unsigned i = 0; i < out.size(); ++i) {
    const LoggedUpdate& update = change.updates[i];
    out[i].setVariable(update.header->variable);
    out[i].setPart(update.header->part);
    out[i].setRows(static_cast<std::uint32_t>(update.ids.size()));
    out[i].setWhole(update.header->whole);
    out[i].setLearningRate(update.header->learning_rate);
    cairn::wire::write_kept(out[i].initRule(), update.header->rule);
  }
}

// Headers with the row numbers and values that the payload has for them.
struct Updates {
  std::vector<UpdateHeader> headers;
  PushPiece piece;
};

Updates read_updates(capnp::List<wire::UpdateHeader>::Reader in,
                     std::span<const std::byte> payload) {
  Updates updates{read_headers(in), {}};
  std::size_t ids = 0;
  for (const UpdateHeader& header : updates.headers) ids += header.rows;
  if (ids > payload.size() / sizeof(std::int64_t))
    throw InvalidArgumentError(
        str("a record of ", ids, " row numbers, whose payload has ", payload.size(), " bytes"));
  updates.piece.headers = updates.headers;
  updates.piece.ids = {reinterpret_cast<const std::int64_t*>(payload.data()), ids};
  updates.piece.values = payload.subspan(ids * sizeof(std::int64_t));
  return updates;
}

ShardBooks read_books(wire::ShardBooks::Reader in) {
  ShardBooks books{in.getSession(),
                   Lineage(in.getVersion().getLineage()),
                   in.getVersion().getCounter(),
                   in.getFirstLayout(),
                   in.getStep(),
                   {in.getLowWatermark(), in.getAnnounced(), {}},
                   {}};
  for (const auto push : cairn::wire::bounded(in.getApplied(), 1u << 24, "applied pushes")) {
    auto& closures = books.ledger.closures;
    if (closures.empty() || closures.back().first != push.getClosure())
      closures.push_back({push.getClosure(), {}});
    closures.back().second.push_back({push.getNumber(), push.getSlice(), push.getCounter()});
  }
  for (const auto table : cairn::wire::bounded(in.getTables(), 1u << 20, "tables"))
    books.tables.push_back(
        {{table.getVariable(), table.getPart()}, table.getUpdates(), table.getWritten()});
  const auto shares = in.getShares();
  books.with_shares = shares.getCopied();
  books.rounds.over = shares.getOver();
  for (const std::uint64_t round : cairn::wire::bounded(shares.getLost(), 1u << 20, "lost rounds"))
    books.rounds.lost.push_back(round);
  return books;
}

void put_rows(Shard& shard, wire::CopiedRows::Reader in, std::span<const std::byte> payload) {
  if (in.getKeyBytes() > payload.size())
    throw InvalidArgumentError(
        str("copied rows of ", payload.size(), " bytes, whose key has ", in.getKeyBytes()));
  const std::string_view all(reinterpret_cast<const char*>(payload.data()), payload.size());
  ShardCopy(shard).put(
      {in.getVariable(), in.getPart()},
      storage::decode_rows(all.substr(0, in.getKeyBytes()), all.substr(in.getKeyBytes())));
}

void compare_rows(Shard& shard, wire::Record::Sums::Reader in, std::span<const std::byte> payload) {
  SummedRows theirs{in.getRowBytes(), static_cast<RuleKind>(in.getRule()), in.getBegin(),
                    in.getRows()};
  theirs.held = in.getHeld();
  for (const std::uint64_t sum : cairn::wire::bounded(in.getSums(), 1u << 24, "sums of rows"))
    theirs.sums.push_back(sum);
  theirs.numbers.resize(payload.size() / sizeof(std::int64_t));
  if (!theirs.numbers.empty())
    std::memcpy(theirs.numbers.data(), payload.data(),
                theirs.numbers.size() * sizeof(std::int64_t));
  ShardCopy(shard).compare({in.getVariable(), in.getPart()}, theirs);
}

}  // namespace

std::size_t LogRecord::bytes() const {
  return bytes_ + head_.totalSize().wordCount * sizeof(capnp::word);
}

std::span<std::byte> LogRecord::allocate(std::size_t bytes, rpc::BufferPool& buffers) {
  bytes_ = bytes;
  if (bytes < kPooledBytesMin) {
    const auto words = std::make_shared<std::vector<std::uint64_t>>(bytes / 8 + 1);
    payload_ = {words, reinterpret_cast<std::byte*>(words->data())};
  } else {
    const rpc::BufferPool::Buffer buffer = buffers.take(bytes);
    payload_ = {buffer, reinterpret_cast<std::byte*>(buffer.get())};
  }
  return {payload_.get(), bytes};
}

std::shared_ptr<LogRecord> record_of(const ShardBooks& books) {
  auto record = std::make_shared<LogRecord>();
  auto out = record->head().initBooks();
  out.setSession(books.session);
  out.initVersion().setLineage(books.lineage.number);
  out.getVersion().setCounter(books.counter);
  out.setFirstLayout(books.first_layout);
  out.setStep(books.step);
  out.setLowWatermark(books.ledger.low_watermark);
  out.setAnnounced(books.ledger.announced);
  std::size_t pushes = 0;
  for (const auto& [closure, all] : books.ledger.closures) pushes += all.size();
  auto applied = out.initApplied(static_cast<unsigned>(pushes));
  unsigned next = 0;
  for (const auto& [closure, all] : books.ledger.closures)
    for (const PushLedger::Push& push : all) {
      auto one = applied[next++];
      one.setClosure(closure);
      one.setNumber(push.number);
      one.setSlice(push.slice);
      one.setCounter(push.counter);
    }
  auto tables = out.initTables(static_cast<unsigned>(books.tables.size()));
  for (unsigned i = 0; i < tables.size(); ++i) {
    tables[i].setVariable(books.tables[i].id.variable);
    tables[i].setPart(books.tables[i].id.part);
    tables[i].setUpdates(books.tables[i].updates);
    tables[i].setWritten(books.tables[i].written);
  }
  auto shares = out.initShares();
  shares.setCopied(books.with_shares);
  shares.setOver(books.rounds.over);
  auto lost = shares.initLost(static_cast<unsigned>(books.rounds.lost.size()));
  for (unsigned i = 0; i < lost.size(); ++i) lost.set(i, books.rounds.lost[i]);
  return record;
}

std::shared_ptr<LogRecord> record_of(TableId table, const std::string& variable,
                                     const storage::StoredRows& rows, rpc::BufferPool& buffers) {
  auto record = std::make_shared<LogRecord>();
  const std::string key = storage::encode({variable, storage::RecordKind::kRows, rows.first_row});
  const std::string value = storage::encode(key, rows);
  auto out = record->head().initRows();
  out.setVariable(table.variable);
  out.setPart(table.part);
  out.setKeyBytes(static_cast<std::uint32_t>(key.size()));
  std::byte* payload = record->allocate(key.size() + value.size(), buffers).data();
  std::memcpy(payload, key.data(), key.size());
  std::memcpy(payload + key.size(), value.data(), value.size());
  return record;
}

std::shared_ptr<LogRecord> record_of(RowChange& change, rpc::BufferPool& buffers) {
  auto record = std::make_shared<LogRecord>();
  fill(*record, change, buffers);
  change.kept = record;
  const auto updates = static_cast<unsigned>(change.updates.size());
  if (change.round == nullptr) {
    auto out = record->head().initPush();
    cairn::wire::write(out.initStep(), change.step);
    out.setSlice(change.slice);
    out.setEncoding(change.encoding == RowEncoding::kBfloat16 ? wire::Encoding::BFLOAT16
                                                              : wire::Encoding::RAW);
    write(out.initHeaders(updates), change);
    return record;
  }
  auto out = record->head().initRound();
  out.setRound(change.round->round);
  auto members = out.initMembers(static_cast<unsigned>(change.round->members.size()));
  for (unsigned i = 0; i < members.size(); ++i) {
    members[i].setClosure(change.round->members[i].closure);
    members[i].setSentLayout(change.round->members[i].sent_layout);
  }
  write(out.initSums(updates), change);
  return record;
}

std::shared_ptr<LogRecord> record_of(TableId table, const SummedRows& rows,
                                     rpc::BufferPool& buffers) {
  auto record = std::make_shared<LogRecord>();
  auto out = record->head().initSums();
  out.setVariable(table.variable);
  out.setPart(table.part);
  out.setRowBytes(rows.row_bytes);
  out.setRule(static_cast<std::uint16_t>(rows.rule));
  out.setBegin(rows.begin);
  out.setRows(rows.rows);
  out.setHeld(rows.held);
  auto sums = out.initSums(static_cast<unsigned>(rows.sums.size()));
  for (unsigned i = 0; i < sums.size(); ++i) sums.set(i, rows.sums[i]);
  const std::size_t bytes = rows.numbers.size() * sizeof(std::int64_t);
  if (bytes > 0) std::memcpy(record->allocate(bytes, buffers).data(), rows.numbers.data(), bytes);
  return record;
}

std::shared_ptr<LogRecord> record_of_announced(std::uint64_t closures_below,
                                               std::uint64_t settled_below) {
  auto record = std::make_shared<LogRecord>();
  auto out = record->head().initAnnounced();
  out.setClosuresBelow(closures_below);
  out.setSettledBelow(settled_below);
  return record;
}

std::shared_ptr<LogRecord> record_of_complete() {
  auto record = std::make_shared<LogRecord>();
  record->head().setComplete();
  return record;
}

std::shared_ptr<LogRecord> record_of_probe() {
  auto record = std::make_shared<LogRecord>();
  record->head().setProbe();
  return record;
}

void replay(Shard& shard, wire::Record::Reader head, std::span<const std::byte> payload) {
  switch (head.which()) {
    case wire::Record::BOOKS: return ShardCopy(shard).begin(read_books(head.getBooks()));
    case wire::Record::ROWS: return put_rows(shard, head.getRows(), payload);
    case wire::Record::PUSH: {
      const auto push = head.getPush();
      const Updates updates = read_updates(push.getHeaders(), payload);
      PushRequest request{.step = cairn::wire::read(push.getStep()),
                          .pulled = {},
                          .headers = updates.piece.headers,
                          .ids = updates.piece.ids,
                          .values = updates.piece.values,
                          .encoding = read_encoding(push.getEncoding()),
                          .slice = push.getSlice(),
                          .owner = nullptr};
      return ShardCopy(shard).replay(request);
    }
    case wire::Record::ROUND: {
      const auto round = head.getRound();
      const Updates updates = read_updates(round.getSums(), payload);
      const std::vector<RoundMember> members = read_members(round.getMembers());
      return ShardCopy(shard).replay({shard.session(), round.getRound(), members}, updates.piece);
    }
    case wire::Record::ANNOUNCED: {
      const auto announced = head.getAnnounced();
      return shard.announce(shard.session(), announced.getClosuresBelow(),
                            announced.getSettledBelow());
    }
    case wire::Record::SUMS: return compare_rows(shard, head.getSums(), payload);
    case wire::Record::COMPLETE:
    case wire::Record::PROBE: return;
  }
  throw InvalidArgumentError("a record of a kind that this release does not know");
}

}  // namespace cairn::ps
