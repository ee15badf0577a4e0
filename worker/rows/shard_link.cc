#include "worker/rows/shard_link.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/graph/wire/wire.h"
#include "rpc/cairn.capnp.h"
#include "rpc/loop/reactor.h"
#include "rpc/net/connection.h"
#include "rpc/net/shared_memory.h"
#include "rpc/wire/step_wire.h"

namespace cairn::worker {
namespace {

// of a message apart from its blobs, roughly; for credit and first segment
constexpr std::size_t kCallBytes = 512;

std::size_t size_of(std::span<const Bytes> parts) {
  std::size_t size = 0;
  for (const Bytes& part : parts) size += part.size;
  return size;
}

// A blob in the message: copied into it if it is small, else attached to it. (A small one is in one
// place: what is in several has kScatteredBytesMin in each.)
capnp::Orphan<capnp::Data> blob(rpc::Connection& connection, capnp::Orphanage orphanage,
                                std::span<const Bytes> parts) {
  if (parts.empty()) return {};
  const std::size_t size = size_of(parts);
  const Bytes& first = parts.front();
  if (size <= kCopiedBytesMax)
    return orphanage.newOrphanCopy(
        capnp::Data::Reader(reinterpret_cast<const kj::byte*>(first.data), size));
  if (parts.size() == 1)
    return connection.attach(orphanage, rpc::Attachment(first.data, size, first.owner));
  std::vector<rpc::ByteStream::Piece> pieces;
  pieces.reserve(parts.size());
  for (const Bytes& part : parts)
    pieces.push_back(
        {kj::arrayPtr(reinterpret_cast<const kj::byte*>(part.data), part.size), part.owner});
  return connection.attach(orphanage, rpc::Attachment(std::move(pieces)));
}

std::size_t inline_words(std::size_t bytes) { return bytes <= kCopiedBytesMax ? bytes / 8 + 1 : 0; }

template <typename Builder>
void write_rows(Builder out, const PartRows& rows) {
  out.setVariable(rows.variable);
  out.setPart(rows.part);
  out.setRows(rows.rows);
  out.setWhole(rows.whole);
}

void write_place(wire::Place::Builder out, std::uint64_t offset, const Bytes& bytes) {
  out.setOffset(offset);
  out.setBytes(bytes.size);
}

ShardVersion read(wire::Version::Reader in) { return {in.getLineage(), in.getCounter()}; }

wire::Encoding wire_encoding(RowEncoding encoding) {
  return encoding == RowEncoding::kBfloat16 ? wire::Encoding::BFLOAT16 : wire::Encoding::RAW;
}

std::string link_name(const ShardAddress& shard) {
  return str(rpc::task_name(rpc::Role::kPs, shard.ps), " shard ", shard.endpoint - 1, " (",
             shard.address.str(), ")");
}

}  // namespace

struct ShardLink::Live : private kj::TaskSet::ErrorHandler {
  Live(std::unique_ptr<rpc::Connection> made, const rpc::RegisterMemory& registers)
      : connection(std::move(made)), shard(connection->bootstrap<wire::Shard>()), calls(*this) {
    if (connection->peer().shared != nullptr) pool.emplace(connection->peer().shared, registers);
  }

  std::optional<std::uint64_t> shared_offset(const Bytes& bytes) const {
    return pool.has_value() && bytes.size > 0 ? pool->memory().offset_of(bytes.data, bytes.size)
                                              : std::nullopt;
  }

  // An update without rows has no values, and its place has no bytes. Values that lie in memory of
  // an earlier connection cannot be named to this one: the shard has mapped another memory by now.
  void write_places(capnp::List<wire::Place>::Builder out, std::span<const Bytes> values) const {
    for (unsigned i = 0; i < out.size(); ++i) {
      const auto offset = shared_offset(values[i]);
      if (values[i].size > 0 && !offset)
        throw UnavailableError(
            "the connection was lost, and the memory shared with it, when values had been laid "
            "there");
      write_place(out[i], offset.value_or(0), values[i]);
    }
  }

  // The shard reads and writes the places that a call named until it has answered, and a closure
  // that was dropped meanwhile does not change that. So the call goes on here without its caller,
  // and
  // `kept` holds its places until the answer: were they used again sooner, a late answer would be
  // written into the values of another closure. A connection that ends takes the mapping with it.
  template <typename Response, typename Kept>
  kj::Promise<Response> see_through(kj::Promise<Response> call, Kept kept) {
    auto pair = kj::newPromiseAndFulfiller<Response>();
    auto fulfiller =
        std::make_shared<kj::Own<kj::PromiseFulfiller<Response>>>(kj::mv(pair.fulfiller));
    calls.add(call.then(
        [fulfiller, kept](Response&& response) { (*fulfiller)->fulfill(kj::mv(response)); },
        [fulfiller, kept](kj::Exception&& error) { (*fulfiller)->reject(kj::mv(error)); }));
    return kj::mv(pair.promise);
  }

  std::unique_ptr<rpc::Connection> connection;
  wire::Shard::Client shard;
  std::optional<rpc::SharedPool> pool;
  kj::TaskSet calls;

 private:
  void taskFailed(kj::Exception&&) override {}  // the callers that waited got the error
};

struct ShardLink::Dialling {
  kj::ForkedPromise<void> done;
};

ShardLink::ShardLink(rpc::Reactor& reactor, rpc::Network& network, ShardAddress shard,
                     rpc::Hello hello, ShardLinkOptions options)
    : reactor_(reactor),
      network_(network),
      shard_(std::move(shard)),
      hello_(std::move(hello)),
      options_(options),
      name_(link_name(shard_)) {
  hello_.endpoint = shard_.endpoint;
}

ShardLink::~ShardLink() = default;

bool ShardLink::connected() const { return live_ != nullptr && live_->connection->connected(); }

// Small blobs stay in the message (shared_min), and all of them do until the connection stands.
bool ShardLink::shares(std::size_t bytes) const {
  return bytes > 0 && bytes >= options_.shared_min && connected() && live_->pool.has_value();
}

bool ShardLink::shared(const Bytes& bytes) const {
  return connected() && live_->shared_offset(bytes).has_value();
}

Bytes ShardLink::take(std::size_t bytes) {
  if (shares(bytes))
    if (Bytes shared = take_shared(bytes); shared.data != nullptr) return shared;
  return pooled_bytes(reactor_.buffers(), bytes);
}

Bytes ShardLink::take_shared(std::size_t bytes) {
  auto buffer = connected() && live_->pool.has_value() ? live_->pool->take(bytes) : nullptr;
  return {buffer, reinterpret_cast<std::byte*>(buffer.get()), buffer != nullptr ? bytes : 0};
}

void ShardLink::close() {
  if (live_) live_->connection->close();
}

// Several closures may find the link down at once; they share one attempt.
rpc::Task<void> ShardLink::connect() {
  if (connected()) co_return;
  if (!dialling_) dialling_ = std::make_unique<Dialling>(Dialling{dial().start().fork()});
  co_await dialling_->done.addBranch();
}

// A ps that was restarted may need a moment until it listens again, so refused attempts are
// repeated, with pauses that double. The deadline is short, because the coordinator has the closure
// run again anyway, and should hear of a lost ps soon.
rpc::Task<void> ShardLink::dial() {
  const Duration until = reactor_.now() + options_.connect_deadline;
  Duration backoff = options_.backoff_min;
  std::string reason = "no time left";
  std::exception_ptr refused;
  while (reactor_.now() < until) {
    try {
      rpc::ConnectionOptions wanted;
      wanted.shared_bytes = options_.shared_bytes;
      wanted.credit_bytes = options_.pieces_under_way * (options_.piece_bytes_max + kCallBytes);
      auto connection = co_await network_.connect(reactor_, shard_.address, hello_,
                                                  until - reactor_.now(), wanted);
      live_ = std::make_shared<Live>(std::move(connection), options_.register_memory);
      break;
    } catch (const UnavailableError& error) {
      reason = error.what();
    } catch (const DeadlineExceededError& error) {
      reason = error.what();
    } catch (const Error&) {  // a refusal, or no memory: trying again will not help
      refused = std::current_exception();
      break;
    }
    co_await reactor_.sleep(std::min(backoff, std::max(until - reactor_.now(), Duration(0))));
    backoff = std::min(backoff * 2, options_.backoff_max);
  }
  // The next connect() dials anew. This frame belongs to the object that is dropped, so it goes on
  // a later turn.
  reactor_.post([old = std::shared_ptr<Dialling>(std::move(dialling_))] {});
  if (refused) std::rethrow_exception(refused);
  if (!connected()) throw UnavailableError(str(name_, " cannot be reached: ", reason));
}

void ShardLink::lost(const char* doing, const Error& error) const {
  throw UnavailableError(str(doing, " ", name_, ": ", error.what()), error.task());
}

kj::Promise<rpc::Credit> ShardLink::acquire_credit(rpc::Way way, std::size_t bytes) {
  // The shard answers a piece that lies in shared memory only when it has the whole push. If pieces
  // of several pushes held all the credit, none of these pushes could ever be completed.
  if (shares(bytes)) return rpc::Credit();
  return live_->connection->acquire_credit(way, bytes + kCallBytes);
}

rpc::Task<PullReply> ShardLink::pull(PullCall call) {
  auto self = shared_from_this();
  if (!connected()) co_await connect();
  auto live = live_;
  try {
    // Three ways for the values: where the caller wants them, if the shard can write there; into
    // other shared memory, if they are large enough; else in the reply.
    const Bytes into = live->shared_offset(call.into) ? call.into
                       : shares(call.value_bytes)     ? take(call.value_bytes)
                                                      : Bytes{};
    const auto ids_at = live->shared_offset(call.ids), values_at = live->shared_offset(into);
    auto request = live->shard.pullRequest(capnp::MessageSize{
        kCallBytes / 8 + call.headers.size() * 4 + inline_words(call.ids.size), 0});
    write(request.initStep(), call.step);
    auto headers = request.initHeaders(static_cast<unsigned>(call.headers.size()));
    for (unsigned i = 0; i < headers.size(); ++i) {
      write_rows(headers[i], call.headers[i]);
      headers[i].setWritten(call.headers[i].written);
    }
    request.setCopiesOf(call.copies_of.number);
    if (ids_at)
      write_place(request.initIdsAt(), *ids_at, call.ids);
    else
      request.adoptIds(
          blob(*live->connection,
               capnp::Orphanage::getForMessageContaining(wire::Shard::PullParams::Builder(request)),
               {&call.ids, 1}));
    if (values_at) write_place(request.initValuesAt(), *values_at, into);
    request.setEncoding(wire_encoding(call.encoding));
    // No wait between attaching the ids and this: see Connection::attach().
    kj::Promise<capnp::Response<wire::Shard::PullResults>> sent = request.send();
    if (ids_at || values_at) sent = live->see_through(kj::mv(sent), std::pair(call.ids, into));
    auto answered = reactor_.with_deadline(kj::mv(sent), options_.call_deadline, "the pull");
    auto reply = co_await kj::mv(answered);
    const auto whole = std::count_if(call.headers.begin(), call.headers.end(),
                                     [](const PartRows& rows) { return rows.whole; });
    const auto told = reply.getWritten();
    if (told.size() != static_cast<std::size_t>(whole))
      throw InternalError(str(name_, " tells the last write of ", told.size(), " parts, where ",
                              whole, " were read"));
    std::vector<std::uint64_t> written;
    for (const std::uint64_t one : told) written.push_back(one);
    if (values_at)
      co_return PullReply{
          read(reply.getVersion()), std::move(written), {into.data, into.size}, into.owner};
    // The values stay in the received message, which lives as long as a read refers to it.
    auto kept = std::make_shared<capnp::Response<wire::Shard::PullResults>>(kj::mv(reply));
    const auto values = kept->getValues();
    if (call.copies_of == 0 ? values.size() != call.value_bytes : values.size() > call.value_bytes)
      throw InternalError(str(name_, " answered a pull with ", values.size(),
                              " bytes of values where ", call.value_bytes, " were asked for"));
    const auto version = read(kept->getVersion());
    co_return PullReply{version,
                        std::move(written),
                        {reinterpret_cast<const std::byte*>(values.begin()), values.size()},
                        std::move(kept)};
  } catch (const UnavailableError& error) {
    lost("pulling from", error);
  } catch (const DeadlineExceededError& error) {
    lost("pulling from", error);
  }
}

rpc::Task<StateReply> ShardLink::read_state(StateCall call) {
  auto self = shared_from_this();
  if (!connected()) co_await connect();
  auto live = live_;
  try {
    auto leave = live->connection->acquire_credit(rpc::Way::kIn, call.bytes + kCallBytes);
    const rpc::Credit credit = co_await kj::mv(leave);
    auto request = live->shard.readStateRequest(capnp::MessageSize{kCallBytes / 8, 0});
    request.setSession(call.session);
    request.setEpoch(call.epoch.number);
    request.setVariable(call.variable);
    request.setPart(call.part);
    request.setBegin(call.begin);
    request.setRows(call.rows);
    kj::Promise<capnp::Response<wire::Shard::ReadStateResults>> sent = request.send();
    auto answered =
        reactor_.with_deadline(kj::mv(sent), options_.call_deadline, "the reading of rows");
    auto reply = co_await kj::mv(answered);
    // The rows stay in the received message, which lives as long as a reference to it.
    auto kept = std::make_shared<capnp::Response<wire::Shard::ReadStateResults>>(kj::mv(reply));
    const auto rows = kept->getRows();
    co_return StateReply{kept->getUpdates(),
                         read(kept->getVersion()),
                         kept->getWritten(),
                         {reinterpret_cast<const std::byte*>(rows.begin()), rows.size()},
                         kept};
  } catch (const UnavailableError& error) {
    lost("reading the state of variables from", error);
  } catch (const DeadlineExceededError& error) {
    lost("reading the state of variables from", error);
  }
}

rpc::Task<PushReply> ShardLink::push(PushCall call) {
  auto self = shared_from_this();
  if (!connected()) co_await connect();
  auto live = live_;
  try {
    const std::size_t places = call.values_shared ? call.values.size() : 0;
    const auto ids_at = live->shared_offset(call.ids);
    const auto words = kCallBytes / 8 + call.headers.size() * 10 + inline_words(call.ids.size) +
                       places * 2 + inline_words(places > 0 ? 0 : size_of(call.values));
    auto request = live->shard.pushRequest(capnp::MessageSize{words, 0});
    write(request.initStep(), call.step);
    request.initPulled().setLineage(call.pulled.lineage.number);
    request.getPulled().setCounter(call.pulled.counter);
    auto headers = request.initHeaders(static_cast<unsigned>(call.headers.size()));
    for (unsigned i = 0; i < headers.size(); ++i) {
      write_rows(headers[i], call.headers[i].rows);
      wire::write_kept(headers[i].initRule(), call.headers[i].rule);
      headers[i].setLearningRate(call.headers[i].learning_rate);
    }
    auto orphanage =
        capnp::Orphanage::getForMessageContaining(wire::Shard::PushParams::Builder(request));
    if (ids_at)
      write_place(request.initIdsAt(), *ids_at, call.ids);
    else
      request.adoptIds(blob(*live->connection, orphanage, {&call.ids, 1}));
    if (places > 0)
      live->write_places(request.initValuesAt(static_cast<unsigned>(places)), call.values);
    else
      request.adoptValues(blob(*live->connection, orphanage, call.values));
    request.setEncoding(wire_encoding(call.encoding));
    request.setPiece(call.piece);
    request.setPieces(call.pieces);
    request.setSlice(call.slice);
    kj::Promise<capnp::Response<wire::Shard::PushResults>> sent = request.send();
    if (ids_at || places > 0)
      sent = live->see_through(kj::mv(sent), std::pair(call.ids, call.values));
    auto answered = reactor_.with_deadline(kj::mv(sent), options_.call_deadline, "the push");
    auto reply = co_await kj::mv(answered);
    co_return PushReply{read(reply.getVersion()), reply.getStaleness(), reply.getDuplicate()};
  } catch (const UnavailableError& error) {
    lost("pushing to", error);
  } catch (const DeadlineExceededError& error) {
    lost("pushing to", error);
  }
}

}  // namespace cairn::worker
