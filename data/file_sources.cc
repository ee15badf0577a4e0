// The calls of Dataset for sources that read files of a format of their own, and what each yields.
#include "data/csv_cells.h"
#include "data/dataset.h"
#include "data/label_range.h"
#include "data/stage_spec.h"

namespace cairn {
namespace {

Dataset file_source(StageKind kind, ElementSpec element) {
  auto spec = std::make_shared<StageSpec>();
  spec->kind = std::move(kind);
  spec->element = std::move(element);
  return Dataset(std::move(spec));
}

// What is left to be checked once a source's columns are known.
ElementSpec checked(std::vector<ColumnSpec> columns, std::string label, const char* what) {
  check_columns(columns, what);
  ElementSpec element{std::move(columns), std::move(label)};
  if (!element.label.empty()) element.find(element.label);
  return element;
}

// The bound on values keeps sizes far from overflow wherever they are multiplied.
void check_value_shape(const std::string& name, const Shape& shape) {
  constexpr std::int64_t kValuesMax = 1 << 24;
  std::int64_t values = 1;
  for (const std::int64_t dim : shape.dims()) {
    if (dim < 1 || dim > kValuesMax / values)
      throw InvalidArgumentError(str("\"", name, "\": the shape ", shape.to_string(),
                                     " must have from 1 to ", kValuesMax, " values"));
    values *= dim;
  }
}

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
  if (schema.features.empty()) return checked({{"record", {DType::kString, {}}}}, schema.label, "");
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
  element = checked(std::move(element.columns), schema.label, "the example schema");
  for (const ExampleFeature& feature : schema.features)
    if (feature.ragged && feature.name == schema.label)
      throw InvalidArgumentError(str("the label \"", feature.name, "\" cannot be ragged"));
  label_range(schema);  // for its error
  return element;
}

}  // namespace

Dataset Dataset::text_lines(std::vector<std::string> paths, TextOptions options) {
  constexpr std::int64_t kLineBytesMax = std::int64_t{1} << 30;
  check_paths(paths);
  if (options.line_bytes_max < 1 || options.line_bytes_max > kLineBytesMax)
    throw InvalidArgumentError(str("text_lines: line_bytes_max is ", options.line_bytes_max,
                                   ", it must lie in [1, ", kLineBytesMax, "]"));
  ElementSpec element = checked({{options.column, {DType::kString, {}}}}, "", "text_lines");
  return file_source(TextSpec{std::move(paths), std::move(options)}, std::move(element));
}
Dataset Dataset::text_lines(std::string path, TextOptions options) {
  return text_lines(std::vector<std::string>{std::move(path)}, std::move(options));
}
Dataset Dataset::text_lines(std::initializer_list<std::string> paths, TextOptions options) {
  return text_lines(std::vector<std::string>(paths), std::move(options));
}

Dataset Dataset::libsvm(std::vector<std::string> paths, LibsvmSchema schema, FileOptions options) {
  check_paths(paths);
  if (schema.dimension < 0)
    throw InvalidArgumentError(
        str("LibsvmSchema::dimension is ", schema.dimension, ", it must be at least 0"));
  check_label_texts(schema.label);
  if (!schema.label.classes.empty() || schema.label.skip_unknown)
    throw InvalidArgumentError("labels of libsvm have no classes and are never unknown");
  ElementSpec element;
  element.columns.push_back({schema.label.column, {DType::kFloat32, {}}});
  if (!schema.qid.empty()) element.columns.push_back({schema.qid, {DType::kInt64, {}}});
  add_ragged(element, schema.ids, DType::kInt64);
  add_ragged(element, schema.values, DType::kFloat32);
  element = checked(std::move(element.columns), schema.label.column, "the libsvm schema");
  return file_source(LibsvmSpec{std::move(paths), std::move(schema), options}, std::move(element));
}
Dataset Dataset::libsvm(std::string path, LibsvmSchema schema, FileOptions options) {
  return libsvm(std::vector<std::string>{std::move(path)}, std::move(schema), options);
}
Dataset Dataset::libsvm(std::initializer_list<std::string> paths, LibsvmSchema schema,
                        FileOptions options) {
  return libsvm(std::vector<std::string>(paths), std::move(schema), options);
}

Dataset Dataset::tfrecords(std::vector<std::string> paths, ExampleSchema schema,
                           TfRecordOptions options) {
  constexpr std::int64_t kRecordBytesMax = std::int64_t{1} << 30;
  check_paths(paths);
  if (options.record_bytes_max < 1 || options.record_bytes_max > kRecordBytesMax)
    throw InvalidArgumentError(str("TfRecordOptions::record_bytes_max is ",
                                   options.record_bytes_max, ", it must lie in [1, ",
                                   kRecordBytesMax, "]"));
  ElementSpec element = example_element(schema);
  return file_source(TfRecordsSpec{std::move(paths), std::move(schema), options},
                     std::move(element));
}
Dataset Dataset::tfrecords(std::string path, ExampleSchema schema, TfRecordOptions options) {
  return tfrecords(std::vector<std::string>{std::move(path)}, std::move(schema), options);
}
Dataset Dataset::tfrecords(std::initializer_list<std::string> paths, ExampleSchema schema,
                           TfRecordOptions options) {
  return tfrecords(std::vector<std::string>(paths), std::move(schema), options);
}

// An IDX file has at most 255 dimensions.
Dataset Dataset::idx(std::vector<IdxColumn> columns, std::string label) {
  ElementSpec element;
  for (const IdxColumn& column : columns) {
    check_paths(column.paths);
    check_value_shape(column.name, column.shape);
    if (column.dtype != DType::kUint8 && column.dtype != DType::kInt32 &&
        column.dtype != DType::kFloat32 && column.dtype != DType::kFloat64)
      throw InvalidArgumentError(str("column \"", column.name,
                                     "\": an IDX file holds uint8, int32, float32 or float64, not ",
                                     dtype_name(column.dtype)));
    if (column.shape.rank() > 254 || column.name.ends_with(kRowSplits))
      throw InvalidArgumentError(str("column \"", column.name, "\": the name or the shape ",
                                     column.shape.to_string(), " is not possible"));
    const std::size_t files = columns.front().paths.size();
    if (column.paths.size() != files)
      throw InvalidArgumentError(str("idx: \"", column.name, "\" has ", column.paths.size(),
                                     " files, \"", columns.front().name, "\" ", files));
    element.columns.push_back({column.name, {column.dtype, column.shape}});
  }
  element = checked(std::move(element.columns), label, "idx");
  return file_source(IdxSpec{std::move(columns), std::move(label)}, std::move(element));
}

}  // namespace cairn
