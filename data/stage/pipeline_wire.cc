// Writing and reading each kind of stage, side by side: write_kind() and its read function must
// agree field by field.
//
// Reading trusts no number. Lists are bounded before they are walked, enumerations are checked
// before they are cast, and what is left (whether columns fit the stage below) is checked by the
// calls of Dataset that make the stage.
#include "data/stage/pipeline_wire.h"

#include <algorithm>

#include "core/graph/wire/wire.h"
#include "data/dataset/file_source.h"
#include "data/dataset/hash_split.h"
#include "data/format/formats.h"
#include "data/format/wire_parts.h"
#include "data/stage/dataset_wire.h"
#include "data/stage/feature_wire.h"

namespace cairn {
namespace {

void write_kind(pipeline::Stage::Builder stage, const FilesSpec& spec) {
  StageWriter writer{stage};
  spec.source->write(writer);
}

void write_kind(pipeline::Stage::Builder stage, const RangeSpec& spec) { stage.setRange(spec.n); }

void write_kind(pipeline::Stage::Builder stage, const TensorsSpec& spec) {
  auto out = stage.initTensors();
  auto columns = out.initColumns(static_cast<unsigned>(spec.columns.size()));
  for (unsigned i = 0; i < columns.size(); ++i) {
    columns[i].setName(spec.columns[i].first);
    wire::write(columns[i].initValue(), spec.columns[i].second);
  }
  out.setLabel(spec.label);
}

// Tensors travel as in graphs (core/graph/wire/wire.h), which verifies them.
Dataset read_tensors(pipeline::Tensors::Reader in) {
  check_size(in.getColumns(), "columns");
  std::vector<std::pair<std::string, Tensor>> columns;
  for (auto column : in.getColumns())
    columns.emplace_back(read_text(column.getName()), wire::read(column.getValue()));
  return Dataset::from_tensor_slices(std::move(columns), read_text(in.getLabel()));
}

// Reached for fingerprints only, which know code by its columns: serialize() refuses it.
void write_kind(pipeline::Stage::Builder stage, const GeneratorSpec& spec) {
  stage.setGenerator(spec.columns);
}

void write_kind(pipeline::Stage::Builder stage, const MapSpec& spec) {
  stage.setMapGraph(
      kj::arrayPtr(reinterpret_cast<const kj::byte*>(spec.graph.data()), spec.graph.size()));
  stage.setMapParallelCalls(static_cast<std::int16_t>(spec.calls));
}
void write_kind(pipeline::Stage::Builder stage, const ShuffleSpec& spec) {
  auto out = stage.initShuffle();
  out.setBufferSize(spec.buffer_size);
  out.setSeed(spec.seed);
  out.setReshuffle(spec.reshuffle);
  out.setPipeline(spec.pipeline);
}
void write_kind(pipeline::Stage::Builder stage, const BatchSpec& spec) {
  auto out = stage.initBatch();
  out.setN(spec.n);
  out.setDropRemainder(spec.drop_remainder);
}
void write_kind(pipeline::Stage::Builder stage, const RepeatSpec& spec) {
  stage.setRepeat(spec.count);
}
void write_kind(pipeline::Stage::Builder stage, const TakeSpec& spec) { stage.setTake(spec.count); }
void write_kind(pipeline::Stage::Builder stage, const SkipSpec& spec) { stage.setSkip(spec.count); }
void write_kind(pipeline::Stage::Builder stage, const ShardSpec& spec) {
  auto out = stage.initShard();
  out.setNum(spec.num);
  out.setIndex(spec.index);
}
void write_kind(pipeline::Stage::Builder stage, const PrefetchSpec& spec) {
  stage.setPrefetch(spec.n);
}

void write_kind(pipeline::Stage::Builder stage, const InterleaveSpec& spec) {
  auto out = stage.initInterleave();
  out.setCycleLength(spec.cycle_length);
  out.setBlockLength(spec.block_length);
}
void write_kind(pipeline::Stage::Builder stage, const DealSpec& spec) {
  auto out = stage.initDeal();
  out.setReplicas(spec.replicas);
  out.setCut(spec.cut);
}
void write_kind(pipeline::Stage::Builder stage, const RebatchSpec& spec) {
  auto out = stage.initRebatch();
  auto sizes = out.initSizes(static_cast<unsigned>(spec.sizes.size()));
  for (unsigned i = 0; i < sizes.size(); ++i) sizes.set(i, spec.sizes[i]);
  out.setDropRemainder(spec.drop_remainder);
}
void write_kind(pipeline::Stage::Builder stage, const CacheSpec& spec) {
  auto out = stage.initCache();
  out.setBytesMax(spec.bytes_max);
  out.setFile(spec.file);
}

// The graph is verified by map_graph(), as any graph that comes from a peer.
std::vector<std::byte> read_graph(capnp::Data::Reader in) {
  auto* bytes = reinterpret_cast<const std::byte*>(in.begin());
  return {bytes, bytes + in.size()};
}
kj::ArrayPtr<const kj::byte> graph_bytes(const std::vector<std::byte>& graph) {
  return kj::arrayPtr(reinterpret_cast<const kj::byte*>(graph.data()), graph.size());
}

void write_kind(pipeline::Stage::Builder stage, const FilterSpec& spec) {
  stage.setFilterGraph(graph_bytes(spec.graph));
}
void write_kind(pipeline::Stage::Builder stage, const TakeWhileSpec& spec) {
  stage.setTakeWhileGraph(graph_bytes(spec.graph));
}
void write_kind(pipeline::Stage::Builder stage, const HashSplitSpec& spec) {
  auto out = stage.initHashSplit();
  out.setColumn(spec.column);
  out.setBegin(spec.begin);
  out.setEnd(spec.end);
}
void write_kind(pipeline::Stage::Builder stage, const UnbatchSpec&) { stage.setUnbatch(); }
void write_kind(pipeline::Stage::Builder stage, const PaddedBatchSpec& spec) {
  auto out = stage.initPaddedBatch();
  out.setN(spec.n);
  out.setDropRemainder(spec.drop_remainder);
}
void write_kind(pipeline::Stage::Builder stage, const WindowSpec& spec) {
  auto out = stage.initWindow();
  out.setSize(spec.size);
  out.setShift(spec.shift);
  out.setStride(spec.stride);
  out.setDropRemainder(spec.drop_remainder);
}
// The other inputs are written by write_others().
void write_kind(pipeline::Stage::Builder, const ConcatenateSpec&) {}
void write_kind(pipeline::Stage::Builder, const ZipSpec&) {}
void write_kind(pipeline::Stage::Builder stage, const SampleSpec& spec) {
  auto out = stage.initSample();
  auto weights = out.initWeights(static_cast<unsigned>(spec.weights.size()));
  for (unsigned i = 0; i < weights.size(); ++i) weights.set(i, spec.weights[i]);
  out.setSeed(spec.seed);
  out.setStopOnEmpty(spec.stop_on_empty);
}

void write_others(pipeline::Stage::Builder stage, const StageSpec& spec) {
  const auto count = static_cast<unsigned>(spec.others.size());
  if (std::holds_alternative<ConcatenateSpec>(spec.kind))
    return write_description(stage.initConcatenate(), stages_of(spec.others.front()));
  if (!std::holds_alternative<ZipSpec>(spec.kind) && !std::holds_alternative<SampleSpec>(spec.kind))
    return;
  auto all = std::holds_alternative<ZipSpec>(spec.kind) ? stage.initZip(count)
                                                        : stage.getSample().initOthers(count);
  for (unsigned i = 0; i < count; ++i) write_description(all[i], stages_of(spec.others[i]));
}

// The stage of a data service contains a whole description, that of the service's dataset.
void write_kind(pipeline::Stage::Builder stage, const ServiceSpec& spec) {
  auto out = stage.initService();
  const ServiceSource& source = spec.source;
  out.setDispatcher(source.dispatcher);
  out.setJobName(source.job_name);
  out.setCluster(source.cluster);
  out.setMode(source.mode);
  out.setCompression(source.compression);
  out.setBufferElements(source.buffer_elements);
  out.setNumConsumers(source.num_consumers);
  out.setConsumerIndex(source.consumer_index);
  write_description(out.initDataset(), stages_of(spec.dataset));
}

// The values of mode and compression are verified where the service is.
Dataset read_service(pipeline::Service::Reader in) {
  ServiceSource source;
  source.dispatcher = read_text(in.getDispatcher());
  source.job_name = read_text(in.getJobName());
  source.cluster = read_text(in.getCluster());
  source.mode = in.getMode();
  source.compression = in.getCompression();
  source.buffer_elements = in.getBufferElements();
  source.num_consumers = in.getNumConsumers();
  source.consumer_index = in.getConsumerIndex();
  return Dataset::from_service(read_description(in.getDataset()), std::move(source));
}

std::vector<Dataset> read_inputs(const Dataset& first,
                                 capnp::List<pipeline::Description>::Reader others) {
  check_size(others, "datasets");
  std::vector<Dataset> all{first};
  for (auto other : others) all.push_back(read_description(other));
  return all;
}

Dataset read_sample(const Dataset& first, pipeline::Sample::Reader in) {
  check_size(in.getWeights(), "weights");
  std::vector<double> weights;
  for (const double weight : in.getWeights()) weights.push_back(weight);
  return Dataset::sample_from_datasets(read_inputs(first, in.getOthers()), std::move(weights),
                                       in.getSeed(), in.getStopOnEmpty());
}

}  // namespace

std::vector<std::shared_ptr<const StageSpec>> stages_of(std::shared_ptr<const StageSpec> last) {
  std::vector<std::shared_ptr<const StageSpec>> stages;
  for (; last; last = last->input) stages.push_back(last);
  std::reverse(stages.begin(), stages.end());
  return stages;
}

void write_description(pipeline::Description::Builder out,
                       const std::vector<std::shared_ptr<const StageSpec>>& stages) {
  auto all = out.initStages(static_cast<unsigned>(stages.size()));
  for (unsigned i = 0; i < stages.size(); ++i) write_stage(all[i], *stages[i]);
}

Dataset read_description(pipeline::Description::Reader in) {
  auto stages = in.getStages();
  if (stages.size() == 0 || stages.size() > kDatasetStagesMax)
    throw InvalidArgumentError(str("a dataset of ", stages.size(), " stages; from 1 to ",
                                   kDatasetStagesMax, " are possible"));
  Dataset dataset;
  for (auto stage : stages) dataset = read_stage(dataset, stage);
  return dataset;
}

void write_stage(pipeline::Stage::Builder out, const StageSpec& spec) {
  std::visit([&](const auto& kind) { write_kind(out, kind); }, spec.kind);
  write_others(out, spec);
}

// Exactly the first stage is a source.
Dataset read_stage(const Dataset& below, pipeline::Stage::Reader in) {
  const bool source = is_file_source(in) || in.isRange() || in.isTensors() || in.isService();
  if (source == below.defined())
    throw InvalidArgumentError(source ? "a dataset with a source above another stage"
                                      : "a dataset without a source");
  if (is_file_source(in)) return read_file_source(in);
  switch (in.which()) {
    case pipeline::Stage::RANGE: return Dataset::range(in.getRange());
    case pipeline::Stage::SERVICE: return read_service(in.getService());
    case pipeline::Stage::TENSORS: return read_tensors(in.getTensors());
    case pipeline::Stage::FEATURES: return read_features(below, in.getFeatures());
    case pipeline::Stage::MAP_GRAPH:
      return below.map_graph(read_graph(in.getMapGraph()), {in.getMapParallelCalls()});
    case pipeline::Stage::FILTER_GRAPH: return below.filter_graph(read_graph(in.getFilterGraph()));
    case pipeline::Stage::TAKE_WHILE_GRAPH:
      return below.take_while_graph(read_graph(in.getTakeWhileGraph()));
    case pipeline::Stage::HASH_SPLIT: {
      const auto split = in.getHashSplit();
      return hash_split(below, read_text(split.getColumn()), split.getBegin(), split.getEnd());
    }
    case pipeline::Stage::UNBATCH: return below.unbatch();
    case pipeline::Stage::PADDED_BATCH:
      return below.padded_batch(in.getPaddedBatch().getN(),
                                {in.getPaddedBatch().getDropRemainder()});
    case pipeline::Stage::WINDOW: {
      const auto window = in.getWindow();
      return below.window(window.getSize(),
                          {window.getShift(), window.getStride(), window.getDropRemainder()});
    }
    case pipeline::Stage::CONCATENATE:
      return below.concatenate(read_description(in.getConcatenate()));
    case pipeline::Stage::ZIP: return Dataset::zip(read_inputs(below, in.getZip()));
    case pipeline::Stage::SAMPLE: return read_sample(below, in.getSample());
    case pipeline::Stage::SHUFFLE: {
      const auto shuffle = in.getShuffle();
      // Beyond int64 it is negative here, and refused.
      const ShuffleOptions options{shuffle.getReshuffle(),
                                   static_cast<std::int64_t>(shuffle.getPipeline())};
      return below.shuffle(shuffle.getBufferSize(), shuffle.getSeed(), options);
    }
    case pipeline::Stage::BATCH:
      return below.batch(in.getBatch().getN(), {in.getBatch().getDropRemainder()});
    case pipeline::Stage::REPEAT: return below.repeat(in.getRepeat());
    case pipeline::Stage::TAKE: return below.take(in.getTake());
    case pipeline::Stage::SKIP: return below.skip(in.getSkip());
    case pipeline::Stage::SHARD:
      if (in.getShard().getNum() == 0) return below.shard_hint();
      return below.shard(in.getShard().getNum(), in.getShard().getIndex());
    case pipeline::Stage::PREFETCH: return below.prefetch(in.getPrefetch());
    case pipeline::Stage::INTERLEAVE:
      return below.interleave(in.getInterleave().getCycleLength(),
                              in.getInterleave().getBlockLength());
    case pipeline::Stage::DEAL:
      return below.deal(in.getDeal().getReplicas(),
                        in.getDeal().getCut() ? Deal::kCut : Deal::kInTurn);
    case pipeline::Stage::REBATCH: {
      std::vector<std::int64_t> sizes;
      for (const std::int64_t size : in.getRebatch().getSizes()) sizes.push_back(size);
      return below.rebatch(std::move(sizes), {in.getRebatch().getDropRemainder()});
    }
    case pipeline::Stage::CACHE:
      return below.cache({in.getCache().getBytesMax(), read_text(in.getCache().getFile())});
    default: break;
  }
  throw InvalidArgumentError("a dataset holds a kind of stage that this program does not know");
}

}  // namespace cairn
