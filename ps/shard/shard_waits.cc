// Shard's requests that wait: which rows a request wants, whether they may be changed, and what
// happens in its turn.
#include "core/base/error.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

// ---- pull ----

void Shard::want(const PullRequest& request) {
  work_.wanted.clear();
  for (const VerifiedRead& read : pull(request).reads())
    work_.wanted.push_back({read.table, read.ids, read.whole});
}

bool Shard::rows_must_wait(const PullRequest& request) {
  want(request);
  return waits_.must_wait(RowWaits::Access::kRead, work_.wanted);
}

std::uint64_t Shard::wait(const PullRequest& request) {
  want(request);
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
  return waits_.must_wait(RowWaits::Access::kUpdate, work_.wanted);
}

// While a checkpoint is written, a row is copied aside before it changes. If the pool has no room
// for the copies, the rows may change once the writer has taken their blocks, which needs no room,
// or when the save ends. A request may want more than the whole pool: it has its turn when so much
// is written that the rest fits.
bool Shard::has_room_to_change(std::span<const WantedRows> wanted) {
  if (is_crowded()) return false;
  if (!cuts_.mark.has_value()) return true;
  // Rows are looked at one by one only if so many might not fit.
  const auto at_most = [](const WantedRows& one) {
    return one.all ? static_cast<std::size_t>(one.table->held()) : one.rows.size();
  };
  const auto exactly = [](const WantedRows& one) {
    return one.all ? one.table->rows_to_copy_of_all() : one.table->rows_to_copy(one.rows);
  };
  return room_for_copies(wanted, at_most) <= cuts_.copies.room() ||
         room_for_copies(wanted, exactly) <= cuts_.copies.room();
}

// Updates of one table come one after another in a push: their copies share what slots are free.
template <typename RowsOf>
std::size_t Shard::room_for_copies(std::span<const WantedRows> wanted, RowsOf rows_of) {
  std::size_t room = 0;
  for (std::size_t i = 0; i < wanted.size();) {
    Table& table = *wanted[i].table;
    std::size_t rows = 0;
    for (; i < wanted.size() && wanted[i].table == &table; ++i)
      rows += table.copies_on_write() ? rows_of(wanted[i]) : 0;
    room += table.room_for_copies(rows);
  }
  return room;
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
  ShardCounters::set(counters_.kept.waiting, waits_.size());
  return result;
}

PushResult Shard::wait(const RoundRequest& request) {
  struct Kept {
    RoundRequest request;
    std::vector<RoundMember> members;
  };
  auto kept = std::make_shared<Kept>();
  kept->request = request;
  kept->members.assign(request.members.begin(), request.members.end());
  kept->request.members = kept->members;
  StepContext step;  // the coordinator's: of no lane
  step.session = request.session;
  step.epoch = layout_.epoch;
  PushResult result{version(), 0, false};
  result.waits = waits_.wait(step, RowWaits::Access::kUpdate, work_.wanted, 0,
                             [this, kept] { return take_turn(kept->request); });
  ShardCounters::set(counters_.kept.waiting, waits_.size());
  return result;
}

// Much may have happened since it came: the same push from another run of its closure, which shares
// no row with it, may have been applied, its session may have ended, its worker may be fenced.
PushResult Shard::take_turn(const PushRequest& request, std::span<const PushPiece> pieces) {
  ShardCounters::set(counters_.kept.waiting, waits_.size());
  if (applied_before(request)) return duplicate(request);
  return finish_push(request, plan(pieces, request.encoding));
}

// ---- fetched rows, and refusals ----

void Shard::put_fetched(Table& table, const storage::StoredRows& rows) {
  const std::int64_t rows_before = rows_of(table);
  const std::size_t bytes = table.memory_bytes();
  table.put(rows);
  count_growth(table, rows_before, bytes);
}

// Requests that would be refused if they came now are refused at once.
void Shard::refuse_waiting() {
  if (waits_.idle()) return;
  waits_.refuse([this](const StepContext& step) {
    std::exception_ptr error;
    try {
      verify_step(step);
      if (step.incarnation != 0) verify_fence(step);
    } catch (const Error&) {
      error = std::current_exception();
    }
    return error;
  });
  ShardCounters::set(counters_.kept.waiting, waits_.size());
}

void Shard::give_up(std::uint64_t wait) {
  waits_.give_up(wait);
  ShardCounters::set(counters_.kept.waiting, waits_.size());
}

std::string Shard::waits_for() const {
  if (is_crowded()) return "rows to leave memory, which others need";
  if (restoring_.any()) return str("rows of ", still_restoring(), ", which are being restored");
  if (!cuts_.mark.has_value()) return "rows that are being fetched, or pushes of the same rows";
  return str(
      "room to copy rows aside, of which ", cuts_.copies.taken(), " of ", cuts_.copies.limit(),
      " bytes are taken until cut ", cuts_.mark->attempt, " is saved: ",
      cuts_.mark->saving ? str(cuts_.mark->taken, " of its ", cuts_.mark->blocks, " blocks are")
                         : "its save has not begun");
}

}  // namespace cairn::ps
