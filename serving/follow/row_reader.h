// RowReader: rows read straight from live ps, for a table that is larger than the server.
//
//   RowReader reader({.ps = {"10.0.0.1:4000", "10.0.0.2:4000"}, .cluster = "clicks"});
//   RowsWanted wanted{"users", ids, out};
//   const RowsRead read = reader.read({&wanted, 1}, std::chrono::milliseconds(20));
//
// Rows of several variables are asked for at once, in one call for each shard (more where they are
// above 4 MB), of all shards at the same time. A row is read as it is at that moment; one of a
// hashed variable that no training has updated is read as its initial value, and is not made. Rows
// that are on a disk, or still being restored, are waited for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/graph/variable.h"
#include "serving/follow/row_stream.h"

namespace cairn::serving {

struct RowsWanted {
  std::string variable;
  std::span<const std::int64_t> rows;  // of the whole variable, in any order
  std::byte* out = nullptr;            // room for all of them, packed
};

struct RowsRead {
  // For each of those that were wanted, as indexes into its rows: rows that did not come in time,
  // or whose ps is away. Their places in `out` are as they were.
  std::vector<std::vector<std::size_t>> missing;
  std::int64_t step = 0;  // the newest global step that they may contain; 0: not known
  bool complete() const {
    for (const auto& one : missing)
      if (!one.empty()) return false;
    return true;
  }
};

class RowReader {
 public:
  // Connects at once, and again whenever a connection has ended. Of the options `ps`, `cluster` and
  // `token` count.
  //   Errors  InvalidArgument: no ps, or what is no address.
  explicit RowReader(RowStreamOptions options);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // Returns when all rows are there, or nothing more is to be hoped for, and not later than after
  // `patience`. Until every ps has answered once, rows that no ps has told of are waited for.
  //   Errors  InvalidArgument: a row that the variable does not have. NotFound: a variable that is
  //           on no ps, once all have answered. PermissionDenied, FailedPrecondition: a ps refuses
  //           this reader (token, cluster).
  //   Thread  any; several at a time.
  //   Cost    a message to each shard, and two switches of threads.
  RowsRead read(std::span<const RowsWanted> wanted, Duration patience);
  // The variable as the ps have it, and their seed of initial values. A given initial value is not
  // told. Null: none came within `patience`.
  //   Thread  any.
  std::shared_ptr<const VariableSpec> variable(const std::string& name, Duration patience);
  std::uint64_t seed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::serving
