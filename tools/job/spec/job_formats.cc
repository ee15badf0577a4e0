// Formats whose examples are numbers or lists of them. A new format is a class here, or in
// job_format_cells.cc if it has cells of text, and a line of make_all().
#include <algorithm>

#include "core/base/error.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_conditions.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/toml/job_label.h"

namespace cairn::tools {
namespace {

constexpr std::int64_t kIndexesMax = std::int64_t{1} << 46;

// The examples of these formats have one schema with fields of whole numbers among them.
template <typename Schema>
class SchemaFormat : public JobFormat {
 public:
  const std::string& label() const override { return schema_.label; }

 protected:
  Schema schema_of(const Job& job) const {
    Schema schema = schema_;
    schema.binary_label = has_binary_label(job) && !schema.label.empty();
    schema.label_classes = tools::label_classes(job, schema.label);
    return schema;
  }
  Schema schema_;
};

class RecordsFormat final : public SchemaFormat<RecordSchema> {
 public:
  const char* name() const override { return "records"; }
  FeatureForm form() const override { return FeatureForm::kNumbers; }
  void read(TomlTable table, JobLabel& truth, const std::vector<std::string>&) override {
    read_fields(table, schema_.fields);
    read_named_label(table, schema_.label, truth);
    table.refuse_unknown();
  }
  std::vector<ColumnType> columns() const override {
    std::vector<ColumnType> columns;
    for (const RecordField& field : schema_.fields)
      columns.push_back({field.name, field.dtype, field.count == 1});
    return columns;
  }
  Dataset source(const Job& job, const std::vector<std::string>& files,
                 const std::vector<std::string>& where) const override {
    RecordSchema schema = schema_of(job);
    for (RecordField& field : schema.fields)
      if (is_whole(field.dtype)) field.ids = ids_of_column(job, field.name, field.count);
    return filtered(Dataset::records(files, schema, job.data.options), where);
  }
  // Records have all of their fields.
  JobFormatPtr to_predict(const std::set<std::string>&) const override {
    auto made = std::make_shared<RecordsFormat>(*this);
    made->schema_.label.clear();
    return made;
  }
};

class TfRecordsFormat final : public SchemaFormat<ExampleSchema> {
 public:
  const char* name() const override { return "tfrecords"; }
  std::vector<std::string> endings() const override { return {".tfrecord", ".tfrecords"}; }
  void read(TomlTable table, JobLabel& truth, const std::vector<std::string>&) override {
    read_example_features(table, schema_.features);
    read_named_label(table, schema_.label, truth);
    table.refuse_unknown();
  }
  std::vector<ColumnType> columns() const override {
    std::vector<ColumnType> columns;
    for (const ExampleFeature& feature : schema_.features)
      columns.push_back(
          {feature.name, feature.dtype, !feature.ragged && feature.shape.rank() == 0});
    return columns;
  }
  void verify_label(const Job&, const std::string& key) const override {
    for (const ExampleFeature& feature : schema_.features)
      if (feature.name == schema_.label &&
          (feature.dtype == DType::kString || feature.ragged || feature.shape.rank() > 0))
        throw InvalidArgumentError(str(key, ": \"", schema_.label,
                                       "\" must be one number of each example, float32 or int64"));
  }
  Dataset source(const Job& job, const std::vector<std::string>& files,
                 const std::vector<std::string>& where) const override {
    ExampleSchema schema = schema_of(job);
    for (ExampleFeature& feature : schema.features)
      if (is_whole(feature.dtype))
        feature.ids =
            ids_of_column(job, feature.name, feature.ragged ? 1 : feature.shape.elements());
    const FileOptions& options = job.data.options;
    return filtered(
        Dataset::tfrecords(files, schema,
                           {.on_error = options.on_error, .empty_files = options.empty_files}),
        where);
  }
  JobFormatPtr to_predict(const std::set<std::string>& needless) const override {
    auto made = std::make_shared<TfRecordsFormat>(*this);
    std::erase_if(made->schema_.features,
                  [&](const ExampleFeature& feature) { return needless.contains(feature.name); });
    made->schema_.label.clear();
    return made;
  }
};

// The text before the first blank of a line that is no comment.
std::optional<std::string> first_word(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos || line[begin] == '#') return std::nullopt;
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

class LibsvmFormat final : public JobFormat {
 public:
  const char* name() const override { return "libsvm"; }
  std::vector<std::string> endings() const override { return {".svm", ".libsvm"}; }
  FeatureForm form() const override { return FeatureForm::kBag; }
  void read(TomlTable table, JobLabel&, const std::vector<std::string>&) override {
    table.read("dimension", schema_.dimension);
    table.read("zero_based", schema_.zero_based);
    read_label(table.table("label"), schema_.label, false);
    table.refuse_unknown();
  }
  void verify(const Job& job, const RefuseKey& refuse) const override {
    if (schema_.dimension < 0 || schema_.dimension > kIndexesMax)
      refuse("data.libsvm.dimension", str(" is ", schema_.dimension, ": a whole number from 0 to ",
                                          kIndexesMax, " is wanted"));
    if (schema_.dimension == 0)
      refuse("data.libsvm.dimension",
             " is not given: it says how many different indexes there are");
    if (job.model.objective == "multiclass")
      refuse("model.objective", " is \"multiclass\": labels of libsvm are two classes, or numbers");
    if (!job.data.weight.empty())
      refuse("data.weight", ": lines of libsvm have no column of weights");
  }
  std::vector<ColumnType> columns() const override { return {}; }
  IdBag bag() const override { return {schema_.ids, schema_.values, schema_.dimension}; }
  const std::string& label() const override { return schema_.label.column; }
  const CsvLabel* label_texts() const override { return &schema_.label; }
  Dataset label_rows(const std::vector<std::string>& files,
                     const std::vector<std::string>&) const override {
    return Dataset::text_lines(
        files, {.on_error = OnError::kSkipAndCount, .empty_files = EmptyFiles::kSkip});
  }
  std::optional<std::string> label_in(const std::string& text) const override {
    return first_word(text);
  }
  Dataset source(const Job& job, const std::vector<std::string>& files,
                 const std::vector<std::string>&) const override {
    LibsvmSchema schema = schema_;
    schema.label.binary = has_binary_label(job);
    schema.qid = job.data.group;
    return Dataset::libsvm(files, schema, job.data.options);
  }
  // Lines have their label.
  JobFormatPtr to_predict(const std::set<std::string>&) const override {
    return std::make_shared<LibsvmFormat>(*this);
  }

 private:
  LibsvmSchema schema_ = {.label = {.column = "label", .binary = true}};
};

std::vector<std::shared_ptr<JobFormat>> make_all() {
  std::vector<std::shared_ptr<JobFormat>> all = detail::cell_formats();
  all.insert(all.begin() + 1, {std::make_shared<RecordsFormat>(), std::make_shared<LibsvmFormat>(),
                               std::make_shared<TfRecordsFormat>()});
  return all;
}

}  // namespace

const std::vector<JobFormatPtr>& job_formats() {
  static const std::vector<JobFormatPtr> all = [] {
    const auto made = make_all();
    return std::vector<JobFormatPtr>(made.begin(), made.end());
  }();
  return all;
}

std::shared_ptr<JobFormat> make_job_format(const std::string& name) {
  const auto all = make_all();
  const auto found = std::ranges::find_if(
      all, [&](const std::shared_ptr<JobFormat>& format) { return format->name() == name; });
  return found == all.end() ? all.front() : *found;
}

const std::vector<std::string>& data_formats() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const JobFormatPtr& format : job_formats()) names.emplace_back(format->name());
    return names;
  }();
  return all;
}

std::string JobFormat::label_key() const { return str("data.", name(), ".label"); }

std::string JobFormat::date_cure(const std::string&) const {
  return "write it as one int64, the seconds since 1970-01-01 UTC";
}

Dataset JobFormat::label_rows(const std::vector<std::string>&,
                              const std::vector<std::string>&) const {
  CAIRN_CHECK(false, "labels of this format have no texts");
}

bool has_binary_label(const Job& job) {
  return job.model.objective == "binary" && !job.data.truth.is_threshold();
}

std::int64_t label_classes(const Job& job, const std::string& label) {
  return job.model.objective == "multiclass" && !label.empty() ? job.model.classes : 0;
}

// Bounds that do not fit the column are refused later, with the job's key (tell_bags()).
IdRange ids_of_column(const Job& job, const std::string& column, std::int64_t values) {
  IdRange ids = job.features.id_range(column);
  const auto bounds = static_cast<std::int64_t>(ids.rows.size());
  return bounds == 1 || bounds == values ? ids : IdRange{};
}

}  // namespace cairn::tools
