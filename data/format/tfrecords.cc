#include "data/format/tfrecords.h"

#include "data/dataset/dataset.h"
#include "data/dataset/label_range.h"
#include "data/file/tfrecord_reader.h"
#include "data/format/csv_cells.h"
#include "data/format/example_rows.h"
#include "data/format/row_stage.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

void check_example_feature(const ExampleFeature& feature) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgumentError(str("feature \"", feature.name, "\": ", why));
  };
  const DType dtype = feature.dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kInt64 && dtype != DType::kString &&
      dtype != DType::kUint8)
    refuse(str("a tf.train.Example holds no ", dtype_name(dtype),
               ", but float32, int64, string, and uint8 as a string's bytes"));
  check_value_shape(feature.name, feature.shape);
  if (feature.ragged && (feature.shape.rank() > 0 || dtype == DType::kUint8))
    refuse("a ragged feature has no shape, and is not of dtype uint8");
  check_ids(feature.ids, dtype == DType::kInt64, feature.ragged ? 0 : feature.shape.elements(),
            str("feature \"", feature.name, "\""));
  if (!feature.default_value) return;
  if (feature.ragged)
    refuse("a ragged feature has no values where it is missing: no default_value");
  if (!parses_as(*feature.default_value, dtype))
    refuse(str("the default_value \"", *feature.default_value, "\" is not of type ",
               dtype_name(dtype)));
}

ElementSpec example_element(const ExampleSchema& schema) {
  if (schema.features.empty())
    return checked_element({{"record", {DType::kString, {}}}}, schema.label, "");
  ElementSpec element;
  for (const ExampleFeature& feature : schema.features) {
    check_example_feature(feature);
    if (feature.ragged)
      add_ragged(element, feature.name, feature.dtype);
    else if (feature.name.ends_with(kRowSplits))
      throw InvalidArgumentError(
          str("feature \"", feature.name, "\": that is a name of ragged columns only"));
    else
      element.columns.push_back({feature.name, {feature.dtype, feature.shape}});
  }
  element = checked_element(std::move(element.columns), schema.label, "the example schema");
  for (const ExampleFeature& feature : schema.features)
    if (feature.ragged && feature.name == schema.label)
      throw InvalidArgumentError(str("the label \"", feature.name, "\" cannot be ragged"));
  label_range(schema);  // for its error
  return element;
}

}  // namespace

ElementSpec TfRecordFiles::element() const {
  constexpr std::int64_t kRecordBytesMax = std::int64_t{1} << 30;
  check_paths(paths);
  if (options.record_bytes_max < 1 || options.record_bytes_max > kRecordBytesMax)
    throw InvalidArgumentError(str("TfRecordOptions::record_bytes_max is ",
                                   options.record_bytes_max, ", it must lie in [1, ",
                                   kRecordBytesMax, "]"));
  return example_element(schema);
}

StagePtr TfRecordFiles::open(SourceRequest request) const {
  const auto open = [most = options.record_bytes_max](const std::string& path,
                                                      std::unique_ptr<ByteSource> bytes) {
    return std::make_unique<TfRecordReader>(path, std::move(bytes), most);
  };
  RowStageParts parts{
      .files = {paths, options.on_error, options.empty_files},
      .open = open,
      .rows = schema.features.empty() ? make_text_rows() : make_example_rows(schema),
      .record = "record"};
  return make_row_stage(std::move(parts), std::move(request));
}

void TfRecordFiles::write(StageWriter& writer) const {
  auto out = writer.stage.initTfRecords();
  write_files(out, *this);
  auto features = out.initFeatures(static_cast<unsigned>(schema.features.size()));
  for (unsigned i = 0; i < features.size(); ++i) {
    const ExampleFeature& feature = schema.features[i];
    features[i].setName(feature.name);
    features[i].setDtype(static_cast<std::uint8_t>(feature.dtype));
    write_shape(features[i].initShape(static_cast<unsigned>(feature.shape.rank())), feature.shape);
    features[i].setRagged(feature.ragged);
    features[i].setHasDefault(feature.default_value.has_value());
    if (feature.default_value) features[i].setDefaultValue(*feature.default_value);
    write_ids(features[i], feature.ids);
  }
  out.setLabel(schema.label);
  out.setBinaryLabel(schema.binary_label);
  out.setLabelClasses(static_cast<std::uint16_t>(schema.label_classes));
  out.setFinite(schema.finite);
  out.setRecordBytesMax(options.record_bytes_max);
}

Dataset read_tfrecords(const StageReader& reader) {
  const auto in = reader.stage.getTfRecords();
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
  const TfRecordOptions options{read_on_error(in), in.getRecordBytesMax(), read_empty_files(in)};
  return Dataset::tfrecords(read_paths(in), std::move(schema), options);
}

Dataset Dataset::tfrecords(std::vector<std::string> paths, ExampleSchema schema,
                           TfRecordOptions options) {
  return dataset_of(std::make_shared<TfRecordFiles>(std::move(paths), std::move(schema), options));
}
Dataset Dataset::tfrecords(std::string path, ExampleSchema schema, TfRecordOptions options) {
  return tfrecords(std::vector<std::string>{std::move(path)}, std::move(schema), options);
}
Dataset Dataset::tfrecords(std::initializer_list<std::string> paths, ExampleSchema schema,
                           TfRecordOptions options) {
  return tfrecords(std::vector<std::string>(paths), std::move(schema), options);
}

}  // namespace cairn
