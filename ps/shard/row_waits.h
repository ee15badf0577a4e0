// RowWaits: requests that wait, for rows that are elsewhere or, updates alone, until their rows may
// be changed.
//
//   Order  A request has its turn when all of its rows are here, an update also when they may be
//          changed, and no earlier update that still waits shares a row with it. So two updates of
//          one row apply in the order in which they came. Requests that share no row with a waiting
//          update go by. An update does not wait for earlier reads, which are answered with the
//          rows as they are at their turn. With a source, a read sees every update of its rows that
//          came before it; without one reads never wait, and see of an update that waits nothing:
//          it has not been acknowledged.
//   Turn   In its turn a push is carried out at once, before anything else happens to the shard;
//          until then nothing of it has. So whatever comes between (a mark, a fence, another
//          session) sees it whole or not at all. For a pull only `end` is called: its caller reads
//          when it can send the answer, and asks again before that.
//   Cost   Without a source and without requests that wait, nothing. Else asking the source, and a
//          look-up of each row of a new request while updates wait; at each event a pass over the
//          rows of those that wait.
//   Thread the shard's own. Callbacks come from inside its calls.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/rows/variable_store.h"
#include "ps/shard/requests.h"
#include "ps/shard/row_source.h"

namespace cairn::ps {

// How a wait ended: the rows are here, and the push was applied, or `error`.
struct WaitOutcome {
  PushResult pushed;  // of a push
  std::exception_ptr error;
};
using WaitEnd = std::function<void(const WaitOutcome&)>;

struct RowWaitsOptions {
  // That wait at once, and of what is kept for them; further ones are to be repeated.
  std::size_t requests_max = 1 << 16;
  std::size_t bytes_max = std::size_t{1} << 30;
};

// Rows that some requests have a claim on.
class RowClaims {
 public:
  void add(const WantedRows& wanted);
  void remove(const WantedRows& wanted);  // which was added
  // Whether one of the wanted rows is claimed.
  bool meet(const WantedRows& wanted) const;

 private:
  struct OfTable {
    std::size_t claims = 0, of_all = 0;
    std::unordered_map<std::int64_t, std::uint32_t> rows;  // how often each is claimed
  };
  std::unordered_map<const Table*, OfTable> tables_;
};

class RowWaits {
 public:
  using Number = std::uint64_t;  // of a request that waits; never 0
  using Access = ps::Access;
  // Carries a push out.
  using Turn = std::function<PushResult()>;
  // Its owner does this for it.
  struct Calls {
    // Puts rows that were fetched into their table.
    std::function<void(Table&, const storage::StoredRows&)> put;
    // Whether these rows may be changed now. If not, call give_turns() when it may have become so.
    std::function<bool(std::span<const WantedRows>)> may_change;
  };

  RowWaits(RowSource* source, RowWaitsOptions options, Calls calls)
      : source_(source), options_(options), calls_(std::move(calls)) {}
  RowWaits(const RowWaits&) = delete;
  RowWaits& operator=(const RowWaits&) = delete;

  // Instead of the one before. Null: from now on all rows are here. Requests that wait for a fetch
  // still wait for it.
  void set_source(RowSource* source) { source_ = source; }
  bool always_here() const { return source_ == nullptr; }
  // Nothing waits, and nothing will for rows that are elsewhere.
  bool idle() const { return source_ == nullptr && waiting_.empty(); }
  bool must_wait(Access access, std::span<const WantedRows> wanted);

  // The request waits from now on, and its rows are fetched. `step` is what verdicts go by
  // (refuse()); `turn` may be empty, and keeps `bytes` until then.
  //   Errors  Unavailable: too many wait.
  Number wait(const StepContext& step, Access access, std::span<const WantedRows> wanted,
              std::size_t bytes, Turn turn);
  // `end` is called with the outcome, right after the turn. Does nothing if the wait has ended.
  void on_end(Number number, WaitEnd end);
  // The request is dropped, without a word. Nothing if it does not wait any more.
  void give_up(Number number);
  // A read that had its turn has been answered, or is not going to be. Until then its rows stay.
  void answered(Number number);
  // Ends the waits of those for which `verdict` has an error.
  void refuse(const std::function<std::exception_ptr(const StepContext&)>& verdict);
  // To those whose wait is over.
  void give_turns();
  // The table begins anew, or goes: what is still being fetched of it is not put into it.
  //   Needs  no request waits for rows of it.
  void reset(Table& table);
  // A request was carried out: rows that no other one needs may leave. give_turns() does it too.
  void settle();

  std::size_t size() const { return waiting_.size(); }

 private:
  using Fetch = std::uint64_t;
  struct Claim {
    Table* table;
    bool all;
    std::vector<std::int64_t> rows;
    WantedRows wanted() const { return {table, rows, all}; }
  };
  struct Waiter {
    StepContext step;
    Access access = Access::kRead;
    std::vector<Claim> claims;
    std::size_t bytes = 0;
    std::set<Fetch> fetches;  // that it waits for, or waited for
    RowSource::Moment since = 0;
    Turn turn;
    WaitEnd end;
  };
  struct UnderWay {
    Table* table;
    std::vector<std::int64_t> rows;
  };

  void fetch_all(Waiter& waiter);
  bool all_here(const Waiter& waiter) const;
  void fetch(Waiter& waiter, Table& table, const std::vector<std::int64_t>& elsewhere);
  void fetched(Fetch number, const std::vector<storage::StoredRows>& rows,
               std::exception_ptr error);
  bool may_go(const Waiter& waiter, const RowClaims& ahead) const;
  Waiter take(Number number);
  static void finish(Waiter waiter, std::exception_ptr error);

  RowSource* source_;
  RowWaitsOptions options_;
  Calls calls_;
  std::map<Number, Waiter> waiting_;  // in the order in which they came
  Number last_ = 0;
  std::map<Number, RowSource::Moment> unanswered_;  // reads that had their turn
  std::size_t bytes_ = 0;
  RowClaims claimed_;  // by all updates that wait
  std::map<Fetch, UnderWay> fetches_;
  Fetch last_fetch_ = 0;
  std::map<std::pair<const Table*, std::int64_t>, Fetch> fetching_;  // the rows of all of these
  std::vector<std::int64_t> elsewhere_;
  bool giving_turns_ = false, again_ = false;
  // Fetches may end after this object has.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cairn::ps
