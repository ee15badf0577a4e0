// [table.NAME] of a job file: of the table of one feature of ids which rows come to be, and which
// go. [table."*"] is what all others have.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/graph/row_policy.h"

namespace cairn::tools {

class TomlTable;

struct JobTable {
  std::optional<bool> hashed = {};  // said for this table
  RowPolicy policy = {};
  std::string place = "";  // of its section, for messages
};

class JobTables {
 public:
  // `tables` is what stands in [table].
  //   Errors  InvalidArgument: file, line and what is wrong.
  static JobTables read(TomlTable tables);

  // The section of a feature's table of so many rows. `hashed_from` says from how many on tables
  // are hashed; 0: from none. One with a policy is hashed if nothing else is said.
  JobTable of(const std::string& feature, std::int64_t rows, std::int64_t hashed_from) const;
  // The sections, by their names.
  const std::map<std::string, JobTable>& all() const { return tables_; }

 private:
  std::map<std::string, JobTable> tables_;
};

}  // namespace cairn::tools
