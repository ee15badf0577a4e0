// RowMove: how the rows of a checkpoint's variable become rows of a program's variable. The plan of
// a restore (coordinator/restore/restore_plan.h) makes it, and each reader of a checkpoint's rows
// goes by it (storage/moved_rows.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cairn {

// By the checkpoint's row: the program's row, below 2^32 - 1, or kRowGone. No two are the same row.
using RowNumbers = std::vector<std::int64_t>;
inline constexpr std::int64_t kRowGone = -1;
// They go to each ps in one message.
inline constexpr std::size_t kRowNumbersMax = std::size_t{12} << 20;

struct RowMove {
  std::string from;       // the checkpoint's variable
  bool slots = true;      // false: the rows come without, so that the optimizer's begin anew
  std::int64_t rows = 0;  // of the program's variable; a scalar has one
  std::shared_ptr<const RowNumbers> numbers = nullptr;  // null: each row keeps its number
};

}  // namespace cairn
