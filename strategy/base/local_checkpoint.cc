#include "strategy/base/local_checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <tuple>

#include "coordinator/checkpoint/chosen_encoding.h"
#include "coordinator/checkpoint/manifest_io.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/database_place.h"
#include "storage/folder_lock.h"
#include "storage/moved_rows.h"
#include "storage/range_read.h"
#include "storage/row_block.h"
#include "storage/saved_ids.h"
#include "storage/superseded_rows.h"

namespace cairn {
namespace {

constexpr const char* kDatabase = "one-device";
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

// ---- saving ----

// Rows of a variable, those of a hashed one in order, a block at a time.
class RowsOf {
 public:
  RowsOf(const LocalStore& store, VariableId id)
      : block_(store.block(id)), held_(store.rows_held(id)) {
    places_.resize(static_cast<std::size_t>(
        store.spec(id).hashed ? static_cast<std::int64_t>(held_.size()) : block_.rows));
    std::iota(places_.begin(), places_.end(), std::int64_t{0});
    // The rows of a hashed variable lie in the order in which they were made, while the keys of a
    // database must ascend.
    std::sort(places_.begin(), places_.end(),
              [this](auto a, auto b) { return row_at(a) < row_at(b); });
    rule_ = store.rule(id).kind;
    slots_ = static_cast<std::uint32_t>(rule_slots(store.rule(id)).size());
  }
  std::size_t count() const { return places_.size(); }

  storage::StoredRows take() {
    storage::StoredRows out{
        .dtype = block_.dtype, .rule = rule_, .slots = slots_, .dim = block_.dim};
    out.first_row = row_at(places_[next_]);
    const std::size_t rows =
        std::max<std::size_t>(1, storage::kBlockBytes / std::max<std::size_t>(1, out.row_bytes()));
    const std::size_t end = std::min(next_ + rows, places_.size());
    out.data.resize((end - next_) * out.row_bytes());
    std::byte* to = out.data.data();
    for (; next_ < end; ++next_) {
      out.offsets.push_back(static_cast<std::uint64_t>(row_at(places_[next_]) - out.first_row));
      to = copy_row(places_[next_], to);
    }
    return out;
  }
  bool more() const { return next_ < places_.size(); }

 private:
  std::int64_t row_at(std::int64_t place) const {
    return held_.empty() ? place : held_[static_cast<std::size_t>(place)];
  }
  // In a checkpoint a row's slots follow its parameters without padding. In memory the slots lie
  // `slot_offset` elements apart, so that they are copied one by one.
  std::byte* copy_row(std::int64_t place, std::byte* to) const {
    const std::size_t element = dtype_bytes(block_.dtype),
                      slot = static_cast<std::size_t>(slot_width(rule_, block_.dim)) * element;
    const std::byte* from =
        block_.base + static_cast<std::size_t>(place * block_.row_stride) * element;
    const std::size_t parameters = static_cast<std::size_t>(block_.dim) * element;
    std::memcpy(to, from, parameters);
    to += parameters;
    for (std::uint32_t k = 0; k < slots_; ++k, to += slot)
      std::memcpy(to, from + static_cast<std::size_t>((k + 1) * block_.slot_offset) * element,
                  slot);
    return to;
  }

  RowBlock block_;
  std::span<const std::int64_t> held_;
  std::vector<std::int64_t> places_;
  RuleKind rule_ = RuleKind::kAssign;
  std::uint32_t slots_ = 0;
  // The place in `places_` at which the next block begins.
  std::size_t next_ = 0;
};

storage::VariableInfo info_of(const VariableSpec& spec, const UpdateRule& rule) {
  storage::VariableInfo info{spec.name, spec.dtype, spec.shape,         spec.trainable,
                             rule,      {},         {{0, spec.rows()}}, spec.hashed};
  for (const SlotSpec& slot : rule_slots(rule)) info.slots.emplace_back(slot.name);
  return info;
}

// In the order of the variables' keys: shorter names first.
std::vector<VariableId> in_key_order(const LocalStore& store) {
  std::vector<VariableId> ids(store.size());
  std::iota(ids.begin(), ids.end(), VariableId{0});
  std::sort(ids.begin(), ids.end(), [&store](VariableId a, VariableId b) {
    const std::string &x = store.spec(a).name, &y = store.spec(b).name;
    return std::tuple(x.size(), std::string_view(x)) < std::tuple(y.size(), std::string_view(y));
  });
  return ids;
}

std::uint64_t write_variable(storage::DatabaseWriter& writer, const LocalStore& store,
                             VariableId id, const storage::BlockForm& form) {
  const VariableSpec& spec = store.spec(id);
  const storage::VariableInfo info = info_of(spec, store.rule(id));
  const std::string key =
      storage::encode(storage::RecordKey{spec.name, storage::RecordKind::kTable, 0});
  const storage::TableRecord table{spec.name,  spec.dtype,       spec.shape,       info.rule,
                                   info.slots, {0, spec.rows()}, store.updates(id)};
  writer.put(key, storage::encode(key, table, form));
  RowsOf rows(store, id);
  while (rows.more()) {
    const storage::StoredRows block = rows.take();
    const std::string at =
        storage::encode(storage::RecordKey{spec.name, storage::RecordKind::kRows, block.first_row});
    writer.put(at, storage::encode(at, block, form));
  }
  if (const RowTurnover* const turnover = store.turnover(id)) {
    const std::string at =
        storage::encode(storage::RecordKey{spec.name, storage::RecordKind::kSeen, 0});
    writer.put(
        at, storage::encode(
                at, storage::SeenRows{{0, spec.rows()}, turnover->dropped(), turnover->saved()}));
  }
  return rows.count();
}

storage::DatabaseInfo write_database(const LocalStore& store, const LocalPlace& place,
                                     const std::string& folder,
                                     const storage::ChosenEncoding& encoding) {
  auto writer = place.store->create(folder + "/" + kDatabase);
  std::uint64_t rows = 0;
  for (VariableId id : in_key_order(store))
    rows += write_variable(*writer, store, id, encoding.form_of(store.spec(id).name));
  storage::DatabaseInfo database = storage::group_by_database(writer->finish()).at(0);
  database.rows = rows;
  return database;
}

// ---- restoring ----

class CheckpointSource final : public VariableSource {
 public:
  CheckpointSource(LocalPlace place, const storage::Manifest& manifest,
                   std::shared_ptr<const RestorePlan> plan,
                   const std::vector<ProgramVariable>& made)
      : place_(std::move(place)), plan_(std::move(plan)) {
    for (const ProgramVariable& variable : made) told_.insert(variable.spec->name);
    for (const auto& database : manifest.databases) databases_.push_back(database.name);
  }
  void accept_partial() { partial_ = true; }

  // Called when a variable is made, which may be long after restore(): whether it fits is asked
  // here once more. Its rows may lie in several databases, because a checkpoint of parameter
  // servers has one for each shard, and each holds the parts of that shard.
  std::optional<SavedContents> read(const VariableSpec& spec) override {
    const std::optional<RowMove> move =
        partial_ && !plan_->fits(spec) ? std::nullopt : plan_->move_of(spec);
    say_once(spec);
    if (!move.has_value()) {
      warn_once(spec);
      return std::nullopt;
    }
    SavedContents contents;
    if (move->slots) contents.rule = plan_->saved().at(move->from).rule;
    if (plan_->may_not_fit(spec))
      storage::verify_ids(*place_.store, plan_->folder(), databases_,
                          {move->from, spec.name, spec.rows()});
    const RowRange rows = storage::rows_to_read({0, spec.rows()}, *move);
    storage::SupersededRows superseded;
    for (const std::string& database : databases_)
      superseded.look_into(*open(database), move->from, rows);
    for (const storage::SeenRows& seen : superseded.seen())
      if (move->numbers == nullptr) contents.seen.push_back({seen.dropped, seen.sketch});
    for (std::size_t i = 0; i < databases_.size(); ++i)
      read_database(i, superseded, spec, *move, contents);
    return contents;
  }

 private:
  // Those that are there as the restore begins are in the plan that it logs.
  void say_once(const VariableSpec& spec) {
    const std::vector<ProgramVariable> made{{std::make_shared<const VariableSpec>(spec), {}}};
    if (plan_->unusual(made) && told_.insert(spec.name).second)
      log_info("made after the restore of ", plan_->folder(), ": ", plan_->lines(made).substr(3));
  }
  void warn_once(const VariableSpec& spec) {
    if (partial_ || plan_->leaves_out(spec.name) || !missing_.insert(spec.name).second) return;
    log_warning("variable \"", spec.name, "\" is not in the checkpoint ", plan_->folder(),
                ": it has its initial values");
  }
  std::unique_ptr<storage::DatabaseReader> open(const std::string& database) const {
    storage::verify_database_name(database);
    return place_.store->open(storage::place_of(plan_->folder(), database));
  }
  void read_database(std::size_t number, const storage::SupersededRows& superseded,
                     const VariableSpec& spec, const RowMove& move, SavedContents& contents) const {
    const auto reader = open(databases_[number]);
    storage::RangeRead range(*reader, move.from, storage::rows_to_read({0, spec.rows()}, move),
                             &superseded, number);
    const auto tables = range.tables();
    if (tables.empty()) return;
    for (const storage::TableRecord& table : tables)
      if (move.slots) contents.updates = std::max(contents.updates, table.updates);
    std::vector<storage::StoredRows> blocks;
    // The calls add to the list; all blocks are wanted.
    while (range.read(blocks, kReadBytes)) {
    }
    for (storage::StoredRows& block : blocks) {
      storage::move_rows(block, move);
      if (!block.offsets.empty()) contents.blocks.push_back(taken(std::move(block), spec));
    }
  }
  // The rows are copied into memory by these numbers without a further look. A damaged checkpoint
  // must not write beyond the variable.
  SavedRows taken(storage::StoredRows block, const VariableSpec& spec) const {
    const bool fits =
        block.dtype == spec.dtype && block.dim == spec.dim() && block.first_row >= 0 &&
        block.offsets.back() < static_cast<std::uint64_t>(spec.rows() - block.first_row);
    if (!fits)
      throw DataLossError(str("the checkpoint ", plan_->folder(), " has rows of \"", spec.name,
                              "\" that are not the variable's: restore another"));
    SavedRows rows{block.rule, block.slots, {}, {}};
    for (std::uint64_t offset : block.offsets)
      rows.rows.push_back(block.first_row + static_cast<std::int64_t>(offset));
    rows.data = std::move(block.data);
    return rows;
  }

  LocalPlace place_;
  std::shared_ptr<const RestorePlan> plan_;
  std::vector<std::string> databases_;
  std::set<std::string> missing_;  // variables that were warned about
  std::set<std::string> told_;     // those whose line of the plan was logged
  bool partial_ = false;
};

// Names this process's checkpoints, so that keep_last removes them and no others.
std::uint64_t session_of_this_process() {
  static const std::uint64_t session =
      random_key(static_cast<std::uint64_t>(system_clock().wall_microseconds()),
                 static_cast<std::uint64_t>(::getpid()));
  return session;
}

std::vector<ProgramVariable> variables_of(LocalRuntime& runtime) {
  std::vector<ProgramVariable> made;
  for (VariableId id = 0; id < runtime.variables().size(); ++id)
    made.push_back({runtime.variables()[id].shared_spec(), runtime.store().rule(id)});
  return made;
}

}  // namespace

LocalPlace LocalPlace::of_this_machine() {
  return {storage::any_disk(), storage::make_rocks_row_store()};
}

std::string save_local(LocalRuntime& runtime, const LocalPlace& place,
                       const CheckpointPolicy& policy, const std::string& metadata,
                       const LocalProgress& progress) {
  if (policy.folder.empty()) throw InvalidArgumentError("a checkpoint needs a folder");
  if (policy.full_every > 1)
    throw InvalidArgumentError(str("full_every is ", policy.full_every,
                                   ": checkpoints of this strategy hold all rows, deltas are made "
                                   "by parameter servers; leave it at 1"));
  if (!policy.local_folder.empty())
    throw InvalidArgumentError(str("local_folder is \"", policy.local_folder,
                                   "\": the rows of this strategy are in this process, which "
                                   "writes them beside the manifest; leave it out"));
  const LocalStore& store = runtime.store();
  storage::Manifest manifest;
  auto lock = policy.folder_lock;
  if (!lock || lock->folder != policy.folder)
    lock = storage::lock_folder(place.disk, policy.folder, system_clock(), std::chrono::seconds(2));
  manifest.session = session_of_this_process();
  manifest.checkpoint = next_checkpoint_id(place.disk, policy.folder);
  manifest.global_step = progress.global_step;
  for (const PipelinePosition& position : progress.positions)
    manifest.datasets.push_back(to_manifest(position));
  manifest.saved_at_us = system_clock().wall_microseconds();
  manifest.seed = store.seed();
  manifest.metadata = metadata;
  std::vector<const VariableSpec*> specs;
  for (VariableId id = 0; id < store.size(); ++id) specs.push_back(&store.spec(id));
  const storage::ChosenEncoding encoding = choose_encoding(policy.encoding, specs);
  for (VariableId id = 0; id < store.size(); ++id)
    note_encoding(encoding,
                  manifest.variables.emplace_back(info_of(store.spec(id), store.rule(id))));
  manifest.compression = encoding.compression;
  const std::string path = checkpoint_path(policy.folder, manifest.checkpoint);
  // The manifest is written last: before it the checkpoint does not exist, so that a failure on the
  // way leaves nothing to be taken for one. Older ones are removed only afterwards.
  const std::string rows = rows_path(place.disk, path, manifest.session, manifest.checkpoint);
  try {
    name_from(path, rows,
              manifest.databases.emplace_back(write_database(store, place, rows, encoding)));
    storage::commit_new(place.disk, path, manifest,
                        policy.single_writer ? Disk::SingleWriter::kYes : Disk::SingleWriter::kNo);
  } catch (...) {
    sweep(place.disk, path, rows, manifest.session);
    throw;
  }
  storage::CheckpointFolder(place.disk, policy.folder)
      .prune(std::max<std::size_t>(policy.keep_last, 1), {manifest.session, {}}, policy.keep_every);
  return path;
}

namespace {

LocalRestore restore_this(LocalRuntime& runtime, const LocalPlace& place,
                          const std::string& checkpoint, const RestoreOptions& options,
                          const std::function<void(std::vector<PipelinePosition>&)>& choose) {
  const storage::Manifest manifest = storage::read_manifest(place.disk, checkpoint);
  storage::verify_here(place.disk, checkpoint, manifest);
  const auto plan =
      std::make_shared<const RestorePlan>(saved_variables(manifest), checkpoint, options);
  const std::vector<ProgramVariable> made = variables_of(runtime);
  if (plan->unusual(made)) log_info("restoring ", plan->text(made));
  // First, so that a checkpoint of another model changes nothing.
  plan->verify(made);
  auto source = std::make_shared<CheckpointSource>(place, manifest, plan, made);
  LocalProgress progress{options.global_step ? manifest.global_step : 0, {}};
  for (const auto& position : manifest.datasets)
    progress.positions.push_back(from_manifest(position));
  if (choose) choose(progress.positions);
  runtime.restore(source, manifest.seed);
  const auto made_now = [&runtime] { return variables_of(runtime); };
  return {RestoreStatus(plan, made_now, [source] { source->accept_partial(); }),
          std::move(progress)};
}

}  // namespace

LocalRestore restore_local(LocalRuntime& runtime, const LocalPlace& place,
                           const std::string& checkpoint, const RestoreOptions& options,
                           const std::function<void(std::vector<PipelinePosition>&)>& choose) {
  std::exception_ptr error;
  try {
    return restore_this(runtime, place, checkpoint, options, choose);
  } catch (...) {
    error = std::current_exception();
  }
  std::rethrow_exception(storage::with_sound_checkpoint(error, *place.store, checkpoint));
}

}  // namespace cairn
