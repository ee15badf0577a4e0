#include "data/file_wire.h"

#include "data/pipeline_wire.h"

#include "data/wire_parts.h"

namespace cairn {
namespace {

OnError read_on_error(std::uint8_t number) {
  return read_enum(number, OnError::kSkipAndCount, "an error policy");
}
EmptyFiles read_empty_files(std::uint8_t number) {
  return read_enum(number, EmptyFiles::kSkip, "a policy for empty files");
}

Dataset read_text_lines(pipeline::TextLines::Reader in) {
  TextOptions options;
  options.column = read_text(in.getColumn());
  options.skip_blank = in.getSkipBlank();
  options.line_bytes_max = in.getLineBytesMax();
  options.on_error = read_on_error(in.getOnError());
  options.empty_files = read_empty_files(in.getEmptyFiles());
  return Dataset::text_lines(read_texts(in.getPaths(), kPathsMax), std::move(options));
}

Dataset read_libsvm(pipeline::Libsvm::Reader in) {
  LibsvmSchema schema;
  schema.ids = read_text(in.getIds());
  schema.values = read_text(in.getValues());
  schema.label = {read_text(in.getLabelColumn()), read_texts(in.getPositive()),
                  read_texts(in.getNegative()), in.getBinaryLabel()};
  schema.qid = read_text(in.getQid());
  schema.zero_based = in.getZeroBased();
  schema.dimension = in.getDimension();
  const FileOptions options{read_on_error(in.getOnError()), read_empty_files(in.getEmptyFiles())};
  return Dataset::libsvm(read_texts(in.getPaths(), kPathsMax), std::move(schema), options);
}

Shape read_shape(capnp::List<std::int64_t>::Reader in) {
  check_size(in, "dimensions");
  std::vector<std::int64_t> dims;
  for (const std::int64_t dim : in) dims.push_back(dim);
  return Shape(std::move(dims));
}
void write_shape(capnp::List<std::int64_t>::Builder out, const Shape& shape) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, shape[static_cast<int>(i)]);
}

Dataset read_tfrecords(pipeline::TfRecords::Reader in) {
  ExampleSchema schema;
  check_size(in.getFeatures(), "features");
  for (auto feature : in.getFeatures()) {
    ExampleFeature& made = schema.features.emplace_back();
    made.name = read_text(feature.getName());
    made.dtype = read_dtype(feature.getDtype());
    made.shape = read_shape(feature.getShape());
    made.ragged = feature.getRagged();
    if (feature.getHasDefault()) made.default_value = read_text(feature.getDefaultValue());
    made.ids = read_ids(feature.getIds());
  }
  schema.label = read_text(in.getLabel());
  schema.binary_label = in.getBinaryLabel();
  schema.label_classes = in.getLabelClasses();
  schema.finite = in.getFinite();
  const TfRecordOptions options{read_on_error(in.getOnError()), in.getRecordBytesMax(),
                                read_empty_files(in.getEmptyFiles())};
  return Dataset::tfrecords(read_texts(in.getPaths(), kPathsMax), std::move(schema), options);
}

Dataset read_idx(pipeline::Idx::Reader in) {
  check_size(in.getColumns(), "columns");
  std::vector<IdxColumn> columns;
  for (auto column : in.getColumns())
    columns.push_back({read_text(column.getName()), read_texts(column.getPaths(), kPathsMax),
                       read_dtype(column.getDtype()), read_shape(column.getShape())});
  return Dataset::idx(std::move(columns), read_text(in.getLabel()));
}

}  // namespace

void write_kind(pipeline::Stage::Builder stage, const TextSpec& spec) {
  auto out = stage.initTextLines();
  write_texts(out.initPaths(static_cast<unsigned>(spec.paths.size())), spec.paths);
  out.setColumn(spec.options.column);
  out.setSkipBlank(spec.options.skip_blank);
  out.setLineBytesMax(spec.options.line_bytes_max);
  out.setOnError(static_cast<std::uint8_t>(spec.options.on_error));
  out.setEmptyFiles(static_cast<std::uint8_t>(spec.options.empty_files));
}

void write_kind(pipeline::Stage::Builder stage, const LibsvmSpec& spec) {
  auto out = stage.initLibsvm();
  const LibsvmSchema& schema = spec.schema;
  write_texts(out.initPaths(static_cast<unsigned>(spec.paths.size())), spec.paths);
  out.setIds(schema.ids);
  out.setValues(schema.values);
  out.setLabelColumn(schema.label.column);
  write_texts(out.initPositive(static_cast<unsigned>(schema.label.positive.size())),
              schema.label.positive);
  write_texts(out.initNegative(static_cast<unsigned>(schema.label.negative.size())),
              schema.label.negative);
  out.setBinaryLabel(schema.label.binary);
  out.setQid(schema.qid);
  out.setZeroBased(schema.zero_based);
  out.setDimension(schema.dimension);
  out.setOnError(static_cast<std::uint8_t>(spec.options.on_error));
  out.setEmptyFiles(static_cast<std::uint8_t>(spec.options.empty_files));
}

void write_kind(pipeline::Stage::Builder stage, const TfRecordsSpec& spec) {
  auto out = stage.initTfRecords();
  write_texts(out.initPaths(static_cast<unsigned>(spec.paths.size())), spec.paths);
  auto features = out.initFeatures(static_cast<unsigned>(spec.schema.features.size()));
  for (unsigned i = 0; i < features.size(); ++i) {
    const ExampleFeature& feature = spec.schema.features[i];
    features[i].setName(feature.name);
    features[i].setDtype(static_cast<std::uint8_t>(feature.dtype));
    write_shape(features[i].initShape(static_cast<unsigned>(feature.shape.rank())), feature.shape);
    features[i].setRagged(feature.ragged);
    features[i].setHasDefault(feature.default_value.has_value());
    if (feature.default_value) features[i].setDefaultValue(*feature.default_value);
    write_ids(features[i], feature.ids);
  }
  out.setLabel(spec.schema.label);
  out.setBinaryLabel(spec.schema.binary_label);
  out.setLabelClasses(static_cast<std::uint16_t>(spec.schema.label_classes));
  out.setFinite(spec.schema.finite);
  out.setOnError(static_cast<std::uint8_t>(spec.options.on_error));
  out.setEmptyFiles(static_cast<std::uint8_t>(spec.options.empty_files));
  out.setRecordBytesMax(spec.options.record_bytes_max);
}

void write_kind(pipeline::Stage::Builder stage, const IdxSpec& spec) {
  auto out = stage.initIdx();
  auto columns = out.initColumns(static_cast<unsigned>(spec.columns.size()));
  for (unsigned i = 0; i < columns.size(); ++i) {
    const IdxColumn& column = spec.columns[i];
    columns[i].setName(column.name);
    write_texts(columns[i].initPaths(static_cast<unsigned>(column.paths.size())), column.paths);
    columns[i].setDtype(static_cast<std::uint8_t>(column.dtype));
    write_shape(columns[i].initShape(static_cast<unsigned>(column.shape.rank())), column.shape);
  }
  out.setLabel(spec.label);
}

bool is_file_source(pipeline::Stage::Which which) {
  switch (which) {
    case pipeline::Stage::TEXT_LINES:
    case pipeline::Stage::LIBSVM:
    case pipeline::Stage::TF_RECORDS:
    case pipeline::Stage::IDX: return true;
    default: return false;
  }
}

Dataset read_file_source(pipeline::Stage::Reader in) {
  switch (in.which()) {
    case pipeline::Stage::TEXT_LINES: return read_text_lines(in.getTextLines());
    case pipeline::Stage::LIBSVM: return read_libsvm(in.getLibsvm());
    case pipeline::Stage::TF_RECORDS: return read_tfrecords(in.getTfRecords());
    case pipeline::Stage::IDX: return read_idx(in.getIdx());
    default: CAIRN_CHECK(false, "not one of these sources");
  }
}

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

// What mode and compression mean is verified where the service is.
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

}  // namespace cairn
