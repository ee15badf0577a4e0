// import: a checkpoint of a file of arrays, row by row.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/disk/disk.h"
#include "storage/checkpoint_writer.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/import_plan.h"
#include "tools/ckpt/new_checkpoint.h"

namespace cairn::tools::ckpt {
namespace {

constexpr std::size_t kImportBatchBytes = std::size_t{256} << 10;

std::map<std::string, std::int64_t> read_rows(const std::vector<std::string>& given) {
  std::map<std::string, std::int64_t> rows;
  for (const std::string& one : given) {
    const std::size_t equals = one.rfind('=');
    std::int64_t count = 0;
    const char* end = one.data() + one.size();
    const auto read = std::from_chars(
        one.data() + (equals == std::string::npos ? one.size() : equals + 1), end, count);
    if (equals == std::string::npos || read.ptr != end || count < 1)
      throw InvalidArgumentError(str("--rows takes NAME=N, and \"", one, "\" is not that"));
    rows[one.substr(0, equals)] = count;
  }
  return rows;
}

// The rows of one variable: a column of each array, side by side.
void import_rows(const ImportedVariable& one, storage::CheckpointWriter& writer,
                 Progress& progress) {
  const storage::RowFields form = storage::row_fields(one.variable);
  const std::size_t element = dtype_bytes(form.dtype);
  std::unique_ptr<ArrayCursor> keys;
  if (one.keys.has_value()) keys = std::make_unique<ArrayCursor>(*one.keys);
  std::vector<std::unique_ptr<ArrayCursor>> fields;
  for (const StoredArray& array : one.fields)
    fields.push_back(std::make_unique<ArrayCursor>(array));
  const std::uint64_t most = kImportBatchBytes / std::max<std::size_t>(form.bytes(), 1) + 1;
  storage::RowBatch batch;
  std::vector<std::byte> column;
  for (std::uint64_t row = 0; row < one.rows;) {
    const auto count = static_cast<std::size_t>(std::min(most, one.rows - row));
    batch.rows.resize(count);
    batch.data.resize(count * form.bytes());
    if (keys != nullptr)
      keys->read(reinterpret_cast<std::byte*>(batch.rows.data()), count * sizeof(std::int64_t));
    else
      for (std::size_t i = 0; i < count; ++i) batch.rows[i] = static_cast<std::int64_t>(row + i);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const std::size_t width = static_cast<std::size_t>(form.fields[f].width) * element;
      const std::size_t at = static_cast<std::size_t>(form.fields[f].begin) * element;
      column.resize(count * width);
      fields[f]->read(column.data(), column.size());
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(batch.data.data() + i * form.bytes() + at, column.data() + i * width, width);
    }
    writer.add(batch);
    row += count;
    progress.add(batch.data.size());
  }
}

}  // namespace

int import_arrays(const ImportRequest& request) {
  verify_local(request.file);
  ArrayListing listing = list_arrays(request.file);
  const bool is_bundle = request.file.ends_with(".index");
  if (!is_bundle && !request.optimizer.empty())
    throw InvalidArgumentError("--optimizer is of a TensorFlow bundle: name its .index file");
  const auto slots = is_bundle ? take_bundle_slots(listing, request.optimizer)
                               : std::map<std::string, BundleSlots>();
  ImportPlan plan = plan_import(request.file, std::move(listing), read_rows(request.rows), slots);
  std::uint64_t bytes = 0;
  std::vector<storage::VariableInfo> variables;
  for (const ImportedVariable& one : plan.variables) {
    variables.push_back(one.variable);
    for (const StoredArray& array : one.fields) bytes += array.info.bytes();
  }
  NewCheckpoint made("", request.out);
  const auto store = storage::make_rocks_row_store();
  storage::CheckpointWriter writer(*store, made.path(), {"imported"});
  Progress progress("importing", bytes);
  for (const auto& variable : storage::in_key_order(variables)) {
    const auto one = std::find_if(
        plan.variables.begin(), plan.variables.end(),
        [&](const ImportedVariable& each) { return each.variable.name == variable.name; });
    one->variable.parts = writer.begin(variable, one->updates);
    import_rows(*one, writer, progress);
  }
  plan.manifest.databases = writer.finish();
  plan.manifest.variables.clear();
  for (const ImportedVariable& one : plan.variables)
    plan.manifest.variables.push_back(one.variable);
  made.commit(plan.manifest, request.single);
  if (request.form == Form::kJson)
    print_json({{"file", request.file},
                {"path", made.path()},
                {"variables", plan.variables.size()},
                {"with_slots", slots.size()},
                {"rows", plan.manifest.databases.at(0).rows}});
  else
    std::printf(
        "%s: %zu variables%s, %llu rows, of %s\n", made.path().c_str(), plan.variables.size(),
        slots.empty() ? "" : str(" (", slots.size(), " with slots)").c_str(),
        static_cast<unsigned long long>(plan.manifest.databases.at(0).rows), request.file.c_str());
  return kFine;
}

}  // namespace cairn::tools::ckpt
