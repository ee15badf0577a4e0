// get: single rows with their slots.
#include <cstdio>
#include <optional>

#include "tools/ckpt/commands.h"
#include "tools/ckpt/opened_checkpoint.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

using storage::RowFields;

Json field_json(const RowFields& form, const RowFields::Field& field, const std::byte* row) {
  Json values = Json::array();
  for (std::int64_t i = 0; i < field.width; ++i)
    values.push_back(json_number(element_value(
        form.dtype, row + static_cast<std::size_t>(field.begin + i) * dtype_bytes(form.dtype))));
  return values;
}

void print_field(const RowFields& form, const RowFields::Field& field, const std::byte* row) {
  std::printf("  %-14s", field.name.empty() ? "parameters" : field.name.c_str());
  for (std::int64_t i = 0; i < field.width; ++i)
    std::printf(" %.9g", element_value(form.dtype, row + static_cast<std::size_t>(field.begin + i) *
                                                             dtype_bytes(form.dtype)));
  std::printf("\n");
}

// A row that no database holds was never touched, and has the initial value that its program gives
// it.
Json row_json(const RowFields& form, std::int64_t row, const std::byte* data) {
  Json json = {{"row", row}, {"saved", data != nullptr}};
  if (data == nullptr) return json;
  for (const RowFields::Field& field : form.fields) {
    if (field.name.empty())
      json["parameters"] = field_json(form, field, data);
    else
      json["slots"][field.name] = field_json(form, field, data);
  }
  return json;
}

}  // namespace

int get(const GetRequest& request) {
  const OpenedCheckpoint checkpoint(checkpoint_at(request.path),
                                    storage::DatabaseFolders(request.folders));
  const storage::VariableInfo& variable = checkpoint.variable(request.variable);
  const RowFields form = storage::row_fields(variable);
  for (const std::int64_t row : request.rows)
    if (row < 0 || row >= storage::row_count(variable))
      throw InvalidArgumentError(str("variable \"", variable.name, "\" has rows 0 to ",
                                     storage::row_count(variable) - 1, ", and no row ", row));
  int status = kFine;
  Json rows = Json::array();
  for (const std::int64_t row : request.rows) {
    storage::RowBatch batch;
    const bool held = reading(checkpoint.path(), [&] {
      return checkpoint.rows(variable, {row, row + 1}).next(batch);
    });
    if (!held) status = kFound;
    if (request.form == Form::kJson) {
      rows.push_back(row_json(form, row, held ? batch.data.data() : nullptr));
      continue;
    }
    std::printf("%s row %lld%s\n", variable.name.c_str(), static_cast<long long>(row),
                held ? "" : ": not in the checkpoint, never touched: it has its initial value");
    if (held)
      for (const RowFields::Field& field : form.fields) print_field(form, field, batch.data.data());
  }
  if (request.form == Form::kJson)
    print_json({{"path", checkpoint.path()}, {"variable", variable.name}, {"rows", rows}});
  return status;
}

}  // namespace cairn::tools::ckpt
