#include "tools/job/spec/job_tables.h"

#include "core/base/error.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

constexpr const char* kOthers = "*";

JobTable read_table(TomlTable table) {
  JobTable made;
  made.place = table.located("");
  table.read("hashed", made.hashed);
  RowPolicy& policy = made.policy;
  std::int64_t admit_after = policy.admit_after;
  table.read("admit_after", admit_after);
  policy.admit_after = static_cast<std::uint32_t>(
      admit_after < 0 || admit_after > UINT32_MAX ? UINT32_MAX : admit_after);
  table.read("sketch_rows", policy.sketch_rows);
  table.read("admit_probability", policy.admit_probability);
  table.read("rows_max", policy.rows_max);
  table.read("steps_to_live", policy.steps_to_live);
  table.read("spared_norm", policy.spared_norm);
  table.refuse_unknown();
  if (const std::string why = why_not(policy); !why.empty())
    throw InvalidArgumentError(table.located(why));
  if (made.hashed == false && !policy.keeps_all())
    throw InvalidArgumentError(
        table.located("hashed = false: rows are admitted and evicted of hashed tables alone"));
  return made;
}

}  // namespace

JobTables JobTables::read(TomlTable tables) {
  JobTables made;
  tables.each([&](const std::string& name, const toml::node&) {
    made.tables_[name] = read_table(tables.table(name));
  });
  return made;
}

JobTable JobTables::of(const std::string& feature, std::int64_t rows,
                       std::int64_t hashed_from) const {
  auto found = tables_.find(feature);
  if (found == tables_.end()) found = tables_.find(kOthers);
  JobTable table = found == tables_.end() ? JobTable{} : found->second;
  if (!table.hashed.has_value())
    table.hashed = !table.policy.keeps_all() || (hashed_from > 0 && rows >= hashed_from);
  return table;
}

}  // namespace cairn::tools
