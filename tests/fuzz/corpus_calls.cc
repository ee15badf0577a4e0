// Seeds that are calls and replies of services, and whole streams of them.
#include <cstring>

#include "core/graph/ops.h"
#include "core/graph/wire/wire.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "data/stage/dataset_wire.h"
#include "rpc/loop/error_wire.h"
#include "rpc/net/hello.h"
#include "storage/row_block.h"
#include "tests/core/graph_testing.h"
#include "tests/core/some_rules.h"
#include "tests/fuzz/corpus_seeds.h"
#include "tests/fuzz/served_ps.h"

namespace cairn::fuzz {
namespace {

using testing::arg;
using testing::trace_function;

void step(wire::Step::Builder out, std::uint64_t closure) {
  out.setSession(7);
  out.setSentLayout(1);
  out.setClosure(closure);
  out.setIncarnation(1);
}
const std::vector<std::int64_t> kIds = {1, 3, 6};
capnp::Data::Reader data_of(const void* data, std::size_t bytes) {
  return {static_cast<const kj::byte*>(data), bytes};
}

void fill_push(wire::Shard::PushParams::Builder out, std::uint32_t piece, std::uint32_t pieces) {
  static const std::vector<float> values(8, 1.0f);
  step(out.initStep(), 9);
  auto headers = out.initHeaders(2);
  headers[0].setRows(3);
  headers[0].setLearningRate(0.1f);
  wire::write(headers[0].initRule(), UpdateRule{RuleKind::kAdagrad, {0.1f, 1e-7f}});
  headers[1].setVariable(2);
  headers[1].setWhole(true);
  wire::write(headers[1].initRule(), UpdateRule{});
  out.setIds(data_of(kIds.data(), 24));
  std::vector<float> all(11, 0.5f);
  out.setValues(data_of(all.data(), 44));
  out.setPiece(piece);
  out.setPieces(pieces);
  out.initPulled().setLineage(100);
}

void shard_messages() {
  using S = wire::Shard;
  seed("shard_message", "pull", message<S::PullParams>(0, [](auto out) {
         step(out.initStep(), 9);
         auto headers = out.initHeaders(2);
         headers[0].setRows(3);
         headers[1].setVariable(1);
         headers[1].setPart(1);
         headers[1].setWhole(true);
         out.setIds(data_of(kIds.data(), 24));
         out.setEncoding(wire::Encoding::BFLOAT16);
       }));
  seed("shard_message", "push", message<S::PushParams>(1, [](auto out) { fill_push(out, 0, 1); }));
  seed("shard_message", "push-from-places", message<S::PushParams>(1, [](auto out) {
         fill_push(out, 0, 1);
         auto places = out.initValuesAt(2);
         places[0].setBytes(24);
         places[1].setOffset(64);
         places[1].setBytes(20);
       }));
  seed("shard_message", "piece", message<S::PushParams>(1, [](auto out) { fill_push(out, 1, 2); }));
  for (const bool keep : {false, true})
    seed("shard_message", keep ? "attach" : "configure",
         message<S::ConfigureParams>(2, [&](auto out) {
           out.setSession(keep ? 8 : 7);
           out.setLayoutVersion(2);
           auto table = out.initTables(1)[0];
           table.setVariable(keep ? 0 : 5);
           wire::write(table.initSpec(), VariableSpec{.name = keep ? "w" : "new",
                                                      .shape = {8, 2},
                                                      .initializer = Initializer::uniform(-1, 1)});
           wire::write(table.initRule(), UpdateRule{RuleKind::kFtrl, {}});
           auto part = table.initParts(1)[0];
           part.setVariable(keep ? 0 : 5);
           part.setEnd(8);
         }));
  seed("shard_message", "configure-custom", message<S::ConfigureParams>(2, [](auto out) {
         out.setSession(7);
         auto table = out.initTables(1)[0];
         wire::write(table.initSpec(), VariableSpec{.name = "own", .shape = {8, 2}});
         wire::write(table.initRule(), testing::own_adam());
         table.initParts(1)[0].setEnd(8);
       }));
  seed("shard_message", "restore", message<S::RestoreParams>(3, [](auto out) {
         out.setFolder("ckpt");
         auto range = out.initApplied().initClosures(1)[0];
         range.setBegin(3);
         range.setEnd(7);
         out.initVariables(1).set(0, 1);
       }));
  seed("shard_message", "mark", message<S::MarkParams>(4, [](auto out) { out.setAttempt(3); }));
  seed("shard_message", "fence", message<S::FenceParams>(5, [](auto out) {
         out.setSession(7);
         out.setNewest(5);
         out.initAlive(1).set(0, 4);
       }));
  seed("shard_message", "read-state", message<S::ReadStateParams>(7, [](auto out) {
         out.setSession(7);
         out.setVariable(1);
         out.setPart(1);
         out.setBegin(1);
         out.setRows(1);
       }));
  seed("shard_message", "record-books", message<S::RecordParams>(10, [](auto out) {
         out.setStream(1);
         auto books = out.initRecord().initBooks();
         books.setSession(7);
         books.initVersion().setLineage(100);
         books.setAnnounced(100);
         books.initApplied(1)[0].setClosure(3);
         books.initTables(1)[0].setWritten(2);
       }));
  seed("shard_message", "record-push", message<S::RecordParams>(10, [](auto out) {
         auto push = out.initRecord().initPush();
         step(push.initStep(), 9);
         auto header = push.initHeaders(1)[0];
         header.setRows(3);
         wire::write(header.initRule(), UpdateRule{RuleKind::kAdagrad, {0.1f, 1e-7f}});
         std::vector<std::byte> payload(48);
         std::memcpy(payload.data(), kIds.data(), 24);
         out.setPayload(data_of(payload.data(), payload.size()));
       }));
  seed("shard_message", "record-round", message<S::RecordParams>(10, [](auto out) {
         auto round = out.initRecord().initRound();
         round.setRound(2);
         round.initMembers(1)[0].setClosure(4);
         auto header = round.initSums(1)[0];
         header.setVariable(2);
         header.setWhole(true);
         wire::write(header.initRule(), UpdateRule{RuleKind::kSgd, {}});
         const std::vector<float> values(5, 1.0f);
         out.setPayload(data_of(values.data(), 20));
       }));
  seed("shard_message", "record-probe", message<S::RecordParams>(10, [](auto out) {
         out.setStream(1);
         out.initRecord().setProbe();
       }));
  seed("shard_message", "record-sums", message<S::RecordParams>(10, [](auto out) {
         out.setStream(1);
         auto sums = out.initRecord().initSums();
         sums.setRowBytes(16);
         sums.setRule(static_cast<std::uint16_t>(RuleKind::kAdagrad));
         sums.setRows(8);
         sums.setHeld(8);
         sums.initSums(1).set(0, 1);
       }));
  seed("shard_message", "record-rows", message<S::RecordParams>(10, [](auto out) {
         storage::StoredRows rows{.rule = RuleKind::kAdagrad, .slots = 1, .dim = 2};
         rows.offsets = {0, 1};
         rows.data.resize(32);
         const std::string key = storage::encode({"w", storage::RecordKind::kRows, 0});
         const std::string all = key + storage::encode(key, rows);
         out.initRecord().initRows().setKeyBytes(static_cast<std::uint32_t>(key.size()));
         out.setPayload(data_of(all.data(), all.size()));
       }));
  seed("shard_message", "changes", message<S::ChangesParams>(8, [](auto out) {
         out.setSubscriber(3);
         out.setDescription(1);
         out.setBytesMax(100);
         out.initVariables(1).set(0, 1);
       }));
  seed("shard_message", "read-rows", message<S::ReadRowsParams>(9, [](auto out) {
         out.initHeaders(1)[0].setRows(3);
         out.setIds(data_of(kIds.data(), 24));
       }));
}

void fill_closure(wire::Closure::Builder out, std::uint32_t function) {
  out.setSequence(5);
  out.setFunction(function);
  if (function == 1)
    return wire::write(out.initArguments(1)[0],
                       Tensor::of<float>({3}, std::vector<float>{1, 2, 3}));
  auto take = out.initTakes(1)[0];
  take.setPipeline(4);
  take.setOrdinal(2);
  take.setCount(1);
  const auto iterator = open(Dataset::range(20).batch(4));
  iterator->next();
  take.setStateOrdinal(1);
  take.setState(data_of(iterator->state().bytes.data(), iterator->state().bytes.size()));
}

void lane_messages() {
  using L = wire::Lane;
  seed("lane_message", "layout", message<L::SetLayoutParams>(0, [](auto out) {
         auto layout = out.initLayout();
         layout.setVersion(3);
         auto shards = layout.initShards(2);
         for (unsigned i = 0; i < 2; ++i) {
           shards[i].initPrimary().setAddress("sim://ps0");
           shards[i].getPrimary().setEndpoint(1 + i);
           shards[i].setEpoch(1);
         }
         auto variable = layout.initVariables(1)[0];
         wire::write(variable.initSpec(), VariableSpec{.name = "w", .shape = {8, 2}});
         wire::write(variable.initRule(), UpdateRule{});
         auto parts = variable.initParts(2);
         parts[0].setEnd(4);
         parts[1].setShard(1);
         parts[1].setBegin(4);
         parts[1].setEnd(8);
       }));
  for (std::uint32_t function : {1, 2})
    seed("lane_message", "run-" + std::to_string(function), message<L::RunParams>(1, [&](auto out) {
           fill_closure(out.initClosures(1)[0], function);
         }));
  seed("lane_message", "register", message<L::RegisterParams>(2, [](auto out) {
         const auto bytes = serialize(trace_function({testing::floats({2})}, [](const auto& in) {
                                        return sum(arg(in, 0));
                                      }).graph);
         out.setFunction(9);
         out.setGraph(data_of(bytes.data(), bytes.size()));
       }));
  seed("lane_message", "pipeline", message<L::OpenPipelineParams>(3, [](auto out) {
         const auto bytes = serialize(Dataset::range(20).batch(4));
         out.setPipeline(9);
         out.setDescription(data_of(bytes.data(), bytes.size()));
       }));
  seed("lane_message", "join", message<L::JoinGroupParams>(4, [](auto out) {
         out.setGroup(7);
         auto members = out.initMembers(2);
         members[0].setAddress("sim://worker");
         members[1].setTask(1);
         members[1].setAddress("sim://other");
       }));
}

void replies() {
  seed("reply", "closure", message<wire::ClosureResult>(0, [](auto out) {
         auto outputs = out.initOutputs(2);
         wire::write(outputs[0], Tensor::scalar(0.5f));
         wire::write(outputs[1], Tensor::strings({2}, {"a", "bc"}));
         auto state = out.initStates(1)[0];
         state.setOrdinal(7);
         state.setState(data_of("state", 5));
       }));
  seed("reply", "mark", message<wire::Shard::MarkResults>(1, [](auto out) {
         out.initVersion().setCounter(7);
         auto ranges = out.initApplied().initClosures(2);
         ranges[0].setEnd(3);
         ranges[1].setBegin(5);
         ranges[1].setEnd(6);
       }));
  seed("reply", "saved", message<wire::Shard::SaveResults>(2, [](auto out) {
         auto file = out.initFiles(1)[0];
         file.setName("ps-0-shard-0/000008.sst");
         file.setBytes(65'000);
       }));
  seed("reply", "described", message<wire::Shard::DescribeResults>(3, [](auto out) {
         auto table = out.initTables(1)[0];
         wire::write(table.initSpec(), VariableSpec{.name = "w", .shape = {8, 2}});
         table.initParts(1)[0].setEnd(8);
       }));
  seed("reply", "changes", message<wire::Shard::ChangesResults>(4, [](auto out) {
         const std::vector<std::int64_t> rows{1, 3};
         const std::vector<float> values(4, 0.5f);
         auto table = out.initTables(1)[0];
         table.setRows(2);
         table.setGone(1);
         out.setRows(data_of(rows.data(), 16));
         out.setGone(data_of(rows.data(), 8));
         out.setValues(data_of(values.data(), 16));
       }));
}

// The bytes that a client's calls put on the wire, recorded by a listener that never answers.
template <typename Calls>
std::string recorded(Calls calls) {
  rpc::SimReactor reactor;
  rpc::SimNetwork network(reactor);
  auto listener = network.host("ps").listen(reactor, rpc::Address::parse("sim://ps"));
  auto dialled =
      network.host("worker")
          .connect(reactor, listener->address(), hello_to_shard(), std::chrono::seconds(5))
          .eagerlyEvaluate(nullptr);
  auto socket = reactor.wait(listener->accept());
  auto stream = socket->attach(reactor, rpc::kPlainStream);
  auto received = rpc::receive_hello(*stream);
  reactor.wait(std::move(received));
  rpc::HelloReply reply;
  reply.accepted = true;
  auto sent = rpc::send_reply(*stream, reply);
  reactor.wait(std::move(sent));
  auto connection = reactor.wait(kj::mv(dialled));
  auto pending = calls(connection->bootstrap<wire::Shard>());
  std::string bytes(8192, '\0');
  auto read = stream->tryRead(bytes.data(), bytes.size(), bytes.size()).eagerlyEvaluate(nullptr);
  reactor.advance(std::chrono::milliseconds(50));
  connection->close();
  bytes.resize(reactor.wait(kj::mv(read)));
  return bytes;
}

void rpc_streams() {
  seed("rpc_stream", "open", recorded([](wire::Shard::Client shard) {
         return shard.openRequest().send().ignoreResult();
       }));
  seed("rpc_stream", "configure-push", recorded([](wire::Shard::Client shard) {
         auto configure = shard.configureRequest();
         configure.setSession(7);
         auto table = configure.initTables(1)[0];
         wire::write(table.initSpec(), VariableSpec{.name = "w", .shape = {8, 2}});
         wire::write(table.initRule(), UpdateRule{RuleKind::kAdagrad, {0.1f, 1e-7f}});
         table.initParts(1)[0].setEnd(8);
         auto configured = configure.send().ignoreResult();
         auto opened = shard.openRequest().send().ignoreResult();
         auto push = shard.pushRequest();
         fill_push(push, 0, 1);
         kj::Vector<kj::Promise<void>> all;
         all.add(kj::mv(configured));
         all.add(kj::mv(opened));
         all.add(push.send().ignoreResult());
         return kj::joinPromises(all.releaseAsArray());
       }));
  seed("rpc_stream", "save", recorded([](wire::Shard::Client shard) {
         auto save = shard.saveRequest();
         save.setFolder("ckpt");
         auto saving = save.send().ignoreResult();
         auto restore = shard.restoreRequest();
         restore.initDatabases(1).set(0, "ps-0-shard-0");
         return saving.exclusiveJoin(restore.send().ignoreResult());
       }));
  seed("rpc_stream", "huge", std::string("\0\0\0\0\xff\xff\xff\x7f", 8));
}

void http_requests() {
  const std::string host = " HTTP/1.1\r\nHost: a\r\n",
                    body = "POST /v1/models/m:predict" + host +
                           "Content-Type: application/json\r\nContent-Length: 17\r\n\r\n"
                           "{\"instances\":[1]}",
                    chunks = "POST /c" + host +
                             "Transfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n"
                             "0a\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
                    last = "GET /?q HTTP/1.0\r\nConnection: keep-alive, x\r\n\r\n";
  seed("http_request", "pipelined", std::string(1, 6) + body + chunks + "\r\n" + last);
  seed("http_request", "byte-by-byte", std::string(1, 0) + chunks + body);
  seed("http_request", "continue",
       std::string(1, 63) + "PUT /" + host +
           "Expect: 100-continue\r\nX:  folded\r\n  value \r\nContent-Length: 2, 2\r\n\r\nab");
  seed("http_request", "too-large",
       std::string(1, 9) + body + "POST /" + host + "Content-Length: 2049\r\n\r\n");
  seed("http_request", "encoding",
       std::string(1, 9) + "POST /" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n");
  seed("http_request", "tls",
       std::string("\1\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n", 16));
}

}  // namespace

void seeds_of_calls() {
  http_requests();
  shard_messages();
  lane_messages();
  replies();
  rpc_streams();
}

}  // namespace cairn::fuzz
