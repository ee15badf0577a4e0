// Writes the seeds of every target from real messages and files: fuzz_make_corpus
// tests/fuzz/corpus. Run it in the repository's root after a format has changed; what fuzzing has
// found beside them stays.
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "core/graph/ops.h"
#include "core/graph/wire.h"
#include "data/dataset.h"
#include "data/dataset_iterator.h"
#include "data/dataset_wire.h"
#include "data/state.h"
#include "rpc/error_wire.h"
#include "rpc/hello.h"
#include "storage/checksum.h"
#include "storage/manifest.h"
#include "storage/row_block.h"
#include "tests/core/graph_testing.h"
#include "tests/fuzz/served_ps.h"

namespace cairn::fuzz {
namespace {

namespace fs = std::filesystem;
using testing::make_variable;
using testing::trace_function;
using Arrays = std::vector<Array>;

fs::path corpus;

void seed(const std::string& target, const std::string& name, std::string_view bytes) {
  fs::create_directories(corpus / target);
  std::ofstream(corpus / target / ("seed-" + name), std::ios::binary) << bytes;
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A root struct as the target's message.
template <typename T, typename Fill>
std::string message(unsigned choice, Fill fill) {
  capnp::MallocMessageBuilder builder;
  fill(builder.initRoot<T>());
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asBytes();
  return std::string(1, static_cast<char>(choice)) +
         std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

// A message of these words in one segment.
std::string words(unsigned choice, const std::vector<std::uint64_t>& all) {
  const std::uint32_t head[2] = {0, static_cast<std::uint32_t>(all.size())};
  std::string bytes(1, static_cast<char>(choice));
  bytes.append(reinterpret_cast<const char*>(head), sizeof head);
  return bytes.append(reinterpret_cast<const char*>(all.data()), 8 * all.size());
}
// A pointer to a struct of pointers, `offset` words on; to a list of structs; the head of such a
// list, 2^29 - 1 empty structs long.
constexpr std::uint64_t struct_pointer(std::uint64_t offset, std::uint64_t pointers) {
  return offset << 2 | pointers << 48;
}
constexpr std::uint64_t list_pointer(std::uint64_t offset) {
  return offset << 2 | 1 | std::uint64_t{7} << 32;
}
constexpr std::uint64_t kEmptyStructs = ((std::uint64_t{1} << 29) - 1) << 2;

// Lists that claim to be long and take no bytes.
void amplifiers() {
  seed("reply", "amplified", words(0, {struct_pointer(0, 1), list_pointer(0), kEmptyStructs}));
  seed("lane_message", "amplified-layout",
       words(0, {struct_pointer(0, 1), struct_pointer(0, 2), list_pointer(1), 0, kEmptyStructs}));
  seed("lane_message", "amplified-run",
       words(1, {struct_pointer(0, 1), list_pointer(0), kEmptyStructs}));
  seed("lane_message", "amplified-closure",
       words(1, {struct_pointer(0, 1), list_pointer(0) | std::uint64_t{2} << 35,
                 struct_pointer(1, 2), list_pointer(1), 0, kEmptyStructs}));
  seed("shard_message", "amplified",
       words(3, {struct_pointer(0, 4), 0, 0, struct_pointer(1, 1), 0, list_pointer(0),
                 kEmptyStructs}));
}

void hellos() {
  auto say = [](const std::string& name, const std::vector<std::uint8_t>& bytes) {
    seed("hello", name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  rpc::Hello hello = hello_to_shard();
  say("worker", rpc::encode(hello));
  hello.version = 9;
  say("version", rpc::encode(hello));
  rpc::HelloReply reply;
  reply.accepted = true;
  reply.endpoints = 3;
  say("accepted", rpc::encode(reply));
  reply.accepted = false;
  reply.reason = "/job:ps/task:1 refuses /job:worker/task:2: the tokens differ";
  say("refused", rpc::encode(reply));
}

void error_texts() {
  auto say = [](const std::string& name, const ErrorParts& parts) {
    const kj::Exception error = rpc::to_kj(parts);
    seed("error_text", name, std::string(1, '\0') + error.getDescription().cStr());
  };
  say("plain", {Code::kAborted, "closure 3 pulled from incarnation 4", "/job:ps/task:1"});
  say("input", {Code::kInvalidArgument, "cell 3", "/job:worker/task:0", 12});
  say("internal", {Code::kInternal, "a check of the peer's own", "/job:ps/task:0"});
  seed("error_text", "remote", std::string("\2remote exception: remote exception: {cairn 3 0 }no"));
  seed("error_text", "foreign", std::string("\1Peer disconnected."));
}

void manifests() {
  using namespace storage;
  Manifest full{.checkpoint = 42,
                .global_step = 1000,
                .saved_at_us = 1'700'000'000'000'001,
                .session = ~std::uint64_t{0},
                .seed = 9,
                .layout_version = 3};
  full.variables.push_back({"deep/kernel",
                            DType::kFloat32,
                            {128, 64},
                            true,
                            {RuleKind::kAdagrad, {0.1f, 1e-7f}},
                            {"accumulator"},
                            {{0, 64}, {64, 128}}});
  full.databases.push_back(
      {"ps-0-shard-0", 192, 70'000, {{"ps-0-shard-0/000008.sst", 65'000, 0xdeadbeef}}});
  full.low_watermark = 990;
  full.applied = {{991, 993}, {999, 1000}};
  full.datasets.push_back({"0", 4321, std::string("\0state\xff\n", 8), 4300, {{4325, 4327}}});
  full.metadata = R"({"job":"adult","seed":3,"nested":[[1],{"a":null}]})";
  const std::string whole = to_text(full);
  seed("manifest", "whole", whole);
  std::string first = whole.substr(0, whole.rfind(",\n \"crc32c\"")) + "\n}\n";
  first.replace(first.find("\"format\": 2"), 11, "\"format\": 1");
  seed("manifest", "format-1", str(first, "checksum ", crc32c(first), "\n"));
  seed("manifest", "body", first.substr(0, first.size() - 1));
  const std::string empty = to_text(Manifest{});
  seed("manifest", "empty", empty.substr(0, empty.size() - 1));
}

void row_blocks() {
  using namespace storage;
  auto say = [](const std::string& name, const std::string& key, const std::string& value) {
    seed("row_block", name,
         std::string(1, static_cast<char>(key.size())) + key + value.substr(0, value.size() - 4));
  };
  const std::string rows = encode(RecordKey{"w", RecordKind::kRows, 10});
  StoredRows stored{DType::kFloat32, RuleKind::kAdagrad,        1, 2, 10,
                    {0, 1, 2},       std::vector<std::byte>(48)};
  say("contiguous", rows, encode(rows, stored));
  stored.offsets = {0, 5, 700};
  say("listed", rows, encode(rows, stored));
  stored.offsets = {0, 5, std::uint64_t{1} << 40};
  say("hashed", rows, encode(rows, stored));
  const std::string table = encode(RecordKey{"w", RecordKind::kTable, 0});
  say("table", table,
      encode(table, TableRecord{"w",
                                DType::kFloat32,
                                {20, 2},
                                {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}},
                                {"m", "v"},
                                {0, 20},
                                7}));
  say("hashed-table", table,
      encode(table, TableRecord{"w",
                                DType::kFloat32,
                                {20, 2},
                                {RuleKind::kAdagrad, {0.1f, 1e-7f}},
                                {"accumulator"},
                                {0, 20},
                                7,
                                true}));
}

void jobs() {
  std::ifstream adult("examples/adult.toml");
  seed("job", "adult", std::string(std::istreambuf_iterator<char>(adult), {}));
  seed("job", "records", R"(name = "r"
[data]
format = "records"
train = ["a.bin", "b.bin"]
steps = 100
[data.records]
fields = ["label:float32", "numeric:float32[8]", "id:int64"]
label = "label"
[features]
log1p = ["numeric"]
hashed = {id = 100}
ids = {id = 1000}
[checkpoint]
every = 500
[evaluation]
every = "30s"
)");
  seed("job", "wrong", "[data]\ntrain = 3\nbatsh = 7\n");
}

std::string gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(plain.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void csvs() {
  const std::string lines = "1,x,3\n0.5,\"q \"\"z\"\"\",2\n,,9\n 7 ,w|v,?\n",
                    header = "c,a,b\r\n3,1,x\r\n4,2,\"y\r\nz\"\r\n";
  seed("csv", "plain", std::string(1, 2) + lines);
  seed("csv", "header", std::string(1, 1) + header);
  seed("csv", "skipping", std::string(1, 8 | 16 | 2) + lines + "short\n1,2,3,4\n\"open");
  seed("csv", "tabs", std::string(1, 4 | 32) + "#c\n1\tx\t2\n\n3\ty\t4");
  seed("csv", "cells-of-lines",
       std::string(1, static_cast<char>(128 | 8)) + "1,\"a\nb\",2\n3,\"c\nd\ne\nf,4\n5,\"g\"h,6\n");
  seed("csv", "strict", std::string(1, static_cast<char>(128 | 32)) + "\xEF\xBB\xBF#c\n1,x\"y,2\n");
  seed("csv", "stages", std::string(1, 64 | 8) + lines + lines);
  seed("csv", "gzip", std::string(1, 2) + gzip(lines));
  seed("csv", "gzip-twice", std::string(1, 1) + gzip(header) + gzip("5,6,w\n"));
}

CsvSchema small_schema() {
  CsvSchema schema;
  schema.columns = {{.name = "a"},
                    {.name = "b", .dtype = DType::kString, .separator = '|'},
                    {.name = "c", .dtype = DType::kInt64, .default_value = "7"}};
  schema.header = true;
  return schema;
}

// Each with the state after one element.
void datasets() {
  const auto map = [](const Features& in) {
    return Outputs{{"twice", cast(in["value"], DType::kFloat32) * 2.0f}};
  };
  const RecordSchema records{{{"label", DType::kFloat32, 1}, {"ids", DType::kInt32, 2}}, "label"};
  const std::vector<std::pair<std::string, Dataset>> all = {
      {"range", Dataset::range(20).shuffle(5, 3).repeat(2).shard(2, 1).batch(2).prefetch(2)},
      {"csv", Dataset::csv("tests/fuzz/data/lines.csv", small_schema(), {OnError::kSkipAndCount})
                  .take(3)
                  .batch(2)},
      {"features",
       Dataset::csv("tests/fuzz/data/lines.csv", small_schema())
           .shard(2, 0)
           .features({FeatureColumn::numeric({{.column = "a", .log1p = true}}),
                      FeatureColumn::hashed("b", 10), FeatureColumn::bucketised("a", {0, 1})})
           .batch(2)},
      {"records",
       Dataset::records("tests/fuzz/data/records.bin", records).skip(1).repeat(3).batch(2)},
      {"tensors",
       Dataset::from_tensors({{"x", Tensor::of<float>({3, 1}, std::vector<float>{1, 2, 3})},
                              {"s", Tensor::strings({3}, {"p", "", "q"})}},
                             "x")
           .repeat(2)},
      {"map", Dataset::range(6).batch(4).map(map)}};
  for (const auto& [name, dataset] : all) {
    const auto iterator = open(dataset);
    iterator->next();
    StateReader state(iterator->state().bytes);
    for (int i = 0; i < 3; ++i) state.number();
    const std::string stages = text(state.blob()), body = text(serialize(dataset)).substr(24);
    seed("dataset", name, std::string{1, static_cast<char>(stages.size())} + stages + body);
  }
}

template <typename Body>
void function(const std::string& name, const std::vector<SignatureEntry>& signature, Body body) {
  seed("graph", name, text(serialize(trace_function(signature, body).graph)));
}
Array array(const TraceArgument& argument) { return std::get<Array>(argument); }

void graphs() {
  using testing::floats;
  using testing::ints;
  const Variable w = make_variable("w", {4, 2}), b = make_variable("b", {2});
  function("dense", {floats({testing::kAny, 4})}, [&](const auto& in) {
    return mean(square(relu(matmul(array(in[0]), w.read()) + b.read())));
  });
  function("train", {floats({3, 4})}, [&](const auto& in) {
    const Array value = w.read(), loss = mean(square(matmul(array(in[0]), value)));
    w.update({RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}}, grad(loss, Arrays{value}).at(0),
             Array(0.1f));
    return loss;
  });
  function("sparse", {ints({3})}, [&](const auto& in) {
    w.scatter_add(array(in[0]), w.gather(array(in[0])) * 2.0f);
    b.assign_add(Array(Tensor::of<float>({2}, std::vector<float>{1, 2})));
    return sum(w.gather(array(in[0])));
  });
  function("shapes", {floats({2, 3, 4})}, [](const auto& in) {
    const Array x = array(in[0]);
    return Arrays{
        transpose(x, {2, 0, 1}), reshape(x, {-1, 4}),         concat({x, x}, 1), slice(x, 1, 1, 2),
        stack({x, x}, 0),        reduce_max(x, {0, 2}, true), argmax(x, 1)};
  });
  function("images", {floats({1, 6, 5, 2}), floats({3, 2, 2, 3})}, [](const auto& in) {
    const Array &x = array(in[0]), y = conv2d(x, array(in[1]), {{2, 1}, Padding::kSame, {1, 1}});
    return Arrays{y, max_pool2d(x, {{2, 2}, {1, 2}}),
                  avg_pool2d(x, {{3, 2}, {2, 1}, Padding::kSame})};
  });
  function("scatter", {floats({6, 3}), ints({4}), floats({4, 3})}, [](const auto& in) {
    const Array &table = array(in[0]), &ids = array(in[1]), &rows = array(in[2]);
    return Arrays{scatter_max(table, ids, rows), unsorted_segment_sum(rows, ids, 6),
                  gather(table, ids), one_hot(ids, 7)};
  });
  function("random", {floats({3, 2})}, [](const auto& in) {
    return Arrays{random_uniform({3, 2}), dropout(array(in[0]), 0.5f), random_integers({5}, -3, 9),
                  string_hash_bucket(Tensor::strings({2}, {"a", "b"}), 7)};
  });
  const ElementSpec batch{{{"x", floats({testing::kAny, 2})}, {"y", floats({testing::kAny})}}, "y"};
  function("iterator", {batch}, [](const auto& in) {
    const Batch got = std::get<Iterator>(in[0]).get_next();
    return Arrays{sum(got.features["x"]), softmax(got.features["x"]), sigmoid(got.label)};
  });
}

void step(wire::Step::Builder out, std::uint64_t closure) {
  out.setSession(7);
  out.setLayoutVersion(1);
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
  out.initPulled().setIncarnation(100);
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
         auto server = layout.initServers(1)[0];
         server.setAddress("sim://ps0");
         server.setShards(2);
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
                                        return sum(array(in[0]));
                                      }).graph);
         out.setFunction(9);
         out.setGraph(data_of(bytes.data(), bytes.size()));
       }));
  seed("lane_message", "pipeline", message<L::OpenPipelineParams>(3, [](auto out) {
         const auto bytes = serialize(Dataset::range(20).batch(4));
         out.setPipeline(9);
         out.setDescription(data_of(bytes.data(), bytes.size()));
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
}

// What a client's calls put on the wire, written down by a listener that never answers.
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

void make_all() {
  hellos();
  error_texts();
  manifests();
  row_blocks();
  jobs();
  csvs();
  datasets();
  graphs();
  shard_messages();
  lane_messages();
  replies();
  rpc_streams();
  amplifiers();
}

}  // namespace
}  // namespace cairn::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "fuzz_make_corpus FOLDER: writes the seeds there\n";
    return 2;
  }
  cairn::fuzz::corpus = argv[1];
  cairn::fuzz::make_all();
}
