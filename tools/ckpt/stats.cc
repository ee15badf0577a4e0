// stats: bounds, means and histograms of every variable and slot, and whether anything in it is not
// a number.
#include <cstdio>

#include "tools/ckpt/commands.h"
#include "tools/ckpt/field_stats.h"
#include "tools/ckpt/opened_checkpoint.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

struct VariableStats {
  storage::RowFields form;
  std::uint64_t rows = 0;
  std::vector<FieldStats> fields;
  bool finite() const {
    for (const FieldStats& field : fields)
      if (field.finite() != field.count()) return false;
    return true;
  }
};

VariableStats measure_rows(const OpenedCheckpoint& checkpoint,
                           const storage::VariableInfo& variable, Progress& progress) {
  RowsAhead rows(checkpoint.path(), checkpoint.rows(variable));
  VariableStats found{rows.form(), 0, std::vector<FieldStats>(rows.form().fields.size())};
  const storage::RowFields& form = found.form;
  storage::RowBatch batch;
  while (rows.next(batch)) {
    found.rows += batch.rows.size();
    for (std::size_t i = 0; i < form.fields.size(); ++i)
      found.fields[i].add(form.dtype,
                          batch.data.data() + static_cast<std::size_t>(form.fields[i].begin) *
                                                  dtype_bytes(form.dtype),
                          batch.rows.size(), form.bytes(),
                          static_cast<std::size_t>(form.fields[i].width));
    progress.add(batch.data.size());
  }
  return found;
}

Json to_json(const FieldStats& stats) {
  Json histogram = Json::array();
  for (const auto& bucket : stats.histogram())
    histogram.push_back({{"low", bucket.low}, {"high", bucket.high}, {"count", bucket.count}});
  return {{"values", stats.count()}, {"min", stats.min()},        {"max", stats.max()},
          {"mean", stats.mean()},    {"rms", stats.rms()},        {"zeros", stats.zeros()},
          {"nan", stats.nans()},     {"inf", stats.infinities()}, {"histogram", histogram}};
}

Json to_json(const storage::VariableInfo& variable, const VariableStats& found) {
  Json json = {{"name", variable.name},
               {"rows", storage::row_count(variable)},
               {"rows_saved", found.rows},
               {"parameters", to_json(found.fields[0])},
               {"slots", Json::object()}};
  for (std::size_t i = 1; i < found.fields.size(); ++i)
    json["slots"][found.form.fields[i].name] = to_json(found.fields[i]);
  return json;
}

void print(const storage::VariableInfo& variable, const VariableStats& found, bool histogram) {
  std::printf("%s  %s, %llu of %lld rows saved%s\n", variable.name.c_str(),
              TensorType{variable.dtype, variable.shape}.to_string().c_str(),
              static_cast<unsigned long long>(found.rows),
              static_cast<long long>(storage::row_count(variable)),
              variable.hashed ? ", hashed" : "");
  for (std::size_t i = 0; i < found.fields.size(); ++i) {
    const FieldStats& field = found.fields[i];
    const std::string& name = found.form.fields[i].name;
    std::printf("  %-14s min %-12.6g max %-12.6g mean %-12.6g rms %-12.6g zeros %llu",
                name.empty() ? "parameters" : name.c_str(), field.min(), field.max(), field.mean(),
                field.rms(), static_cast<unsigned long long>(field.zeros()));
    if (field.finite() != field.count())
      std::printf("  NaN %llu, Inf %llu", static_cast<unsigned long long>(field.nans()),
                  static_cast<unsigned long long>(field.infinities()));
    std::printf("\n");
    if (!histogram) continue;
    for (const auto& bucket : field.histogram())
      std::printf("    %12.5g to %-12.5g %llu\n", bucket.low, bucket.high,
                  static_cast<unsigned long long>(bucket.count));
  }
}

}  // namespace

int stats(const StatsRequest& request) {
  const OpenedCheckpoint checkpoint(checkpoint_at(request.path),
                                    storage::DatabaseFolders(request.folders));
  std::vector<storage::VariableInfo> chosen;
  for (const std::string& name : request.variables) chosen.push_back(checkpoint.variable(name));
  if (chosen.empty()) chosen = checkpoint.manifest().variables;
  Progress progress("reading", checkpoint.bytes());
  bool finite = true;
  Json all = Json::array();
  for (const storage::VariableInfo& variable : chosen) {
    const VariableStats found = measure_rows(checkpoint, variable, progress);
    finite = finite && found.finite();
    if (request.form == Form::kJson)
      all.push_back(to_json(variable, found));
    else
      print(variable, found, request.histogram);
  }
  if (request.form == Form::kJson)
    print_json({{"path", checkpoint.path()}, {"finite", finite}, {"variables", all}});
  return finite ? kFine : kFound;
}

}  // namespace cairn::tools::ckpt
