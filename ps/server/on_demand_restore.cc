#include "ps/server/on_demand_restore.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "ps/server/shard_service.h"
#include "rpc/loop/on_offload.h"

namespace cairn::ps {
namespace {

// So many batches are streamed while rows are looked up: then the stream waits for the lookup.
constexpr int kBatchesBesideALookup = 4;

}  // namespace

void OnDemandRestore::begin(const std::shared_ptr<ShardHost>& host, std::uint64_t restore) {
  host_ = host;
  restore_ = restore;
  stream_on();
}

void OnDemandRestore::run(std::size_t lane, std::function<void()> work,
                          std::function<void(std::exception_ptr)> then) {
  const auto host = host_.lock();
  if (host == nullptr) return;
  auto job = [self = shared_from_this(), work = std::move(work), then = std::move(then),
              mailbox = host->reactor.mailbox()]() mutable {
    const std::exception_ptr error = rpc::error_of(work);
    mailbox->post([self = std::move(self), then = std::move(then), error] { then(error); });
  };
  host->offload.submit(lane, std::move(job));
}

void OnDemandRestore::stream_on() {
  const auto host = host_.lock();
  if (host == nullptr || reading_ || ended_ || error_ != nullptr) return;
  if (looking_up_ && batches_beside_ == kBatchesBesideALookup) return;
  if (looking_up_) ++batches_beside_;
  reading_ = true;
  auto work = [reader = reader_, batch = next_, bytes = host->restore_batch_bytes,
               hurried = hurried_] { reader->read(*batch, bytes, hurried); };
  run(host->lane, std::move(work),
      [this](std::exception_ptr error) { batch_was_read(std::move(error)); });
}

// While the shard places this batch, the disk's thread reads the next one.
void OnDemandRestore::batch_was_read(std::exception_ptr error) {
  const auto host = host_.lock();
  if (host == nullptr) return;
  reading_ = false;
  if (error != nullptr) return fail(*host, error);
  std::swap(ready_, next_);
  ended_ = ready_->last || over(*host);
  stream_on();
  try {
    place(*host, *ready_);
  } catch (const Error&) {
    return fail(*host, std::current_exception());
  }
  if (!ended_) return;
  if (ready_->last) log_info(host->database, ": all rows are restored from ", reader_->folder());
  host->restore_went_on();
}

void OnDemandRestore::place(ShardHost& host, const Batch& batch) {
  for (const OnDemandReader::Piece& piece : batch.pieces) {
    const auto& [variable, rows] = reader_->wanted()[piece.wanted];
    if (!host.shard.restores_later(restore_, variable, rows.begin)) continue;
    if (piece.expected_bytes > 0)
      host.shard.expect_later(piece.expected_bytes, variable, rows.begin);
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
      host.shard.restore_later(batch.blocks[i], variable, rows.begin);
      streamed_bytes_ += batch.blocks[i].data.size();
    }
    host.shard.count_restored_bytes(std::min(streamed_bytes_, reader_->bytes()), reader_->bytes());
    if (!piece.last) continue;
    host.shard.end_restore_later(variable, rows.begin);
    host.restore_went_on();
  }
}

// Another restore has begun with all of its tables, or another session.
bool OnDemandRestore::over(const ShardHost& host) const {
  const auto& wanted = reader_->wanted();
  return std::none_of(wanted.begin(), wanted.end(), [&](const auto& one) {
    return host.shard.restores_later(restore_, one.first, one.second.begin);
  });
}

void OnDemandRestore::fail(ShardHost& host, const std::exception_ptr& error) {
  if (error_ != nullptr) return;
  error_ = error;
  host.shard.fail_restore_later(restore_, error);
  host.restore_went_on();
}

// ---- single rows ----

std::size_t OnDemandRestore::number_of(const Table& table) const {
  const auto& wanted = reader_->wanted();
  const auto found = std::find_if(wanted.begin(), wanted.end(), [&](const auto& one) {
    return one.second == table.range() && one.first == table.spec().name;
  });
  CAIRN_CHECK(found != wanted.end(), "'", table.spec().name, "' is not being restored");
  return static_cast<std::size_t>(found - wanted.begin());
}

void OnDemandRestore::hurry(const Table& table) {
  const std::size_t number = number_of(table);
  if (std::find(hurried_.begin(), hurried_.end(), number) == hurried_.end())
    hurried_.push_back(number);
  stream_on();
}

void OnDemandRestore::read(const Table& table, const std::vector<std::int64_t>& rows, Done done) {
  Lookup lookup{number_of(table), std::move(done), {}};
  for (std::size_t i = 0; i < rows.size(); ++i)
    lookup.shares[2 * i < rows.size() ? 0 : 1].rows.push_back(rows[i] + table.range().begin);
  waiting_.push_back(std::move(lookup));
  look_up_waiting();
}

// All that have come meanwhile are looked up together.
void OnDemandRestore::look_up_waiting() {
  const auto host = host_.lock();
  if (host == nullptr || looking_up_ || waiting_.empty()) return;
  looking_up_ = true;
  batches_beside_ = 0;
  const auto job = std::make_shared<LookupJob>();
  job->lookups = std::exchange(waiting_, {});
  const std::array<std::size_t, 2> lanes = {host->pages_lane, host->lane};
  job->lanes = lanes.size();
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    auto work = [reader = reader_, job, i, failed = error_] {
      if (failed != nullptr) std::rethrow_exception(failed);
      for (Lookup& lookup : job->lookups)
        reader->look_up(lookup.wanted, i, lookup.shares[i].rows, lookup.shares[i].found);
    };
    run(lanes[i], std::move(work),
        [this, job](std::exception_ptr error) { was_looked_up(job, std::move(error)); });
  }
}

void OnDemandRestore::was_looked_up(const std::shared_ptr<LookupJob>& job,
                                    std::exception_ptr error) {
  const auto host = host_.lock();
  if (host == nullptr) return;
  if (job->error == nullptr) job->error = std::move(error);
  if (--job->lanes > 0) return;
  looking_up_ = false;
  if (job->error != nullptr) fail(*host, job->error);
  look_up_waiting();
  for (Lookup& lookup : job->lookups) {
    auto& [first, second] = lookup.shares;
    std::move(second.found.begin(), second.found.end(), std::back_inserter(first.found));
    lookup.done(first.found, job->error);
  }
  stream_on();
}

}  // namespace cairn::ps
