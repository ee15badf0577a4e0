#include "ps/replica/replica_log.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

// The reactor keeps it, and destroys it while its loop still stands.
struct ReplicaLog::Ending {
  ~Ending() {
    if (log != nullptr) log->stop();
  }
  ReplicaLog* log = nullptr;
};

ReplicaLog::ReplicaLog(LinkParts parts) : parts_(std::move(parts)) {}

ReplicaLog::~ReplicaLog() {
  if (ending_) ending_->log = nullptr;
}

void ReplicaLog::stop() {
  tasks_.cancel_all();
  links_.clear();
  refuse_all("this ps is stopping");
}

void ReplicaLog::stop_with_reactor() {
  if (ending_) return;
  ending_ = std::make_shared<Ending>();
  ending_->log = this;
  parts_.reactor.keep(ending_);
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
  std::vector<std::pair<bool, bool>> now;
  for (const auto& link : links_) now.emplace_back(link->caught_up(), !link->trouble().empty());
  if (now == told_) return;
  told_ = std::move(now);
  ++version_;
  news_.notify_all();
}

void ReplicaLog::begins_anew() {
  links_.clear();
  looked_at();
  refuse_all("the rows of this shard begin anew: repeat the call");
}

void ReplicaLog::set_backups(Shard& shard, const std::vector<ShardReplica>& backups) {
  if (!backups.empty() && !shard.is_open())
    throw FailedPreconditionError("this shard is not open: it has no rows that could be copied");
  if (const std::string why = shard.copy_obstacle(); !backups.empty() && !why.empty())
    throw FailedPreconditionError(str("this shard cannot have backups: ", why));
  if (!backups.empty() && parts_.network == nullptr)
    throw FailedPreconditionError("this shard reaches no other ps, and so can have no backups");
  stop_with_reactor();
  std::vector<std::unique_ptr<BackupLink>> before = std::exchange(links_, {});
  for (const ShardReplica& backup : backups) {
    const auto known = std::ranges::find_if(before, [&backup](const auto& link) {
      return link && link->backup() == backup && link->trouble().empty();
    });
    if (known != before.end()) {
      links_.push_back(std::move(*known));
      continue;
    }
    const std::uint64_t stream = random_key(parts_.hello.incarnation.number, ++streams_) | 1;
    links_.push_back(
        std::make_unique<BackupLink>(parts_, shard, backup, stream, [this] { looked_at(); }));
    links_.back()->begin(position_);
  }
  looked_at();
  if (!watching_ && !links_.empty()) {
    watching_ = true;
    tasks_.spawn("watch the backups", watch());
  }
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

}  // namespace cairn::ps
