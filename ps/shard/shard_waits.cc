// Shard's requests that wait for rows: which rows a request wants, and what happens in its turn.
#include "core/base/error.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

// ---- pull ----

bool Shard::rows_must_wait(const PullRequest& request) {
  work_.wanted.clear();
  for (const VerifiedRead& read : pull(request).reads())
    work_.wanted.push_back({read.table, read.ids, read.whole});
  return waits_.must_wait(work_.wanted);
}

// Asked once more for the sake of `work_.wanted`, which the next request overwrites.
std::uint64_t Shard::wait(const PullRequest& request) {
  rows_must_wait(request);
  return waits_.wait(request.step, RowWaits::Access::kRead, work_.wanted, 0, {});
}

// ---- push ----

bool Shard::rows_must_wait(const Plan& plan) {
  work_.wanted.clear();
  for (const PlannedUpdate& update : plan.updates) {
    const UpdateHeader& header = *update.header;
    // A table rule changes every row, but a push without rows is to reach it too.
    work_.wanted.push_back(
        {update.table, update.ids, header.whole || is_table_rule(header.rule.kind)});
  }
  return waits_.must_wait(work_.wanted);
}

// A push that waits is kept as staging keeps a piece: its message may go. Its plan is not, since it
// refers to tables, and to what was true when it came.
PushResult Shard::wait(const PushRequest& request, std::span<const PushPiece> pieces) {
  struct Kept {
    PushRequest request;
    std::vector<PushPiece> pieces;
  };
  auto kept = std::make_shared<Kept>();
  if (request.pieces == 1)
    kept->pieces.push_back(keep(request));
  else
    kept->pieces.assign(pieces.begin(), pieces.end());
  kept->request = request;
  kept->request.headers = {};
  kept->request.ids = {};
  kept->request.values = {};
  kept->request.owner = nullptr;
  std::size_t bytes = 0;
  for (const PushPiece& piece : kept->pieces) bytes += bytes_of(piece);
  PushResult result{version(), 0, false};
  result.waits = waits_.wait(request.step, RowWaits::Access::kUpdate, work_.wanted, bytes,
                             [this, kept] { return take_turn(kept->request, kept->pieces); });
  return result;
}

// Much may have happened since it came: the same push from another run of its closure, which shares
// no row with it, may have been applied, its session may have ended, its worker may be fenced.
PushResult Shard::take_turn(const PushRequest& request, std::span<const PushPiece> pieces) {
  if (applied_before(request)) return duplicate(request);
  return finish_push(request, plan(pieces, request.encoding));
}

// ---- fetched rows, and refusals ----

void Shard::put_fetched(Table& table, const storage::StoredRows& rows) {
  const std::int64_t held = table.held();
  const std::size_t bytes = table.memory_bytes();
  table.put(rows);
  count_growth(table, held, bytes);
}

// Requests that would be refused if they came now are refused at once.
void Shard::refuse_waiting() {
  if (waits_.always_here()) return;
  waits_.refuse([this](const StepContext& step) {
    std::exception_ptr error;
    try {
      verify_step(step);
      verify_fence(step);
    } catch (const Error&) {
      error = std::current_exception();
    }
    return error;
  });
}

}  // namespace cairn::ps
