#include "ps/replica/replica_log.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "ps/shard/shard.h"

namespace cairn::ps {
namespace {

// Between two slices of rows that are compared at once, so that pulls and pushes come between them.
constexpr Duration kShortPause = std::chrono::milliseconds(1);

}  // namespace

// The reactor keeps it, and destroys it on its thread while its loop still stands: what waits there
// must not be destroyed later, by the thread on which the shard ends.
struct ReplicaLog::Ending {
  ~Ending() {
    if (log != nullptr) log->stop();
  }
  ReplicaLog* log = nullptr;
};

ReplicaLog::ReplicaLog(LinkParts parts) : parts_(std::move(parts)) {}

ReplicaLog::~ReplicaLog() {
  const std::shared_ptr<Ending> ending = ending_.lock();
  if (!ending) return;
  ending->log = nullptr;
  parts_.reactor.release(ending.get());
}

void ReplicaLog::stop() {
  tasks_.cancel_all();
  links_.clear();
  refuse_all("this ps is stopping");
  news_.notify_all();
}

void ReplicaLog::stop_with_reactor() {
  if (ending_.lock()) return;
  auto ending = std::make_shared<Ending>();
  ending->log = this;
  ending_ = ending;
  parts_.reactor.keep(std::move(ending));
}

void ReplicaLog::changed(RowChange& change) { append(record_of(change, parts_.reactor.buffers())); }

void ReplicaLog::announced(std::uint64_t closures_below, std::uint64_t settled_below) {
  append(record_of_announced(closures_below, settled_below));
}

void ReplicaLog::append(std::shared_ptr<LogRecord> record) {
  ++position_;
  for (const auto& link : links_) link->append(record, position_);
}

// A link that is in trouble is waited for only if it had caught up, as it may become the primary.
std::uint64_t ReplicaLog::passed() const {
  std::uint64_t passed = position_;
  for (const auto& link : links_)
    if (link->trouble().empty() || link->caught_up()) passed = std::min(passed, link->passed());
  return passed;
}

kj::Promise<void> ReplicaLog::everywhere() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  waiters_.push_back({position_, kj::mv(pair.fulfiller)});
  go_on();
  return kj::mv(pair.promise);
}

// When it was last certain that no other primary is at work: the coordinator does not replace a
// primary that it reaches, and a backup that was made the primary acknowledges nothing. All backups
// that have caught up are needed, since any of them may be the one.
TimePoint ReplicaLog::heard_at() const {
  TimePoint backups = TimePoint::max();
  for (const auto& link : links_)
    if (link->caught_up()) backups = std::min(backups, link->followed_at());
  if (backups == TimePoint::max()) backups = TimePoint::min();
  return std::max({named_at_, backups, parts_.coordinator->when()});
}

bool ReplicaLog::is_followed() const {
  return parts_.reactor.clock().now() <= heard_at() + parts_.options.lease;
}

// One at a time: an unanswered one that is too old to count is followed by another.
void ReplicaLog::probe() {
  if (links_.empty() || passed() < probed_) return;
  append(record_of_probe());
  probed_ = position_;
}

// The coordinator is heard on another thread, so that this looks for it now and then.
rpc::Task<void> ReplicaLog::confirm() {
  const Clock& clock = parts_.reactor.clock();
  const TimePoint until = clock.now() + parts_.options.lease;
  while (is_cut_off()) {
    if (clock.now() >= until)
      throw UnavailableError(
          str("this shard has heard neither of its coordinator nor of its backups for ",
              fixed(std::chrono::duration<double>(clock.now() - heard_at()).count(), 1),
              " s, and may have been replaced; repeat the call"));
    probe();
    kj::Promise<void> either =
        acknowledged_.wait().exclusiveJoin(parts_.reactor.sleep(parts_.options.lease / 20));
    co_await kj::mv(either);
  }
}

void ReplicaLog::go_on() {
  const std::uint64_t passed = this->passed();
  while (!waiters_.empty() && waiters_.front().position <= passed) {
    waiters_.front().done->fulfill();
    waiters_.pop_front();
  }
}

void ReplicaLog::refuse_all(const char* why) {
  for (Waiter& waiter : std::exchange(waiters_, {}))
    waiter.done->reject(rpc::to_kj(Code::kUnavailable, why));
}

// Called by the links, perhaps from inside an answer to one of their calls.
void ReplicaLog::looked_at() {
  go_on();
  acknowledged_.notify_all();
  std::vector<std::pair<bool, bool>> now;
  for (const auto& link : links_) now.emplace_back(link->caught_up(), !link->trouble().empty());
  if (now == told_) return;
  told_ = std::move(now);
  ++version_;
  news_.notify_all();
}

// Pushes that wait for a backup are refused first. Once the links are gone there is none to wait
// for, and they would be answered.
void ReplicaLog::begins_anew() {
  refuse_all("the rows of this shard begin anew: repeat the call");
  links_.clear();
  looked_at();
}

void ReplicaLog::set_backups(Shard& shard, const std::vector<ShardReplica>& backups, Lease lease,
                             Shares shares) {
  if (!backups.empty() && !shard.is_open())
    throw FailedPreconditionError("this shard is not open: it has no rows that could be copied");
  if (const std::string why = shard.copy_obstacle(); !backups.empty() && !why.empty())
    throw FailedPreconditionError(str("this shard cannot have backups: ", why));
  if (!backups.empty() && parts_.network == nullptr)
    throw FailedPreconditionError("this shard reaches no other ps, and so can have no backups");
  stop_with_reactor();
  leased_ = lease == Lease::kLeased;
  shares_ = shares;
  named_at_ = parts_.reactor.clock().now();
  std::vector<std::unique_ptr<BackupLink>> before = std::exchange(links_, {});
  for (const ShardReplica& backup : backups) {
    const auto known = std::ranges::find_if(before, [&backup](const auto& link) {
      return link && link->backup() == backup && (link->trouble().empty() || link->caught_up());
    });
    if (known != before.end()) {
      links_.push_back(std::move(*known));
      continue;
    }
    const std::uint64_t stream = random_key(parts_.hello.incarnation.number, ++streams_) | 1;
    links_.push_back(
        std::make_unique<BackupLink>(parts_, shard, backup, stream, [this] { looked_at(); }));
    links_.back()->begin(position_, shares_);
  }
  looked_at();
  if (links_.empty()) return;
  if (!std::exchange(watching_, true)) tasks_.spawn("watch the backups", watch());
  if (parts_.options.comparison > Duration(0) && !std::exchange(comparing_, true))
    tasks_.spawn("compare the backups", compare(shard));
}

std::vector<ReplicaLog::State> ReplicaLog::states() const {
  std::vector<State> states;
  for (const auto& link : links_)
    states.push_back({link->backup(), link->caught_up(), link->trouble(),
                      position_ - link->acknowledged(), link->row_bytes()});
  return states;
}

rpc::Task<void> ReplicaLog::watch() {
  while (!links_.empty()) {
    co_await parts_.reactor.sleep(parts_.options.patience / 4);
    for (const auto& link : links_) link->look(parts_.reactor.clock().now());
  }
  watching_ = false;
}

std::size_t ReplicaLog::followers() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      links_, [](const auto& link) { return link->caught_up() && link->trouble().empty(); }));
}

// To one that lacks rows yet it says nothing: its position in the log goes on all the same.
void ReplicaLog::append_sums(const RowSummer::Slice& slice) {
  const auto sums = record_of(slice.table, slice.rows, parts_.reactor.buffers());
  const auto nothing = record_of_probe();
  ++position_;
  for (const auto& link : links_) link->append(link->is_copied() ? sums : nothing, position_);
}

// All rows once as soon as a backup has caught up, then all over again at leisure. A slice goes
// only when the one before was acknowledged, so that a slow backup has no more to do.
rpc::Task<void> ReplicaLog::compare(const Shard& shard) {
  RowSummer summer(shard);
  std::size_t before = 0;
  std::uint64_t compared = 0;
  bool at_once = false;
  while (!links_.empty()) {
    Duration pause = parts_.options.patience;
    if (shard.is_open())
      pause = at_once ? kShortPause
                      : parts_.options.comparison / summer.slices(parts_.options.compared_bytes);
    kj::Promise<void> goes_on =
        passed() < compared ? acknowledged_.wait() : parts_.reactor.sleep(pause);
    kj::Promise<void> either = goes_on.exclusiveJoin(news_.wait());
    co_await kj::mv(either);
    const std::size_t now = followers();
    if (now > before) summer.begin_again();
    at_once = now > 0 && (at_once || now > before);
    before = now;
    if (now == 0 || !shard.is_open() || passed() < compared) continue;
    if (const auto slice = summer.next(parts_.options.compared_bytes)) {
      append_sums(*slice);
      compared = position_;
    } else {
      at_once = false;
    }
  }
  comparing_ = false;
}

}  // namespace cairn::ps
