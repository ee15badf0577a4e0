#include "tools/job/spec/job_conditions.h"

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "data/format/csv_filter.h"
#include "tools/job/spec/job_format.h"

namespace cairn::tools {
namespace {

// The examples of these formats hold a value wherever they have a column of one value.
std::vector<ConditionColumn> columns_of(const ElementSpec& element) {
  std::vector<ConditionColumn> columns;
  for (const ColumnSpec& column : element.columns)
    columns.push_back({column.name, column.type.dtype, column.type.shape.rank() > 0});
  return columns;
}

std::vector<ConditionColumn> columns_of(const JobFormat& format) {
  if (const CsvSchema* cells = format.cells()) return condition_columns(*cells);
  std::vector<ConditionColumn> columns;
  for (const auto& [name, dtype, single] : format.columns())
    columns.push_back({name, dtype, !single});
  return columns;
}

}  // namespace

void verify_conditions(const Job& job, const PlaceOf& place) {
  const std::vector<ConditionColumn> columns = columns_of(job.data.form());
  const auto verify = [&](const std::string& key, const std::vector<std::string>& where) {
    if (!where.empty() && job.data.form().form() == FeatureForm::kBag)
      throw InvalidArgumentError(
          str(place(key), ": lines of ", job.data.format, " have no columns to ask for"));
    for (const std::string& text : where) {
      try {
        const RowCondition condition(text, columns);
        if (job.data.form().cells() == nullptr && !condition.of_number())
          throw InvalidArgumentError(str("the condition \"", text, "\": of data.format = \"",
                                         job.data.format, "\" only numbers can be compared"));
      } catch (const InvalidArgumentError& error) {
        throw InvalidArgumentError(str(place(key), ": ", error.what()));
      }
    }
  };
  verify("data.where", job.data.where);
  verify("data.test_where", job.data.test_where);
  verify("validation.where", job.validation.where);
}

Dataset filtered(const Dataset& data, const std::vector<std::string>& where) {
  if (where.empty()) return data;
  const ElementSpec element = data.element_spec();
  std::vector<RowCondition> conditions;
  for (const std::string& text : where) conditions.emplace_back(text, columns_of(element));
  return data.filter([&](const Batch& example) {
    Array all;
    for (const RowCondition& condition : conditions) {
      const std::string& column = condition.column();
      const Array holds =
          condition.recorded(column == element.label ? example.label : example.features[column]);
      all = all.defined() ? logical_and(all, holds) : holds;
    }
    return all;
  });
}

}  // namespace cairn::tools
