// RowStream: the rows that a training run changes, as they change, for programs of one's own.
//
//   RowStream rows({.ps = {"10.0.0.1:4000", "10.0.0.2:4000"}, .cluster = "clicks"});
//   for (RowChanges changes; rows.next(changes, std::chrono::seconds(1)) ...) copy.apply(changes);
//
// A copy that applies what comes, in its order, has each row as a shard had it at some moment, and
// never a moment before the one that it had already. Whatever happens in between - a subscriber
// that is slow, stopped or cut off, a ps that is restored from its checkpoint - the copy is equal
// to the shards once nothing changes any more. Changes of several rows may be seen apart: a copy
// may mix steps, as a worker that trains asynchronously does.
//
// A ps keeps a bit for each row and subscriber, and sends the newest values alone: a row that
// changes a thousand times while nobody asks is sent once. Training waits for no subscriber.
// docs/wire-protocol.md has the calls.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/graph/variable.h"
#include "core/rows/layout.h"

namespace cairn {

struct RowStreamOptions {
  std::vector<std::string> ps;              // their addresses, in the order of their indexes
  std::string cluster = "cairn";            // the id that they were started with
  std::string token = {};                   // empty: none
  std::vector<std::string> variables = {};  // by name; empty: all
  std::size_t bytes_per_second = std::size_t{64} << 20;  // of values, of each ps
  // A shard that has nothing new is asked again after so long.
  Duration every = std::chrono::milliseconds(20);
};

// Changes of rows of one part of a variable, which lies on one shard.
struct RowChanges {
  std::shared_ptr<const VariableSpec> variable;
  RowRange part;  // rows of the whole variable
  // This shard begins anew: it is met for the first time, or its rows were restored. All rows of
  // the part that differ from their initial values follow, the first of them perhaps with this one.
  bool begins = false;
  // All that was to follow a beginning has come: rows of the part that have not come since are at
  // their initial values.
  bool complete = false;
  std::vector<std::int64_t> rows;  // of the whole variable, each once
  std::vector<std::byte> values;   // packed, in their order
  std::vector<std::int64_t> gone;  // rows that left for good: at their initial values again
};

// How far the stream is.
struct RowStreamState {
  // The newest global step that what has come may contain; 0: no ps has seen a push since it began,
  // as after a restore.
  std::int64_t step = 0;
  // Everything that is older than this has come. It grows while a ps is away, or begins anew;
  // Duration::max() before each shard was complete once.
  Duration age = Duration::max();
  std::uint64_t seed = 0;         // of initial values
  bool complete = false;          // each shard has sent all that its beginning promised
  std::vector<std::string> away;  // for each ps that does not answer: which, for how long, and why
};

// The ps of a run, as of now.
//   Errors  NotFound: there is no such run. Unavailable: it has not begun, or has ended.
using RowsOfRun = std::function<RowStreamOptions()>;

class RowStream {
 public:
  // Begins at once. A ps that is away is dialled again until it answers, so the stream outlives
  // those that it follows.
  //   Errors  InvalidArgument: no ps, or what is no address.
  explicit RowStream(RowStreamOptions options);
  ~RowStream();
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;

  // Waits for the next changes. False: none came within `patience`.
  //   Errors  PermissionDenied, FailedPrecondition: a ps refuses this subscriber (token, cluster).
  //           NotFound: a variable of the options is on no ps.
  //   Thread  one at a time; state() from any.
  bool next(RowChanges& changes, Duration patience);
  // As of the changes that next() returned last.
  RowStreamState state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn
