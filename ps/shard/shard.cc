#include "ps/shard/shard.h"

#include <algorithm>
#include <cstring>

#include "core/base/clones.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "ps/shard/encoding.h"

namespace cairn::ps {
namespace {

// Both without branches, so that they are done in vectors.
CAIRN_CLONES bool all_below(const std::int64_t* ids, std::size_t count, std::uint64_t bound) {
  std::uint64_t above = 0;
  for (std::size_t i = 0; i < count; ++i)
    above |= static_cast<std::uint64_t>(ids[i]) >= bound ? 1 : 0;
  return above == 0;
}

CAIRN_CLONES bool all_ascend(const std::int64_t* ids, std::size_t count) {
  std::uint64_t falls = 0;
  for (std::size_t i = 1; i < count; ++i) falls |= ids[i] <= ids[i - 1] ? 1 : 0;
  return falls == 0;
}

}  // namespace

Shard::Shard(const Clock& clock, ShardOptions options)
    : clock_(clock),
      options_(options),
      lineage_(options.lineage),
      tiers_(options.tiering.memory_bytes > 0 ? std::make_unique<TieredRows>(options.tiering)
                                              : nullptr),
      staging_(options.staging, counters_.kept.staged_bytes),
      restoring_([this](Table& table, const storage::StoredRows& rows, Table::Slots slots) {
        put_later(table, rows, slots);
      }),
      waits_(tiers_ != nullptr ? tiers_.get() : options.row_source, options.waits,
             {[this](Table& table, const storage::StoredRows& rows) { put_fetched(table, rows); },
              [this](std::span<const WantedRows> wanted) { return has_room_to_change(wanted); }}),
      rounds_(options.staging.bytes_max, counters_.kept.staged_bytes) {
  CAIRN_CHECK(lineage_ != 0, "lineage 0 means none");
  ShardCounters::set(counters_.lineage, lineage_.number);
}

// ---- configuration ----

// Everything is verified first, for a call does all it says or changes nothing: rows that were
// trained must survive a configuration that is refused.
ShardVersion Shard::configure(const Configuration& configuration) {
  if (configuration.session == session_ && configuration.epoch < layout_.epoch)
    throw FailedPreconditionError(str("this shard is in epoch ", layout_.epoch,
                                      ": it is not to be configured for epoch ",
                                      configuration.epoch, ", which is over"));
  for (const TableConfig& config : configuration.tables) verify_table(config);
  for (const TableConfig& config : configuration.tables)
    for (const PartConfig& part : config.parts)
      if (const Table* table = existing(configuration, config, part);
          table != nullptr && is_kept(config.rule))
        table->verify_new_rule(config.rule);
  verify_room(configuration);
  // New tables are made before anything changes: a configuration that finds no memory leaves the
  // shard as it was.
  std::vector<std::pair<TableKey, std::unique_ptr<Table>>> made;
  for (const TableConfig& config : configuration.tables)
    for (const PartConfig& part : config.parts)
      if (existing(configuration, config, part) == nullptr)
        made.emplace_back(
            key(config.variable, part.index),
            std::make_unique<Table>(config.spec, config.rule, part.rows, configuration.seed,
                                    cuts_.copies, tiers_ != nullptr ? tiers_->shared() : nullptr));
  if (configuration.session != session_) start_session(configuration);
  layout_.now = configuration.layout_version;
  layout_.seed = configuration.seed;
  if (layout_.epoch != configuration.epoch) begin_epoch(configuration.epoch);
  if (!made.empty() || layout_.described == 0) ++layout_.described;
  for (auto& [key, table] : made) tables_[key] = std::move(table);
  name_tables();
  for (const TableConfig& config : configuration.tables)
    for (const PartConfig& part : config.parts)
      if (is_kept(config.rule))
        set_rule(*tables_.at(key(config.variable, part.index)), config.rule);
  count_tables();
  return version();
}

// The table that is to stay, or nullptr where a new one is to be made.
Table* Shard::existing(const Configuration& configuration, const TableConfig& config,
                       const PartConfig& part) const {
  if (configuration.session != session_) return nullptr;
  const auto numbered = tables_.find(key(config.variable, part.index));
  // A table is found by its number and by its name. Both must lead to the same one: the same number
  // with another name, or the reverse, means that caller and shard speak of different layouts.
  const auto named = named_.find({config.spec->name, part.rows.begin});
  Table* table = named == named_.end() ? nullptr : named->second;
  const bool renumbered = (numbered == tables_.end() ? nullptr : numbered->second.get()) != table;
  if (renumbered ||
      (table != nullptr &&
       (table->range() != part.rows || table->spec().dtype != config.spec->dtype ||
        table->spec().shape != config.spec->shape || table->hashed() != config.spec->hashed ||
        table->spec().policy != config.spec->policy)))
    throw FailedPreconditionError(str("variable '", config.spec->name, "' rows ", part.rows.begin,
                                      " to ", part.rows.end, ", ", dtype_name(config.spec->dtype),
                                      config.spec->shape.to_string(), ", number ", config.variable,
                                      ": this shard holds it, or that number, otherwise; start a "
                                      "new session to lay variables anew"));
  return table;
}

void Shard::verify_table(const TableConfig& config) const {
  const VariableSpec& spec = *config.spec;
  verify_spec(spec);
  verify_rule(config.rule);
  if (is_kept(config.rule) && spec.dtype != DType::kFloat32)
    throw InvalidArgumentError(str("variable '", spec.name, "' is ", dtype_name(spec.dtype), ": ",
                                   rule_name(config.rule), " updates float32 variables only"));
  for (const PartConfig& part : config.parts) {
    if (part.rows.begin < 0 || part.rows.begin > part.rows.end || part.rows.end > spec.rows())
      throw InvalidArgumentError(str("part ", part.index, " of variable '", spec.name, "': rows ",
                                     part.rows.begin, " to ", part.rows.end, " of ", spec.rows()));
  }
}

// Counts the tables that stay and those that are new. An old session's are not counted: they go.
void Shard::verify_room(const Configuration& configuration) const {
  const bool stay = configuration.session == session_;
  std::size_t bytes = 0, parts = stay ? tables_.size() : 0;
  for (const auto& [key, table] : tables_) bytes += stay ? table->memory_bytes() : 0;
  for (const TableConfig& config : configuration.tables)
    for (const PartConfig& part : config.parts) {
      if (existing(configuration, config, part) != nullptr) continue;
      bytes += Table::bytes_for(*config.spec, config.rule, part.rows);
      if (bytes > options_.tables_bytes_max || ++parts > options_.tables_max)
        throw ResourceExhaustedError(
            str("variable '", config.spec->name, "' rows ", part.rows.begin, " to ", part.rows.end,
                ": with them this shard would hold ", parts, " parts of ", bytes,
                " bytes; at most ", options_.tables_max, " parts of ", options_.tables_bytes_max,
                " bytes fit; use more ps, or smaller tables"));
    }
}

void Shard::start_session(const Configuration& configuration) {
  // A new session begins from nothing: no mark, no restore, no request that waits, and no memory of
  // the last session's pushes. The shard is closed until open(), so that no pull reads initial
  // values before the rows are brought.
  clear_mark();
  cuts_.tracked_since = cuts_.tracked_before = 0;
  forget_restore();
  session_ = configuration.session;
  ++layout_.described;
  layout_.first = configuration.layout_version;
  opened_.now = false;
  refuse_waiting();  // before the tables go whose rows they wait for
  for (const auto& [key, table] : tables_) waits_.reset(*table);
  follow_restoring();
  staging_.clear();
  rounds_.clear();
  applied_.clear();
  fence_.clear();
  tables_.clear();
  layout_.copied = layout_.with_shares = false;
  if (is_logged()) options_.log->begins_anew();
  ShardCounters::set(counters_.open, 0);
}

// Requests that wait were made in an earlier epoch: they are refused, as they would be from now on.
//
// A primary that is asked for another epoch may be one no more: it is closed until it is told, and
// its backups are another one's.
void Shard::begin_epoch(Epoch epoch) {
  layout_.epoch = epoch;
  opened_.now = false;
  ShardCounters::set(counters_.open, 0);
  if (is_logged()) options_.log->begins_anew();
  // Without the shares this shard cannot sum rounds that began earlier: their members run again.
  if (layout_.copied && !layout_.with_shares) layout_.first = layout_.now;
  ShardCounters::set(counters_.epoch, epoch.number);
  refuse_waiting();
}

void Shard::name_tables() {
  named_.clear();
  for (const auto& [key, table] : tables_)
    named_[{table->spec().name, table->range().begin}] = table.get();
}

// The counters are what the status shows, which is read by another thread; the tables themselves
// belong to this one.
void Shard::count_tables() {
  std::uint64_t rows = 0, bytes = 0;
  std::size_t untiered = 0;
  for (const auto& [key, table] : tables_) {
    rows += static_cast<std::uint64_t>(table->used());
    bytes += table->memory_bytes();
    if (table->tier() == nullptr) untiered += table->memory_bytes();
  }
  if (tiers_ != nullptr) tiers_->set_other_bytes(untiered);
  count_tiers();
  count_turnover();
  ShardCounters::set(counters_.session, session_);
  ShardCounters::set(counters_.layout_version, layout_.now);
  ShardCounters::set(counters_.tables, tables_.size());
  ShardCounters::set(counters_.rows, rows);
  ShardCounters::set(counters_.bytes, bytes);
}

void Shard::open() {
  if (session_ == 0)
    throw FailedPreconditionError(
        "this shard was not configured: configure it before it is opened");
  if (restore_.under_way)
    throw FailedPreconditionError(
        "this shard's restore has not ended: restore it again, then open it");
  opened_.now = opened_.before = true;
  ShardCounters::set(counters_.open, 1);
}

// ---- what every request has to show ----

// A request of another session is refused for good. One of this session that comes while the shard
// is closed is asked to come again: its coordinator is at work here.
void Shard::verify_session(std::uint64_t session) const {
  if (session_ == 0 || (session == session_ && !opened_.now))
    throw UnavailableError(
        "this shard is not open yet: it was just started, or is being restored; repeat the call");
  if (session != session_)
    throw FailedPreconditionError(
        str("this shard belongs to session ", session_, ", the request to session ", session));
}

// A closure that goes by an older epoch may have read rows of a process that answers no more, or
// pushed a part of its updates there. One that goes by a newer epoch heard of it before this shard.
void Shard::verify_step(const StepContext& step) {
  verify_session(step.session);
  if (step.epoch == layout_.epoch) return;
  ShardCounters::add(counters_.outdated, 1);
  const std::string both =
      str("this shard is in epoch ", layout_.epoch, ", the request of epoch ", step.epoch);
  if (step.epoch < layout_.epoch)
    throw AbortedError(str(both, " of another process: run closure ", step.closure, " again"));
  throw UnavailableError(str(both, ", which has not begun here: repeat the call"));
}

// Cancelled and not Unavailable: a fenced lane has to come back under another incarnation, and no
// repetition of the call helps.
void Shard::verify_fence(const StepContext& step) {
  if (!fence_.shuts_out(step.incarnation)) return;
  ShardCounters::add(counters_.fenced, 1);
  throw CancelledError(
      str("lane incarnation ", step.incarnation, " was fenced: its closures run elsewhere"));
}

Table& Shard::find(VariableId variable, std::uint32_t part) {
  const auto found = tables_.find(key(variable, part));
  if (found == tables_.end())
    throw NotFoundError(str("part ", part, " of variable number ", variable,
                            " is not on this shard, whose layout has version ", layout_.now));
  return *found->second;
}

void Shard::verify_ids(const Table& table, std::span<const std::int64_t> ids,
                       bool ascending) const {
  const auto rows = static_cast<std::uint64_t>(table.rows());
  if (!all_below(ids.data(), ids.size(), rows))
    throw InvalidArgumentError(
        str("variable '", table.spec().name, "': a row number is outside [0, ", rows,
            "), the rows of this part (", table.range().begin, " to ", table.range().end, ")"));
  if (ascending && !all_ascend(ids.data(), ids.size()))
    throw InvalidArgumentError(str("variable '", table.spec().name,
                                   "': the row numbers of an update must ascend, each once"));
}

// ---- pull ----

// All of the request is verified here, so that later steps need no checks, and the answer is
// allocated only once it is known to be possible.
VerifiedPull& Shard::pull(const PullRequest& request) {
  verify_step(request.step);
  verify_fence(request.step);
  VerifiedPull& pull = work_.pull;
  pull.encoding_ = request.encoding;
  pull.next_reader_ = request.next_reader;
  pull.bytes_ = 0;
  pull.reads_.clear();
  std::size_t used = 0;
  for (const ReadHeader& header : request.headers) {
    Table& table = find(header.variable, header.part);
    if (header.whole) verify_whole_read(table.spec());
    if (header.rows > request.ids.size() - used || (header.whole && header.rows != 0))
      throw InvalidArgumentError(str("variable '", table.spec().name, "': ", header.rows,
                                     " rows are asked for",
                                     header.whole ? " besides the whole" : ", fewer ids came"));
    const auto ids = request.ids.subspan(used, header.rows);
    verify_ids(table, ids, false);
    used += header.rows;
    const bool copied =
        header.whole && request.copies_of == lineage_ && header.written == table.written();
    pull.reads_.push_back({&table, ids, header.whole, copied});
    if (copied) continue;
    const std::uint64_t rows =
        header.whole ? static_cast<std::uint64_t>(table.rows()) : header.rows;
    pull.bytes_ += rows * static_cast<std::size_t>(table.spec().dim()) *
                   wire_bytes(request.encoding, table.spec().dtype);
    if (pull.bytes_ > options_.answer_bytes_max)
      throw InvalidArgumentError(str("a pull of more than ", options_.answer_bytes_max,
                                     " bytes, at variable '", table.spec().name,
                                     "': cut it into calls of about 4 MB"));
  }
  if (used != request.ids.size())
    throw InvalidArgumentError(
        str("a pull with ", request.ids.size(), " ids, whose headers use ", used));
  return pull;
}

void Shard::announce(std::uint64_t session, std::uint64_t closures_below,
                     std::uint64_t settled_below) {
  if (session != session_ || session == 0)
    throw FailedPreconditionError(str("this shard belongs to session ", session_,
                                      ", the closures announced to session ", session));
  applied_.announce(closures_below, settled_below);
  if (is_logged()) options_.log->announced(closures_below, settled_below);
}

void Shard::fence(std::uint64_t session, LaneIncarnation newest,
                  std::span<const LaneIncarnation> alive) {
  // The workers of that session are refused as it is, whatever their incarnation.
  if (session != session_) return;
  fence_.raise(newest, alive);
  if (options_.observer != nullptr) options_.observer->fenced(newest, alive);
  staging_.forget_fenced(fence_);
  refuse_waiting();
}

// ---- rows together with their slots, for a lane that keeps a copy of a variable ----

VerifiedState Shard::read_state(const StateRequest& request) {
  StepContext step;
  step.session = request.session;
  step.epoch = request.epoch;
  verify_step(step);
  Table& table = find(request.variable, request.part);
  const std::string& name = table.spec().name;
  if (table.hashed())
    throw InvalidArgumentError(
        str("variable '", name, "' is hashed: it has no whole that a lane could hold a copy of"));
  if (request.begin < 0 || request.begin > table.rows() ||
      request.rows > static_cast<std::uint64_t>(table.rows() - request.begin))
    throw InvalidArgumentError(str("variable '", name, "': ", request.rows, " rows from ",
                                   request.begin, " on are asked for, of the ", table.rows(),
                                   " rows of this part (", table.range().begin, " to ",
                                   table.range().end, ")"));
  // A row may be larger than what callers are to ask for at once; even then the answer has a bound.
  const std::size_t bytes_max = request.rows > 1
                                    ? std::min(kStateBytesMax, options_.answer_bytes_max)
                                    : options_.answer_bytes_max;
  if (request.rows > bytes_max / std::max<std::size_t>(table.saved_row_bytes(), 1))
    throw InvalidArgumentError(
        str("variable '", name, "': ", request.rows, " rows of ", table.saved_row_bytes(),
            " bytes with their slots are more than ", bytes_max, " bytes: ask for fewer at once"));
  if (restoring_.has(table)) {
    if (const std::exception_ptr error = restoring_.error()) std::rethrow_exception(error);
    throw UnavailableError(str("variable '", name, "' is still being restored: repeat the call"));
  }
  const WantedRows all{&table, {}, true};
  if (!waits_.always_here() && waits_.must_wait(RowWaits::Access::kRead, {&all, 1}))
    throw FailedPreconditionError(str("variable '", name,
                                      "' has rows that are not in this shard's ",
                                      "memory: a lane can hold no copy of it"));
  const VerifiedState state(table, {request.begin, request.begin + request.rows});
  ShardCounters::add(counters_.pulls.calls, 1);
  ShardCounters::add(counters_.pulls.rows, request.rows);
  ShardCounters::add(counters_.pulls.bytes, state.bytes());
  return state;
}

// ---- subscribers ----

// The process's first lineage is in the number, so that no other process describes by the same.
Shard::Described Shard::describe() const {
  if (!opened_.now)
    throw UnavailableError(
        "this shard is not open: it was just started, or is being restored; repeat the call");
  Described all{random_key(options_.lineage.number, layout_.described) | 1, layout_.seed, {}};
  for (const auto& [key, table] : tables_)
    all.tables.push_back(
        {{static_cast<VariableId>(key >> 32), static_cast<std::uint32_t>(key)}, table.get()});
  std::ranges::sort(all.tables, {}, [](const auto& one) { return one.first; });
  return all;
}

void Shard::count_followers(std::size_t subscribers, std::size_t bytes) {
  ShardCounters::set(counters_.follow.subscribers, subscribers);
  ShardCounters::set(counters_.follow.bytes, bytes);
}

}  // namespace cairn::ps
