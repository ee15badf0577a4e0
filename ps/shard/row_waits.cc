#include "ps/shard/row_waits.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::ps {

// ---- claims ----

// Rows are counted and not just noted: several updates that wait may want the same row, and it is
// free only when the last of them has gone.
void RowClaims::add(const WantedRows& wanted) {
  OfTable& table = tables_[wanted.table];
  ++table.claims;
  if (wanted.all) ++table.of_all;
  for (const std::int64_t row : wanted.rows) ++table.rows[row];
}

void RowClaims::remove(const WantedRows& wanted) {
  const auto found = tables_.find(wanted.table);
  OfTable& table = found->second;
  if (--table.claims == 0) {
    tables_.erase(found);
    return;
  }
  if (wanted.all) --table.of_all;
  for (const std::int64_t row : wanted.rows)
    if (const auto at = table.rows.find(row); --at->second == 0) table.rows.erase(at);
}

// Called for every request on a shard whose rows may be elsewhere. Without claims a call costs one
// look.
bool RowClaims::meet(const WantedRows& wanted) const {
  if (tables_.empty()) return false;
  const auto found = tables_.find(wanted.table);
  if (found == tables_.end()) return false;
  const OfTable& table = found->second;
  if (wanted.all || (table.of_all > 0 && !wanted.rows.empty())) return true;
  return std::any_of(wanted.rows.begin(), wanted.rows.end(),
                     [&](std::int64_t row) { return table.rows.count(row) != 0; });
}

// ---- waiting ----

// Three reasons to wait: an earlier update is still to change one of the rows, which it must do
// first; a row is not in memory; or the rows may not be changed now.
bool RowWaits::must_wait(Access access, std::span<const WantedRows> wanted) {
  for (const WantedRows& one : wanted) {
    if (claimed_.meet(one)) return true;
    if (source_ == nullptr) continue;
    elsewhere_.clear();
    source_->find_elsewhere(one, access, elsewhere_);
    if (!elsewhere_.empty()) return true;
  }
  return access == Access::kUpdate && !calls_.may_change(wanted);
}

RowWaits::Number RowWaits::wait(const StepContext& step, Access access,
                                std::span<const WantedRows> wanted, std::size_t bytes, Turn turn) {
  if (waiting_.size() >= options_.requests_max || bytes_ + bytes > options_.bytes_max)
    throw UnavailableError(
        str(waiting_.size(), " requests of ", bytes_,
            " bytes wait for rows of this shard that are being fetched or saved, "
            "as many as may: repeat the call"));
  const Number number = ++last_;
  Waiter& waiter = waiting_[number];
  waiter.step = step;
  waiter.access = access;
  waiter.turn = std::move(turn);
  waiter.bytes = bytes;
  if (source_ != nullptr) waiter.since = source_->moment();
  bytes_ += bytes;
  for (const WantedRows& one : wanted) {
    waiter.claims.push_back({one.table, one.all, {one.rows.begin(), one.rows.end()}});
    if (access == Access::kUpdate) claimed_.add(waiter.claims.back().wanted());
  }
  // At once, also where an earlier update is still to come: its rows are fetched meanwhile.
  fetch_all(waiter);
  return number;
}

void RowWaits::on_end(Number number, WaitEnd end) {
  if (const auto found = waiting_.find(number); found != waiting_.end())
    found->second.end = std::move(end);
}

// A request is taken out before its callbacks run: they may have further requests join or leave.
RowWaits::Waiter RowWaits::take(Number number) {
  const auto found = waiting_.find(number);
  Waiter waiter = std::move(found->second);
  waiting_.erase(found);
  bytes_ -= waiter.bytes;
  if (waiter.access == Access::kUpdate)
    for (const Claim& claim : waiter.claims) claimed_.remove(claim.wanted());
  return waiter;
}

// An update is carried out here, in its turn. Its error is its own, and goes to the one who waits
// for it and not to the one whose call happened to bring its turn.
void RowWaits::finish(Waiter waiter, std::exception_ptr error) {
  WaitOutcome outcome{{}, std::move(error)};
  if (outcome.error == nullptr && waiter.turn) {
    try {
      outcome.pushed = waiter.turn();
    } catch (...) {
      outcome.error = std::current_exception();
    }
  }
  if (waiter.end) waiter.end(outcome);
}

void RowWaits::give_up(Number number) {
  if (waiting_.count(number) == 0) return;
  take(number);
  give_turns();  // to those that waited for no other
}

void RowWaits::refuse(const std::function<std::exception_ptr(const StepContext&)>& verdict) {
  // In three steps, because each callback may change the list: find the requests that are refused,
  // take them out, and call back.
  std::vector<std::pair<Number, std::exception_ptr>> refused;
  for (const auto& [number, waiter] : waiting_)
    if (std::exception_ptr error = verdict(waiter.step))
      refused.emplace_back(number, std::move(error));
  std::vector<std::pair<Waiter, std::exception_ptr>> ended;
  for (auto& [number, error] : refused) ended.emplace_back(take(number), std::move(error));
  for (auto& [waiter, error] : ended) finish(std::move(waiter), std::move(error));
  if (!refused.empty()) give_turns();
}

// In the order in which they came; each sees what the updates before it, that are still to wait,
// have a claim on. A turn may have others join or leave, so that nothing but the numbers is kept
// over it; one that leaves may set free what was passed, so that a further pass follows.
void RowWaits::give_turns() {
  again_ = true;
  if (giving_turns_) return;
  giving_turns_ = true;
  while (std::exchange(again_, false)) {
    RowClaims ahead;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      const Number number = at->first;
      Waiter& waiter = at->second;
      if (all_here(waiter) && may_go(waiter, ahead)) {
        if (source_ != nullptr && waiter.access == Access::kRead)
          unanswered_[number] = waiter.since;
        finish(take(number), nullptr);
      } else if (waiter.access == Access::kUpdate && std::next(at) != waiting_.end()) {
        for (const Claim& claim : waiter.claims) ahead.add(claim.wanted());
      }
      at = waiting_.upper_bound(number);
    }
  }
  giving_turns_ = false;
  settle();
}

// The one that waits longest is the first. Moments go round, and are compared by their distance.
void RowWaits::settle() {
  if (source_ == nullptr || giving_turns_) return;
  const RowSource::Moment now = source_->moment();
  RowSource::Moment longest = 0;
  if (!waiting_.empty()) longest = now - waiting_.begin()->second.since;
  for (const auto& [number, since] : unanswered_) longest = std::max(longest, now - since);
  source_->settle(now - longest);
}

void RowWaits::answered(Number number) { unanswered_.erase(number); }

bool RowWaits::may_go(const Waiter& waiter, const RowClaims& ahead) const {
  std::vector<WantedRows> wanted;
  for (const Claim& claim : waiter.claims) {
    wanted.push_back(claim.wanted());
    if (ahead.meet(wanted.back())) return false;
  }
  return waiter.access == Access::kRead || calls_.may_change(wanted);
}

// ---- fetching ----

// A row that is here now, or comes, stays until its turn: see RowSource::settle().
bool RowWaits::all_here(const Waiter& waiter) const {
  return std::none_of(waiter.fetches.begin(), waiter.fetches.end(),
                      [this](Fetch fetch) { return fetches_.count(fetch) != 0; });
}

void RowWaits::fetch_all(Waiter& waiter) {
  if (source_ == nullptr) return;
  for (const Claim& claim : waiter.claims) {
    elsewhere_.clear();
    source_->find_elsewhere(claim.wanted(), waiter.access, elsewhere_);
    if (elsewhere_.empty()) continue;
    std::sort(elsewhere_.begin(), elsewhere_.end());
    elsewhere_.erase(std::unique(elsewhere_.begin(), elsewhere_.end()), elsewhere_.end());
    fetch(waiter, *claim.table, std::vector<std::int64_t>(elsewhere_));
  }
}

// A row that is being fetched is not asked for again: put into the table a second time, it would
// undo an update that came between.
void RowWaits::fetch(Waiter& waiter, Table& table, const std::vector<std::int64_t>& elsewhere) {
  std::vector<std::int64_t> rows;
  for (const std::int64_t row : elsewhere) {
    const auto found = fetching_.find({&table, row});
    if (found == fetching_.end())
      rows.push_back(row);
    else
      waiter.fetches.insert(found->second);
  }
  if (rows.empty()) return;
  const Fetch number = ++last_fetch_;
  waiter.fetches.insert(number);
  for (const std::int64_t row : rows) fetching_[{&table, row}] = number;
  fetches_[number] = {&table, rows};
  source_->fetch(table, rows,
                 [this, number, alive = std::weak_ptr<const bool>(alive_)](
                     const std::vector<storage::StoredRows>& stored, std::exception_ptr error) {
                   if (!alive.expired()) fetched(number, stored, std::move(error));
                 });
}

// A fetch that was forgotten by reset() brings rows from before a restore, and is dropped. If the
// fetch failed, all requests that wait for its rows end with its error; the others, which may have
// waited only for one of those, get a turn.
void RowWaits::fetched(Fetch number, const std::vector<storage::StoredRows>& rows,
                       std::exception_ptr error) {
  const auto found = fetches_.find(number);
  // Forgotten by reset().
  if (found == fetches_.end()) return;
  const UnderWay fetch = std::move(found->second);
  fetches_.erase(found);
  for (const std::int64_t row : fetch.rows) fetching_.erase({fetch.table, row});
  if (error == nullptr) {
    try {
      for (const storage::StoredRows& block : rows) calls_.put(*fetch.table, block);
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error != nullptr) {
    std::vector<Number> failed;
    for (const auto& [waiting, waiter] : waiting_)
      if (waiter.fetches.count(number) != 0) failed.push_back(waiting);
    for (const Number waiting : failed)
      if (waiting_.count(waiting) != 0) finish(take(waiting), error);
  }
  give_turns();
}

void RowWaits::reset(Table& table) {
  std::erase_if(fetches_, [&](const auto& entry) { return entry.second.table == &table; });
  std::erase_if(fetching_, [&](const auto& entry) { return entry.first.first == &table; });
  if (source_ != nullptr) source_->reset(table);
}

}  // namespace cairn::ps
