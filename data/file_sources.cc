// The calls of Dataset for sources that read files of a format of their own, and what each yields.
#include "data/dataset.h"
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

}  // namespace cairn
