#include "coordinator/journal/journal.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>

#include "coordinator/journal/config_store.h"
#include "coordinator/journal/record_log.h"
#include "core/base/log.h"
#include "core/base/machine.h"
#include "core/disk/disk.h"
#include "rpc/loop/on_offload.h"

namespace cairn::journal {
namespace {

constexpr std::string_view kFilePrefix = "journal-";
constexpr std::string_view kMadePrefix = "made-";
// A coordinator that was just killed may hold its lock for a moment.
constexpr Duration kLockPatience = std::chrono::seconds(5);
// Not the lane on which checkpoints are written: closures wait for the journal.
constexpr std::size_t kLane = 1;
// A file that has grown by so much is begun anew, whether or not there is a checkpoint.
constexpr std::uint64_t kGrowthMax = std::uint64_t{64} << 20;

struct Name {
  std::uint64_t term = 0, number = 0;
  auto operator<=>(const Name&) const = default;
};

// The two numbers behind the prefix. None: it is another file, such as one that a killed writer
// left beside.
std::optional<std::pair<std::uint64_t, std::uint64_t>> numbers_of(std::string_view file,
                                                                  std::string_view prefix) {
  if (!file.starts_with(prefix)) return std::nullopt;
  std::uint64_t first = 0, second = 0;
  const char* const end = file.data() + file.size();
  const auto one = std::from_chars(file.data() + prefix.size(), end, first);
  if (one.ec != std::errc() || one.ptr == end || *one.ptr != '-') return std::nullopt;
  const auto other = std::from_chars(one.ptr + 1, end, second);
  if (other.ec != std::errc() || other.ptr != end) return std::nullopt;
  return std::pair(first, second);
}

std::optional<Name> name_of(std::string_view file) {
  const auto numbers = numbers_of(file, kFilePrefix);
  if (!numbers) return std::nullopt;
  return Name{numbers->first, numbers->second};
}

// Whether it is of what an earlier coordinator has made.
bool is_made_before(std::string_view file, std::uint64_t term) {
  const auto numbers = numbers_of(file, kMadePrefix);
  return numbers && numbers->second < term;
}

bool is_made(const Event& event) {
  return std::holds_alternative<FunctionMade>(event) ||
         std::holds_alternative<VariableMade>(event) || std::holds_alternative<DatasetMade>(event);
}

// The error with what a person can do about it.
[[noreturn]] void rethrow_damage(const DataLossError& error, const std::string& folder) {
  throw DataLossError(
      str("the journal in ", folder, " cannot be gone on with: ", error.what(),
          ". Move the folder away and begin from the newest checkpoint: `cairn ckpt list` shows "
          "which there are, and `cairn ckpt verify` whether one is sound. Updates since then are "
          "lost"));
}

void apply_records(JournalState& state, const std::vector<std::string>& records,
                   const std::string& path) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string where = str("record ", i, " of ", path);
    for (Event& event : read_record(records[i], where)) {
      try {
        state.apply(std::move(event));
      } catch (const DataLossError& error) {
        throw DataLossError(str(where, ": ", error.what()));
      }
    }
  }
}

}  // namespace

struct Journal::Files {
  std::optional<RecordLog> made, log;
  std::uint64_t begun_at = 0;  // the size of `log` as it was made
  std::uint64_t grown() const { return log->size() - begun_at; }
};

std::shared_ptr<Journal> Journal::open(Disk& disk, JournalOptions options,
                                       const std::string& cluster, FolderInUse in_use) {
  const std::shared_ptr<Journal> journal(new Journal(disk, std::move(options), cluster, in_use));
  journal->read();
  return journal;
}

Journal::Journal(Disk& disk, JournalOptions options, std::string cluster, FolderInUse in_use)
    : disk_(disk),
      options_(std::move(options)),
      cluster_(std::move(cluster)),
      files_(std::make_shared<Files>()) {
  disk_.make_folder(options_.folder);
  const bool refuse = in_use == FolderInUse::kRefuse;
  try {
    lock_ = disk_.lock(options_.folder + "/LOCK", str("a coordinator, ", process_text()),
                       refuse ? kLockPatience : Duration::zero());
  } catch (const FailedPreconditionError& error) {
    if (refuse)
      throw FailedPreconditionError(str("the journal in ", options_.folder, " is in use by ",
                                        error.what(),
                                        ": end that one, or give this one another folder"));
    log_warning("the journal in ", options_.folder, " is taken over from ", error.what());
  }
  config_store_ = make_file_config_store(disk_, options_.folder);
}

Journal::~Journal() = default;

std::string Journal::made_path(const Opened& opened) const {
  return str(options_.folder, "/", kMadePrefix, opened.session, "-", opened.term);
}

void Journal::read() {
  try {
    found_ = read_newest();
  } catch (const DataLossError& error) {
    rethrow_damage(error, options_.folder);
  }
}

std::optional<JournalState> Journal::read_newest() const {
  std::optional<Name> newest;
  for (const std::string& file : disk_.list(options_.folder))
    newest = std::max(newest, name_of(file));
  if (!newest) return std::nullopt;
  const std::string path =
      str(options_.folder, "/", kFilePrefix, newest->term, "-", newest->number);
  const RecordLog::Found found = read_records(disk_, path);
  // The session is told first, and all that it has made comes before whatever refers to that.
  JournalState first;
  if (found.records.empty()) throw DataLossError(str(path, " holds no record"));
  for (Event& event : read_record(found.records.front(), path))
    if (auto* opened = std::get_if<Opened>(&event)) first.apply(std::move(*opened));
  if (first.opened().cluster != cluster_)
    throw FailedPreconditionError(str("the journal in ", options_.folder, " is that of cluster \"",
                                      first.opened().cluster, "\", this coordinator's is \"",
                                      cluster_, "\": give it another folder, or correct ",
                                      "the cluster's id"));
  const std::string made = made_path(first.opened());
  JournalState state;
  apply_records(state, read_records(disk_, made).records, made);
  apply_records(state, found.records, path);
  return state;
}

rpc::Task<void> Journal::read_again(rpc::Reactor& reactor, Offload& offload) {
  if (lock_ != nullptr) co_return;
  std::function<void()> work = [this] { read(); };
  auto done = rpc::on_offload(reactor, offload, kLane, std::move(work));
  co_await kj::mv(done);
}

rpc::Task<void> Journal::on_disk_thread(std::function<void()> work) {
  auto done = rpc::on_offload(*reactor_, *offload_, kLane, std::move(work));
  co_await kj::mv(done);
}

rpc::Task<void> Journal::begin(rpc::Reactor& reactor, Offload& offload, Opened opened,
                               std::size_t ps) {
  reactor_ = &reactor;
  offload_ = &offload;
  if (found_)
    state_ = *found_;
  else
    state_.apply(Standing{.losses = LossLedger(ps).state()});
  state_.apply(std::move(opened));
  std::vector<std::string> records;
  if (const auto made = state_.made(); !made.empty()) records.push_back(to_record(made));
  std::function<void()> make_made = [files = files_, disk = &disk_, records = std::move(records),
                                     path = made_path(state_.opened())] {
    files->made = RecordLog::make(*disk, path, records);
  };
  co_await on_disk_thread(std::move(make_made));
  co_await begin_file();
}

// Older files go once the new one is whole. A later term's are a successor's, who has the run by
// now.
rpc::Task<void> Journal::begin_file() {
  const Opened& opened = state_.opened();
  std::function<void()> work = [files = files_, disk = &disk_, folder = options_.folder,
                                term = opened.term.number, record = to_record(state_.standing())] {
    Name own{term, 1};
    const std::vector<std::string> all = disk->list(folder);
    for (const std::string& file : all)
      if (const auto name = name_of(file); name && name->term == term)
        own.number = std::max(own.number, name->number + 1);
    files->log = RecordLog::make(*disk, str(folder, "/", kFilePrefix, term, "-", own.number),
                                 std::span(&record, 1));
    files->begun_at = files->log->size();
    for (const std::string& file : all) {
      const auto name = name_of(file);
      if ((name && *name < own) || is_made_before(file, term)) disk->remove(folder + "/" + file);
    }
  };
  co_await on_disk_thread(std::move(work));
}

void Journal::note(Event event) {
  ++counts_.noted;  // after an error too: whoever waits for this one must be told
  if (error_) return;
  pending_.push_back(std::move(event));
  write_soon();
}

rpc::Task<void> Journal::wait_for(const std::uint64_t& done, std::uint64_t wanted) {
  while (done < wanted && !error_) co_await changed_.wait();
  if (done < wanted) throw_error(*error_);
}

void Journal::verify_written() const {
  if (error_) throw_error(*error_);
}

rpc::Task<void> Journal::written() { return wait_for(counts_.written, counts_.noted); }

rpc::Task<void> Journal::kept() {
  counts_.wanted = counts_.noted;
  if (counts_.kept < counts_.wanted) write_soon();
  return wait_for(counts_.kept, counts_.noted);
}

// The journal itself owns the task that writes: a caller that waits for it may be cancelled.
void Journal::write_soon() {
  if (writing_ || error_) return;
  writing_ = true;
  tasks_.spawn("writing the journal", write_all());
}

rpc::Task<void> Journal::write_all() {
  // A turn of the loop first, so that what comes together is written together.
  co_await reactor_->yield();
  try {
    while (!pending_.empty() || counts_.kept < counts_.wanted) {
      co_await write_group();
      if (std::exchange(anew_, false) || files_->grown() > kGrowthMax) {
        const std::uint64_t covers = counts_.written;
        co_await begin_file();
        counts_.kept = covers;
      }
      changed_.notify_all();
    }
  } catch (const CancelledError&) {
    throw;
  } catch (...) {
    ErrorParts parts = error_parts(std::current_exception());
    parts.message = str("the journal in ", options_.folder, " cannot be written: ", parts.message);
    error_ = std::move(parts);
    changed_.notify_all();
  }
  writing_ = false;
  if (counts_.kept < counts_.written && !std::exchange(keeping_, true))
    tasks_.spawn("syncing the journal", keep_later());
}

rpc::Task<void> Journal::write_group() {
  const std::uint64_t covers = counts_.noted;
  const bool keep = counts_.kept < counts_.wanted || options_.sync_after <= Duration::zero();
  std::vector<Event> events = std::exchange(pending_, {});
  const auto rest = std::stable_partition(events.begin(), events.end(), is_made);
  std::vector<std::string> made, others;
  if (rest != events.begin()) made.push_back(to_record({events.begin(), rest}));
  if (rest != events.end()) others.push_back(to_record({rest, events.end()}));
  std::function<void()> work = [files = files_, keep, made = std::move(made),
                                others = std::move(others)] {
    if (!made.empty()) {
      files->made->append(made);
      files->made->sync();
    }
    if (!others.empty()) files->log->append(others);
    if (keep) files->log->sync();
  };
  co_await on_disk_thread(std::move(work));
  for (Event& event : events) state_.apply(std::move(event));
  counts_.written = covers;
  if (keep) counts_.kept = covers;
}

rpc::Task<void> Journal::keep_later() {
  co_await reactor_->sleep(options_.sync_after);
  keeping_ = false;
  counts_.wanted = counts_.written;
  if (counts_.kept < counts_.wanted) write_soon();
}

SessionChoice session_of(std::shared_ptr<Journal> journal, std::uint64_t fresh) {
  SessionChoice choice(journal->found() ? journal->found()->opened().session : fresh);
  choice.config_store = journal->config_store();
  choice.journal = std::move(journal);
  return choice;
}

}  // namespace cairn::journal
