// The calls of Dataset. Each checks its arguments against what the stage below yields and adds one
// stage; programs and the wire (data/stage/pipeline_wire.cc) both come through here, so a
// description that exists has been checked.
#include "data/dataset/dataset.h"

#include <algorithm>

#include "core/base/checksum.h"
#include "data/dataset/batch_pieces.h"
#include "data/dataset/dataset_calls.h"
#include "data/feature/dataset_bounds.h"

namespace cairn {
namespace {

// Bounds of interleave(): the states of all open files are part of the iterator's state, which
// travels with each element and must fit into kIteratorStateBytesMax.
constexpr std::int64_t kCycleLengthMax = 256, kInterleavedStagesMax = 2048;
constexpr std::size_t kCacheNameMax = 4000;
constexpr std::int64_t kDealtReplicasMax = 1024;
constexpr std::size_t kRebatchSizesMax = 1 << 16;
constexpr int kBatchLevelsMax = 8;
constexpr std::int64_t kParallelCallsMax = 256;

Dataset source(StageKind kind, ElementSpec element) {
  auto spec = std::make_shared<StageSpec>();
  spec->kind = std::move(kind);
  spec->element = std::move(element);
  return Dataset(std::move(spec));
}

Tensor digest_of(const Tensor& values) {
  std::vector<std::int64_t> digest = values.shape().dims();
  digest.push_back(static_cast<std::int64_t>(values.dtype()));
  std::uint32_t sum = 0;
  if (values.dtype() == DType::kString) {
    for (const std::string& text : values.string_values()) {
      const std::uint64_t bytes = text.size();
      sum = crc32c({reinterpret_cast<const char*>(&bytes), sizeof bytes}, sum);
      sum = crc32c(text, sum);
    }
  } else if (values.bytes() > 0) {
    sum = crc32c({reinterpret_cast<const char*>(values.raw()), values.bytes()});
  }
  digest.push_back(sum);
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(digest.size())}, digest);
}

}  // namespace

const std::vector<Tensor>& digests_of(const TensorsSpec& spec) {
  TensorsSpec::Digests& digests = *spec.digests;
  std::call_once(digests.made, [&] {
    for (const auto& [name, values] : spec.columns) digests.values.push_back(digest_of(values));
  });
  return digests.values;
}

const StageSpec& input_of(const Dataset& input, const char* call) {
  if (!input.defined())
    throw InvalidArgumentError(str(
        call, "() wants a dataset to build on; this one is empty; begin with csv(), range(), ..."));
  if (input.last()->depth >= kDatasetStagesMax)
    throw InvalidArgumentError(str("a dataset has at most ", kDatasetStagesMax, " stages"));
  return *input.last();
}

Dataset over(const Dataset& input, StageKind kind, ElementSpec element, int batches) {
  auto spec = std::make_shared<StageSpec>();
  spec->kind = std::move(kind);
  spec->input = input.last();
  spec->element = std::move(element);
  spec->batches = batches;
  spec->depth = input.last()->depth + 1;
  spec->nesting = input.last()->nesting;
  return Dataset(std::move(spec));
}

Dataset same_elements(const Dataset& input, const char* call, StageKind kind) {
  const StageSpec& below = input_of(input, call);
  return over(input, std::move(kind), below.element, below.batches);
}

void check_at_least(const char* what, std::int64_t value, std::int64_t least) {
  if (value < least)
    throw InvalidArgumentError(str(what, " is ", value, ", it must be at least ", least));
}

void check_batchable(const StageSpec& below, const char* call) {
  if (!below.batched()) return;
  if (below.batches == kBatchLevelsMax)
    throw InvalidArgumentError(str(call, "(): batches of batches go ", kBatchLevelsMax, " deep"));
  for (const ColumnSpec& column : below.element.columns)
    if (column.name.ends_with(kRowSplits))
      throw InvalidArgumentError(str(call, "(): the elements are batches, whose ragged column \"",
                                     column.name, "\" cannot be batched once more"));
}

void check_batch_size(const char* call, std::int64_t n) {
  if (n > (std::int64_t{1} << 31))
    throw InvalidArgumentError(str(call, ": n is ", n, ", at most 2^31 is possible"));
}

void check_paths(const std::vector<std::string>& paths) {
  if (paths.empty()) throw InvalidArgumentError("a file source wants at least one path");
  for (const auto& path : paths)
    if (path.empty() || path.find('\0') != std::string::npos)
      throw InvalidArgumentError("a path is empty or holds a zero byte");
}

Dataset Dataset::range(std::int64_t n) {
  check_at_least("the size of a range", n, 0);
  return source(RangeSpec{n}, ElementSpec{{{"value", {DType::kInt64, {}}}}, ""});
}

Dataset Dataset::from_tensor_slices(std::vector<std::pair<std::string, Tensor>> columns,
                                    std::string label) {
  TensorsSpec spec{std::move(columns), std::move(label)};
  ElementSpec element = tensors_element(spec);
  return source(std::move(spec), std::move(element));
}

Dataset Dataset::from_tensors(std::vector<std::pair<std::string, Tensor>> columns,
                              std::string label) {
  for (auto& [name, value] : columns)
    if (value.defined()) value = value.reshaped(value.shape().with_front(1));
  return from_tensor_slices(std::move(columns), std::move(label));
}

Dataset Dataset::from_generator(std::function<ElementGenerator()> begin, ElementSpec element) {
  if (!begin) throw InvalidArgumentError("from_generator() wants a function");
  check_columns(element.columns, "from_generator()");
  if (!element.label.empty()) element.find(element.label);
  GeneratorSpec spec{str("label ", element.label), nullptr};
  for (const ColumnSpec& column : element.columns)
    spec.columns += str(", ", column.name, ": ", column.type.to_string());
  spec.begin = std::make_shared<const std::function<ElementGenerator()>>(std::move(begin));
  return source(std::move(spec), std::move(element));
}

Dataset Dataset::features(std::vector<FeatureColumn> columns) const {
  const StageSpec& below = input_of(*this, "features");
  if (below.batched())
    throw InvalidArgumentError("features() works example by example: put it before batch()");
  ElementSpec element = features_element(below.element, columns);
  return over(*this, FeaturesSpec{std::move(columns)}, std::move(element), 0);
}

Dataset Dataset::shuffle(std::int64_t buffer_size, std::uint64_t seed,
                         ShuffleOptions options) const {
  check_at_least("shuffle: buffer_size", buffer_size, 1);
  check_at_least("shuffle: pipeline", options.pipeline, 0);
  const auto pipeline = static_cast<std::uint64_t>(options.pipeline);
  return same_elements(*this, "shuffle",
                       ShuffleSpec{buffer_size, seed, options.reshuffle_each_iteration, pipeline});
}

namespace {

// Once a stage that leaves elements out was passed, an order below it decides which elements those
// are; it must then be the same for all pipelines, or they would not divide the data.
std::shared_ptr<const StageSpec> keyed(const std::shared_ptr<const StageSpec>& spec,
                                       std::uint64_t pipeline, bool order_chooses) {
  if (!spec) return spec;
  auto copy = std::make_shared<StageSpec>(*spec);
  order_chooses |= std::holds_alternative<ShardSpec>(spec->kind) ||
                   std::holds_alternative<TakeSpec>(spec->kind) ||
                   std::holds_alternative<TakeWhileSpec>(spec->kind) ||
                   std::holds_alternative<SkipSpec>(spec->kind);
  auto* shuffle = std::get_if<ShuffleSpec>(&copy->kind);
  if (shuffle != nullptr && !order_chooses) shuffle->pipeline = pipeline;
  copy->input = keyed(spec->input, pipeline, order_chooses);
  for (auto& other : copy->others) other = keyed(other, pipeline, order_chooses);
  return copy;
}

}  // namespace

Dataset Dataset::for_pipeline(std::int64_t id) const {
  check_at_least("for_pipeline: id", id, 0);
  return Dataset(keyed(last_, static_cast<std::uint64_t>(id), false));
}

Dataset Dataset::repeat(std::int64_t count) const {
  check_at_least("repeat: count (-1: without end)", count, -1);
  return same_elements(*this, "repeat", RepeatSpec{count});
}

Dataset Dataset::take(std::int64_t count) const {
  check_at_least("take: count", count, 0);
  return same_elements(*this, "take", TakeSpec{count});
}

Dataset Dataset::skip(std::int64_t count) const {
  check_at_least("skip: count", count, 0);
  return same_elements(*this, "skip", SkipSpec{count});
}

// The bound keeps index + num * count, which stages compute, far from overflow.
Dataset Dataset::shard(std::int64_t num, std::int64_t index) const {
  check_at_least("shard: num", num, 1);
  if (num > (std::int64_t{1} << 32))
    throw InvalidArgumentError(str("shard: num is ", num, ", at most 2^32 are possible"));
  if (index < 0 || index >= num)
    throw InvalidArgumentError(str("shard: index is ", index, ", it must lie in [0, ", num, ")"));
  return same_elements(*this, "shard", ShardSpec{num, index});
}

Dataset Dataset::shard_hint() const {
  return same_elements(*this, "shard_hint", ShardSpec{.num = 0, .index = 0});
}

Dataset Dataset::prefetch(std::int64_t n) const {
  if (n != kAutotune) check_at_least("prefetch: n", n, 1);
  return same_elements(*this, "prefetch", PrefetchSpec{n});
}

// The stages below are opened once per file, so whatever must exist once (another interleave(), a
// cache()) cannot be among them.
Dataset Dataset::interleave(std::int64_t cycle_length, std::int64_t block_length) const {
  const StageSpec& below = input_of(*this, "interleave");
  check_at_least("interleave: cycle_length", cycle_length, 1);
  check_at_least("interleave: block_length", block_length, 1);
  if (cycle_length > kCycleLengthMax)
    throw InvalidArgumentError(str("interleave: cycle_length is ", cycle_length, ", at most ",
                                   kCycleLengthMax, " files are read at once"));
  if (cycle_length * static_cast<std::int64_t>(below.depth) > kInterleavedStagesMax)
    throw InvalidArgumentError(
        str("interleave: ", cycle_length, " files go through ", below.depth, " stages each, ",
            kInterleavedStagesMax,
            " are possible together; read fewer files at once, or put stages above interleave()"));
  for (const StageSpec* spec = &below; spec != nullptr; spec = spec->input.get()) {
    if (std::holds_alternative<InterleaveSpec>(spec->kind))
      throw InvalidArgumentError("interleave(): the files are interleaved already");
    if (std::holds_alternative<CacheSpec>(spec->kind))
      throw InvalidArgumentError(
          "interleave() works file by file, and a cache keeps them all: put cache() above "
          "interleave()");
    if (!spec->others.empty())
      throw InvalidArgumentError(
          "interleave() works file by file of one source: put concatenate(), zip() and "
          "sample_from_datasets() above interleave()");
    if (!spec->input && !reads_files(*spec))
      throw InvalidArgumentError(
          "interleave() reads several files at once; begin with csv(), records() or another source "
          "of "
          "files");
  }
  return same_elements(*this, "interleave", InterleaveSpec{cycle_length, block_length});
}

Dataset Dataset::cache(CacheOptions options) const {
  check_at_least("cache: bytes_max", options.bytes_max, 1);
  if (options.file.find('\0') != std::string::npos || options.file.size() > kCacheNameMax)
    throw InvalidArgumentError(str("cache: the file's name holds a zero byte, or has more than ",
                                   kCacheNameMax, " bytes"));
  return same_elements(*this, "cache", CacheSpec{options.bytes_max, std::move(options.file)});
}

Dataset Dataset::batch(std::int64_t n, BatchOptions options) const {
  check_at_least("batch: n", n, 1);
  check_batch_size("batch", n);
  const StageSpec& below = input_of(*this, "batch");
  check_batchable(below, "batch");
  BatchSpec spec{n, options.drop_remainder};
  return over(*this, spec, batch_element(below.element, spec), below.batches + 1);
}

Dataset Dataset::map_batch(const std::function<Outputs(const Batch&)>& body,
                           MapOptions options) const {
  return map_graph(trace_map(input_of(*this, "map").element, body), options);
}

Dataset Dataset::map_graph(std::vector<std::byte> graph, MapOptions options) const {
  const StageSpec& below = input_of(*this, "map");
  const std::int64_t calls = options.num_parallel_calls;
  if (calls != kAutotune) check_at_least("map: num_parallel_calls", calls, 1);
  if (calls > kParallelCallsMax)
    throw InvalidArgumentError(
        str("map: num_parallel_calls is ", calls, ", at most ", kParallelCallsMax,
            " are possible; kAutotune takes as many as there are processors"));
  MapSpec spec{std::move(graph), calls};
  ElementSpec element = map_element(below.element, spec);
  return over(*this, std::move(spec), std::move(element), below.batches);
}

Dataset Dataset::deal(std::int64_t replicas, Deal how) const {
  check_at_least("deal: replicas", replicas, 1);
  if (replicas > kDealtReplicasMax)
    throw InvalidArgumentError(
        str("deal: replicas is ", replicas, ", at most ", kDealtReplicasMax, " are possible"));
  const StageSpec& below = input_of(*this, "deal");
  if (!below.batched())
    throw InvalidArgumentError(
        "the dataset's elements are single examples, which cannot be dealt out to several "
        "replicas: batch() it, by the global batch size");
  const bool cut = how == Deal::kCut;
  return over(*this, DealSpec{replicas, cut},
              cut ? pieces_spec(below.element, replicas) : any_size_spec(below.element),
              below.batches);
}

Dataset Dataset::rebatch(std::vector<std::int64_t> sizes, BatchOptions options) const {
  if (sizes.size() > kRebatchSizesMax)
    throw InvalidArgumentError(
        str("rebatch: ", sizes.size(), " sizes, at most ", kRebatchSizesMax, " are possible"));
  for (const std::int64_t size : sizes) {
    check_at_least("rebatch: a size", size, 0);
    check_batch_size("rebatch", size);
  }
  if (std::ranges::none_of(sizes, [](std::int64_t size) { return size > 0; }))
    throw InvalidArgumentError("rebatch: one of the sizes must be above 0");
  const StageSpec& below = input_of(*this, "rebatch");
  if (!below.batched())
    throw InvalidArgumentError("rebatch(): the elements are single examples: batch() them first");
  ElementSpec element = rebatched_spec(below.element, sizes, options.drop_remainder);
  return over(*this, RebatchSpec{std::move(sizes), options.drop_remainder}, std::move(element),
              below.batches);
}

const ElementSpec& Dataset::element_spec() const { return input_of(*this, "element_spec").element; }
bool Dataset::batched() const { return input_of(*this, "batched").batched(); }

}  // namespace cairn
