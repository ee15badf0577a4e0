// Shard: the rows that one thread owns, and the rules by which they are read and changed. No
// network, no files; and no waiting, but for rows that are elsewhere (RowSource), and for room to
// copy rows aside that a checkpoint still wants (SaveMemory): there a request is kept and carried
// out in a later call.
//
// A call either does all it says or throws and changes nothing. Refusals, as the scheduler reads
// them:
//   Unavailable         not open yet, or restoring: repeat the call.
//   FailedPrecondition  another session, or a rule whose slots were never configured: mend the
//                       state first.
//   Aborted             the closure goes by rows, or by an epoch, that are over: run it again.
//   Cancelled           the worker was fenced.
//   NotFound, InvalidArgument  the request itself is wrong; names the variable and what was
//                              expected.
//   Thread  one; counters() from any.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/base/clock.h"
#include "core/base/incarnation.h"
#include "ps/shard/applied.h"
#include "ps/shard/change_log.h"
#include "ps/shard/checkpoint_requests.h"
#include "ps/shard/counters.h"
#include "ps/shard/fence.h"
#include "ps/shard/requests.h"
#include "ps/shard/restoring_rows.h"
#include "ps/shard/rounds.h"
#include "ps/shard/row_waits.h"
#include "ps/shard/shard_options.h"
#include "ps/shard/staging.h"
#include "ps/shard/tiered_rows.h"
#include "ps/shard/verified_pull.h"
#include "ps/shard/verified_state.h"
#include "ps/table/table.h"

namespace cairn::ps {

class Shard {
 public:
  Shard(const Clock& clock, ShardOptions options);

  // Makes the tables as given: new ones at their initial values, slots added where a rule asks for
  // them, others untouched. A new session forgets everything of the old one, a restore that had not
  // ended too.
  //   Errors  InvalidArgument: a spec or rule that does not verify; FailedPrecondition: a table
  //           that is here otherwise, or an epoch that is over; ResourceExhausted: more rows than
  //           there is memory for, found out before any is allocated.
  ShardVersion configure(const Configuration& configuration);
  void open();
  bool is_open() const { return opened_.now; }

  // The whole request verified, its tables found: read it or lend it. Copied parts (copies_of) are
  // left out: a part's last write has a number (Table::written()), another one for other values as
  // long as this is the same lineage.
  //   Errors  besides those above, InvalidArgument: more than answer_bytes_max.
  VerifiedPull& pull(const PullRequest& request);
  // Whether rows of the pull are elsewhere, or an earlier push of one of them waits: then have it
  // wait(), and ask again when that has ended. Errors  as pull().
  bool must_wait(const PullRequest& request) {
    return !waits_.always_here() && rows_must_wait(request);
  }

  // Rows of a dense part with their slots, verified: read them. Two answers of one lineage with
  // the same written() are of one state of the part.
  //   Errors  as pull(), though no fence is looked at: the request names no lane. InvalidArgument
  //           also: a hashed variable, rows that the part has not, more than kStateBytesMax of
  //           several rows. FailedPrecondition also: rows of the part are elsewhere (RowSource).
  VerifiedState read_state(const StateRequest& request);
  static constexpr std::size_t kStateBytesMax = std::size_t{4} << 20;

  // Applies the push, or a slice of it, in the order of its headers, or takes in a piece of it (the
  // version then counts it not yet). Where it has to wait (PushResult::waits), for rows or for room
  // to copy them aside, it is kept, verified once more in its turn, and then applied as a whole.
  PushResult push(const PushRequest& request);

  // Sums what the members have pushed as shares of the round (StepContext::round), in the order of
  // the members, and applies the sum as one push: each rule sees one update of each table. Then the
  // members count as applied, and shares of this round and earlier ones go. A member that has
  // pushed nothing has no rows here. Again: nothing is done. Like a push it may have to wait.
  //   Errors  Unavailable: not open. FailedPrecondition: another session. Aborted: shares of the
  //           members are gone, with a process or a restore; run all of them again, as another
  //           round. InvalidArgument: members that update a variable differently, or of whom some
  //           are applied and others not.
  //   Cost    a pass over all shares; memory for their sum.
  PushResult apply_round(const RoundRequest& request);

  // ---- requests that wait: see RowWaits ----
  // The pull's rows are fetched. Returns the number of its wait.
  //   Errors  Unavailable: too much waits.
  std::uint64_t wait(const PullRequest& request);
  // `end` is called from inside a later call, when the wait is over: with the push's result, or the
  // error that ended the wait.
  void on_end(std::uint64_t wait, WaitEnd end) { waits_.on_end(wait, std::move(end)); }
  // Drops the request, because its caller has gone: nothing of it is done.
  void give_up(std::uint64_t wait);
  // After a pull's wait has ended its rows stay until this, if no restore comes.
  void answered(std::uint64_t wait) { waits_.answered(wait); }
  // The store of rows that are elsewhere has written or read: what waited for that goes on.
  void store_went_on();
  // Rows have to leave memory before others may be restored: when store_went_on().
  bool is_crowded() const;
  // For people: what requests of now would wait for.
  std::string waits_for() const;

  // The coordinator's word on its closures (AppliedPushes::announce). Until then every push is
  // refused.
  //   Errors  FailedPrecondition: another session; InvalidArgument: more have ended than there are.
  void announce(std::uint64_t session, std::uint64_t closures_below, std::uint64_t settled_below);

  // Refuses from now on what lane incarnations up to `newest` send, other than those `alive`, and
  // forgets their unfinished pushes. Who was refused once stays so. Another session: nothing.
  void fence(std::uint64_t session, LaneIncarnation newest, std::span<const LaneIncarnation> alive);

  // Freezes the state as of now. `attempt` numbers the cut: a checkpoint may take several, each
  // with a mark of its own. The same number again returns the first answer. A mark that is not
  // being saved gives way to a newer one.
  // The shard knows a base if that was the last mark, or the one that the last was a delta of, and
  // no restore came since; else the mark is of all rows.
  //   Errors  FailedPrecondition: another one is being saved.
  MarkResult mark(std::uint64_t attempt, const MarkOptions& options = {});
  void drop_mark(std::uint64_t attempt);  // nothing if it is not marked
  // The frozen records one by one, in the order of their keys; nothing at the end. begin_save()
  // starts from the first.
  //   Errors  FailedPrecondition: not marked, or being saved already; Cancelled: the mark was
  //           dropped meanwhile.
  using FrozenRecord =
      std::pair<storage::RecordKey,
                std::variant<storage::TableRecord, storage::StoredRows, storage::SeenRows>>;
  void begin_save(std::uint64_t attempt);
  std::optional<FrozenRecord> next_frozen(std::uint64_t attempt);
  // If a table has places that change (Table::in_order()), next_frozen() has none of its rows. They
  // come in any order: first those that were in memory, a block at a time and nothing at the end,
  // or a list of those that went, and then those that were elsewhere, up to `most` at a time, which
  // are read meanwhile: `done` is called once, later. False: that was all.
  std::optional<UnorderedRows> next_unordered(std::uint64_t attempt);
  using ElsewhereDone = std::function<void(RowsElsewhere)>;
  bool next_elsewhere(std::uint64_t attempt, std::size_t most, ElsewhereDone done);
  // The names of the variables of which a delta holds all rows, since a rule changes them all, or
  // they are new.
  std::string whole_in_delta(std::uint64_t attempt) const;
  // A hashed table's records have to be put in order first, which is work for many turns of the
  // loop: prepare_next() does some of it, next_frozen() all that is left.
  bool next_prepared(std::uint64_t attempt) const;
  void prepare_next(std::uint64_t attempt);
  // CopyPool::wants_chunks() and add(), of the cut; without it, 0 and nothing.
  std::size_t wants_copy_chunks(std::uint64_t attempt) const;
  void add_copy_chunk(std::uint64_t attempt, Arena chunk);

  // Restoring: begin_restore() closes the shard and puts every row (of the variables `only`, if any
  // are named) to its initial value, restore() takes records in any order (the newest of a row
  // last), end_restore() sets what was applied (with `only`: adds it) and begins a new lineage.
  // After a failure begin again. A restore of all variables is a new beginning: what was sent by an
  // older layout than the present one is refused from then on.
  //   Errors  FailedPrecondition: a variable of another dtype or shape, both named.
  // The number that begin_restore() returns names this restore. Who waits in between asks
  // afterwards whether it is still the one under way. Errors Cancelled: it is not: another one, or
  // another session, has begun, or change_hands() came.
  std::uint64_t begin_restore(const std::vector<VariableId>& only = {});
  void verify_restore(std::uint64_t number) const;
  void restore(const storage::TableRecord& record);
  void restore(const storage::StoredRows& rows, const std::string& variable);
  // The same, into the part of the variable that begins at `part` alone.
  void restore(const storage::StoredRows& rows, const std::string& variable, std::int64_t part);
  void restore(const storage::SeenRows& seen, const std::string& variable, std::int64_t part);
  // Before that, unless the part restores at once, as all of its rows are in memory: rows of an
  // earlier database that lie on the disk have to be there again, for these to take their place,
  // which they must do within `done`. It is called once, later. False: there are none.
  bool restores_at_once(const std::string& variable, std::int64_t part) const;
  bool bring_restored(const storage::StoredRows& rows, const std::string& variable,
                      std::int64_t part, TieredRows::Brought done);
  // About so many bytes of rows of that part are going to come: its index makes room for them.
  void expect(std::uint64_t bytes, const std::string& variable, std::int64_t part);
  RestoreReport end_restore(const AppliedSet& applied);

  // ---- restoring on demand: shard_on_demand.cc ----
  // Where all rows are in memory, the shard may open before they are there. After the records of
  // all tables this ends the restore as end_restore() does, and the rows come from `rows`: those
  // that requests want, which wait for them, and by restore_later() all. No state can be marked
  // before that, and read_state() is Unavailable for such a variable.
  // Asked before that. Why it cannot be done; empty: it can.
  std::string on_demand_obstacle() const;
  RestoreReport end_restore_on_demand(const AppliedSet& applied,
                                      std::shared_ptr<CheckpointRows> rows);
  // Rows of the part are still to come from that restore, and no later one has begun with it.
  bool restores_later(std::uint64_t restore, const std::string& variable, std::int64_t part) const;
  // Then: rows of newer databases come first. Each counts if it has not come yet.
  void restore_later(const storage::StoredRows& rows, const std::string& variable,
                     std::int64_t part);
  void expect_later(std::uint64_t bytes, const std::string& variable, std::int64_t part);
  // That was all of the part's.
  void end_restore_later(const std::string& variable, std::int64_t part);
  // The rows of that restore do not come: requests that want some end with this error.
  void fail_restore_later(std::uint64_t restore, std::exception_ptr error);
  // For `status`: the stream has come so far.
  void count_restored_bytes(std::uint64_t bytes, std::uint64_t of);
  // The variables of which rows are still to come, and how far that is; empty: none. What keeps
  // them away.
  bool restoring() const { return restoring_.any(); }
  std::string still_restoring() const;
  std::exception_ptr restore_error() const { return restoring_.error(); }
  // Whether rows that the request reads are among them: they come first from now on.
  bool hurry(const StateRequest& request);

  // Another connection of the coordinator is in charge from now on. What an earlier one had begun
  // comes to nothing: its mark is dropped, and its restore goes no further.
  void change_hands();
  // The rows of each variable, by its name, that are restored here: what a checkpoint is read for.
  std::vector<std::pair<std::string, RowRange>> ranges() const;

  // ---- for subscribers: follow/subscriptions.h ----
  // The tables, by their variables' numbers and parts. `described` numbers them: another one, other
  // tables.   Errors  Unavailable: not open.
  struct Described {
    std::uint64_t described = 0, seed = 0;
    std::vector<std::pair<TableId, Table*>> tables;
  };
  Described describe() const;
  bool restores(const Table& table) const { return restoring_.has(table); }
  void count_followers(std::size_t subscribers, std::size_t bytes);

  // ---- copies of the rows on other ps: change_log.h, shard_copy.h ----
  std::string copy_obstacle() const;  // why the rows cannot be copied; empty: they can
  ShardBooks books() const;

  AppliedSet applied() const { return applied_.snapshot(); }  // or begun
  ShardVersion version() const { return {lineage_, counter_}; }
  std::uint64_t session() const { return session_; }
  Epoch epoch() const { return layout_.epoch; }
  const ShardCounters& counters() const { return counters_; }

 private:
  friend class ShardCopy;
  struct PlannedUpdate {
    Table* table;
    const UpdateHeader* header;
    std::span<const std::int64_t> ids;
    std::span<const std::byte> values;  // as they travelled
    bool continues = false;             // the update before it, which was cut
  };
  struct Plan {
    std::vector<PlannedUpdate> updates;
    std::vector<std::shared_ptr<const void>> joined;  // memory that some of them use
  };
  using TableKey = std::uint64_t;
  static TableKey key(VariableId variable, std::uint32_t part) {
    return std::uint64_t{variable} << 32 | part;
  }

  void verify_session(std::uint64_t session) const;
  void verify_step(const StepContext& step);
  void verify_fence(const StepContext& step);
  Table& find(VariableId variable, std::uint32_t part);
  void verify_ids(const Table& table, std::span<const std::int64_t> ids, bool ascending) const;
  Plan plan(std::span<const PushPiece> pieces, RowEncoding encoding);
  void plan(Plan& plan, const PushPiece& piece, RowEncoding encoding);
  void verify_growth(const Plan& plan) const;
  static bool goes_on(const PlannedUpdate& last, const PlannedUpdate& next);
  static void join_table_updates(Plan& plan);
  void verify_update(const Table& table, const UpdateHeader& header) const;
  void apply(const PlannedUpdate& update, RowEncoding encoding);
  static std::int64_t rows_of(const Table& table);
  void count_growth(const Table& table, std::int64_t rows_before, std::size_t bytes_before);
  void count_turnover();
  void want(const PullRequest& request);
  bool rows_must_wait(const PullRequest& request);
  bool rows_must_wait(const Plan& plan);
  PushResult wait(const PushRequest& request, std::span<const PushPiece> pieces);
  PushResult wait(const RoundRequest& request);
  PushResult take_turn(const PushRequest& request, std::span<const PushPiece> pieces);
  PushResult take_turn(const RoundRequest& request);
  bool has_room_to_change(std::span<const WantedRows> wanted);
  template <typename RowsOf>
  static std::size_t room_for_copies(std::span<const WantedRows> wanted, RowsOf rows_of);
  void put_fetched(Table& table, const storage::StoredRows& rows);
  void refuse_waiting();
  void settle();
  void count_tiers();
  void verify_being_saved(std::uint64_t attempt) const;
  void verify_slice(const PushRequest& request) const;
  bool applied_before(const PushRequest& request);
  PushResult apply_or_wait(const PushRequest& request, std::span<const PushPiece> pieces);
  std::uint64_t count_push(const PushRequest& request);  // its staleness
  PushResult finish_push(const PushRequest& request, Plan plan);
  PushObserver* observer() const { return opened_.now ? options_.observer : nullptr; }
  bool is_logged() const { return options_.log != nullptr && options_.log->wanted(); }
  void tell(RowChange change, Plan& plan);
  PushResult duplicate(const PushRequest& request);
  PushResult keep_share(const PushRequest& request, std::span<const PushPiece> pieces);
  bool verify_round(const RoundRequest& request);  // true: it was applied before
  struct RoundSum;
  void add_share(RoundSum& sum, const Share& share);
  Plan sum_up(const RoundRequest& request, RoundSum& sum);
  PushResult repeated(const RoundRequest& request);
  PushResult finish_round(const RoundRequest& request, Plan plan);
  void apply_sum(const Plan& plan);
  void start_session(const Configuration& configuration);
  void begin_epoch(Epoch epoch);
  void verify_table(const TableConfig& config) const;
  void verify_room(const Configuration& configuration) const;
  Table* existing(const Configuration& configuration, const TableConfig& config,
                  const PartConfig& part) const;
  void name_tables();
  void count_tables();
  void clear_mark();
  void note_taken(const Table& table, std::size_t bytes);
  void count_copies() { ShardCounters::set(counters_.save.copied_bytes, cuts_.copies.taken()); }
  void forget_restore();
  void put_restored(Table& table, const storage::StoredRows& rows);
  // Whether end_restore() resets rows that were there before, and have not come, of tables that are
  // in the checkpoint.
  enum class StaleRows : std::uint8_t { kGo, kOfThoseToComeStay };
  RestoreReport end_restore(const AppliedSet& applied, StaleRows stale);
  bool is_restored(const Table& table) const {
    return restore_.chosen.count(&table) != 0 && restore_.restored.count(table.spec().name) != 0;
  }
  void put_later(Table& table, const storage::StoredRows& rows, Table::Slots slots);
  void set_rule(Table& table, const UpdateRule& rule);
  void follow_restoring();
  RestoreReport restore_report() const;

  const Clock& clock_;
  ShardOptions options_;
  ShardCounters counters_;
  Lineage lineage_;
  std::uint64_t counter_ = 0;
  std::uint64_t session_ = 0;
  struct LayoutVersions {
    std::uint64_t now = 0, first = 0;  // by which this session began here
    std::uint64_t seed = 0, described = 0;
    Epoch epoch;
    bool copied = false, with_shares = false;  // from another process, whose lineage goes on here
  };
  LayoutVersions layout_;
  struct Opened {
    bool now = false;
    bool before = false;  // lanes may have pulled from this lineage
  };
  Opened opened_;
  struct Mark {
    std::uint64_t attempt;
    MarkResult result;
    std::vector<Table*> tables;  // by key order of their records
    bool saving = false;
    std::size_t table = 0;  // the next record is of this one, and of this kind:
    storage::RecordKind kind = storage::RecordKind::kTable;
    // The table whose rows are next of next_unordered() and next_elsewhere(); rows of it so far.
    std::size_t unordered = 0, elsewhere = 0;
    std::uint64_t taken_elsewhere = 0;
    // Blocks in all, those of tables that are done, and how many records were taken.
    std::uint64_t blocks = 0, passed = 0, taken = 0;
    void go_on();
  };
  struct Cuts {
    CopyPool copies;
    std::optional<Mark> mark;
    // The mark since which changed rows are tracked, and the one that it was a delta of; 0: none.
    std::uint64_t tracked_since = 0, tracked_before = 0;
  };
  Cuts cuts_;                          // before the tables, which give their copies back
  std::unique_ptr<TieredRows> tiers_;  // before them, too
  std::unordered_map<TableKey, std::unique_ptr<Table>> tables_;
  // the same, by variable and first row
  std::map<std::pair<std::string, std::int64_t>, Table*> named_;
  Fence fence_;
  AppliedPushes applied_;
  PieceStaging staging_;
  RestoringRows restoring_;  // the source of waits_ while it has any
  RowWaits waits_;
  StagedRounds rounds_;
  // Memory of the request under way, kept so that no request allocates.
  struct Work {
    VerifiedPull pull;
    std::vector<WantedRows> wanted;
    std::vector<std::byte> widened;  // values of a push that travelled narrow
  };
  Work work_{VerifiedPull(counters_), {}, {}};

  struct Restore {
    std::uint64_t number = 0;  // of the last one that was begun, or was given up
    bool under_way = false;
    bool some = false;              // of the tables only
    std::set<const Table*> chosen;  // being restored
    std::set<std::string> restored, slots_reset;
    std::set<std::string> other_slots;  // of another custom rule
    std::uint64_t rows = 0;
  };
  Restore restore_;
};

}  // namespace cairn::ps
