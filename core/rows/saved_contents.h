// Contents that a store takes in from elsewhere: rows of a variable with the slots beside them, as
// a checkpoint has them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/graph/variable.h"

namespace cairn {

// A block of rows as it was written: each row's parameters with its slots right behind them. Parts
// of one variable may have been saved under different rules, so each block names its own.
struct SavedRows {
  RuleKind rule = RuleKind::kAssign;  // whose slots these are
  std::uint32_t slots = 0;
  std::vector<std::int64_t> rows;  // of the variable; each in range
  std::vector<std::byte> data;     // [rows][parameters, then `slots` of slot_width(rule, dim) each]
};

// All that was saved of one variable.
struct SavedContents {
  // The rule that the variable had when it was saved.
  UpdateRule rule;
  std::int64_t updates = 0;  // by optimizers so far: the `t` of Adam
  // The counts that its parts had of rows that were not admitted (RowTurnover).
  struct Seen {
    std::uint64_t dropped = 0;
    std::string sketch;
  };
  std::vector<Seen> seen = {};
  std::vector<SavedRows>
      blocks;  // of two that hold a row, the later one wins; rows in none have their initial values
};

// Where a runtime's variables get their rows when they are made.   Thread  one at a time.
class VariableSource {
 public:
  virtual ~VariableSource() = default;
  // Empty: it has nothing for such a variable, which keeps its initial values.
  //   Errors  FailedPrecondition: it has the variable with another dtype or shape. DataLoss: it
  //   cannot be read.
  virtual std::optional<SavedContents> read(const VariableSpec& spec) = 0;
};

}  // namespace cairn
