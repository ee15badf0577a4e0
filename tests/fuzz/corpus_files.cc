// Seeds that are files, or descriptions of one: what is read from disks and jobs.
#include <fstream>
#include <iterator>

#include "core/base/checksum.h"
#include "core/graph/ops.h"
#include "core/graph/wire/wire.h"
#include "core/rows/frequency_sketch.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "data/dataset/state.h"
#include "data/stage/dataset_wire.h"
#include "storage/manifest.h"
#include "storage/row_block.h"
#include "tests/core/graph_testing.h"
#include "tests/fuzz/corpus_seeds.h"

namespace cairn::fuzz {
namespace {

using testing::arg;
using testing::make_variable;
using testing::trace_function;
using Arrays = std::vector<Array>;

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
  say("bf16", rows, encode(rows, stored, {RowForm::kBfloat16, SlotForm::kBfloat16}));
  say("int8", rows, encode(rows, stored, {.rows = RowForm::kInt8}));
  say("zstd", rows, encode(rows, stored, {RowForm::kInt8, SlotForm::kExact, Compression::kZstd}));
  const std::string gone = encode(RecordKey{"w", RecordKind::kGone, 10});
  say("gone", gone, encode(gone, GoneRows{10, {0, 5, std::uint64_t{1} << 40}}));
  const std::string seen = encode(RecordKey{"w", RecordKind::kSeen, 0});
  FrequencySketch sketch(64);
  for (std::uint64_t hash = 1; hash < 40; ++hash) sketch.add(hash * 0x9e3779b97f4a7c15u);
  say("seen", seen, encode(seen, SeenRows{{0, 20}, 7, sketch.saved()}));
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
  seed("job", "conditions", R"([data]
train = "a.csv"
where = ["day % 5 != 0", "carrier in ['UA', \"AA\"]", "'time of day' >= -1.5e2", "delay known"]
test_where = "late == 1"
[data.csv]
columns = ["day:int32", "carrier", "time of day:float32", "delay:float32", "late:bool"]
label = {column = "delay", above = 15, unknown = "skip"}
[model]
objective = "binary"
[evaluation]
every = "10%"
metrics = ["logloss", "auc"]
[validation]
files = "a.csv"
where = "day % 5 == 0"
[early_stopping]
monitor = "auc"
min_delta = 0.001
)");
  seed("job", "wrong", "[data]\ntrain = 3\nbatsh = 7\n");
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
      {"text-lines", Dataset::text_lines("tests/fuzz/data/lines.csv", {.skip_blank = true})
                         .shard(2, 1)
                         .repeat(2)},
      {"libsvm", Dataset::libsvm("tests/fuzz/data/lines.svm").interleave(2).batch(2)},
      {"tfrecords", Dataset::tfrecords("tests/fuzz/data/examples.tfrecord",
                                       {{{"x", DType::kInt64, {2}},
                                         {"w", DType::kString, {}, true},
                                         {"f", DType::kFloat32, {2}, false, "1"}}},
                                       {OnError::kSkipAndCount})
                        .repeat(2)},
      {"idx",
       Dataset::idx({{"image", {"tests/fuzz/data/images.idx"}, DType::kUint8, {2, 3}}}).shuffle(2)},
      {"tensors",
       Dataset::from_tensor_slices({{"x", Tensor::of<float>({3, 1}, std::vector<float>{1, 2, 3})},
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

void graphs() {
  using testing::floats;
  using testing::ints;
  const Variable w = make_variable("w", {4, 2}), b = make_variable("b", {2});
  function("dense", {floats({testing::kAny, 4})}, [&](const auto& in) {
    return mean(square(relu(matmul(arg(in, 0), w.read()) + b.read())));
  });
  function("train", {floats({3, 4})}, [&](const auto& in) {
    const Array value = w.read(), loss = mean(square(matmul(arg(in, 0), value)));
    w.update({RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}}, grad(loss, Arrays{value}).at(0),
             Array(0.1f));
    return loss;
  });
  function("sparse", {ints({3})}, [&](const auto& in) {
    w.scatter_add(arg(in, 0), w.gather(arg(in, 0)) * 2.0f);
    b.assign_add(Array(Tensor::of<float>({2}, std::vector<float>{1, 2})));
    return sum(w.gather(arg(in, 0)));
  });
  function("shapes", {floats({2, 3, 4})}, [](const auto& in) {
    const Array x = arg(in, 0);
    return Arrays{
        transpose(x, {2, 0, 1}), reshape(x, {-1, 4}),         concat({x, x}, 1), slice(x, 1, 1, 2),
        stack({x, x}, 0),        reduce_max(x, {0, 2}, true), argmax(x, 1)};
  });
  function("images", {floats({1, 6, 5, 2}), floats({3, 2, 2, 3})}, [](const auto& in) {
    const Array &x = arg(in, 0), y = conv2d(x, arg(in, 1), {{2, 1}, Padding::kSame, {1, 1}});
    return Arrays{y, max_pool2d(x, {{2, 2}, {1, 2}}),
                  avg_pool2d(x, {{3, 2}, {2, 1}, Padding::kSame})};
  });
  function("scatter", {floats({6, 3}), ints({4}), floats({4, 3})}, [](const auto& in) {
    const Array &table = arg(in, 0), &ids = arg(in, 1), &rows = arg(in, 2);
    return Arrays{scatter_max(table, ids, rows), unsorted_segment_sum(rows, ids, 6),
                  gather(table, ids), one_hot(ids, 7)};
  });
  function("random", {floats({3, 2})}, [](const auto& in) {
    return Arrays{random_uniform({3, 2}), dropout(arg(in, 0), 0.5f), random_integers({5}, -3, 9),
                  string_hash_bucket(Tensor::strings({2}, {"a", "b"}), 7)};
  });
  const ElementSpec batch{{{"x", floats({testing::kAny, 2})}, {"y", floats({testing::kAny})}}, "y"};
  function("iterator", {batch}, [](const auto& in) {
    const Batch got = std::get<Iterator>(in[0]).get_next();
    return Arrays{sum(got.features["x"]), softmax(got.features["x"]), sigmoid(got.label)};
  });
}

}  // namespace

void seeds_of_files() {
  manifests();
  row_blocks();
  jobs();
  datasets();
  graphs();
}

}  // namespace cairn::fuzz
