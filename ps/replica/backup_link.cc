#include "ps/replica/backup_link.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "rpc/net/connection.h"

namespace cairn::ps {
namespace {

constexpr std::size_t kBlocksAhead = 2;
constexpr std::size_t kCallBytes = 512;  // of a call besides its payload, roughly
constexpr std::size_t kCopiedBytes = std::size_t{8} << 10;

}  // namespace

BackupLink::BackupLink(const LinkParts& parts, Shard& shard, ShardReplica backup,
                       std::uint64_t stream, std::function<void()> changed)
    : parts_(parts),
      shard_(shard),
      backup_(std::move(backup)),
      changed_(std::move(changed)),
      stream_(stream) {}

BackupLink::~BackupLink() = default;

void BackupLink::begin(std::uint64_t position, Shares shares) {
  position_ = sent_ = acknowledged_.position = position;
  ShardBooks books = shard_.books();
  books.with_shares = shares == Shares::kCopied;
  push({record_of(books), position_, false, false, {}});
  if (books.with_shares)
    for (RowChange& share : ShardCopy(shard_).shares())
      push({record_of(share, parts_.reactor.buffers()), position_, false, false, {}});
  copier_.emplace(shard_);
  tasks_.spawn(str("records for ", rpc::task_name(rpc::Role::kPs, backup_.ps)), run());
}

void BackupLink::append(std::shared_ptr<LogRecord> record, std::uint64_t position) {
  position_ = position;
  if (!trouble_.empty()) return;
  push({std::move(record), position, false, false, {}});
  if (!joined_at_ && unsent_bytes_ > parts_.options.unsent_bytes_max)
    fail(str("it takes the changes of the rows more slowly than they are made: ", unsent_bytes_,
             " bytes of them wait"));
}

void BackupLink::push(Item item) {
  item.since = parts_.reactor.clock().now();
  unsent_bytes_ += item.record->bytes();
  unsent_blocks_ += item.block ? 1 : 0;
  unsent_.push_back(std::move(item));
  more_.notify_all();
}

// A block is as of now, so that its place among the changes is here, behind all that were told.
void BackupLink::copy_more() {
  while (copier_ && unsent_blocks_ < kBlocksAhead) {
    const auto block = copier_->next(parts_.options.block_bytes);
    if (!block) {
      copier_.reset();
      return push({record_of_complete(), position_, true, true, {}});
    }
    row_bytes_ += block->rows.data.size();
    push({record_of(block->table, block->variable, block->rows, parts_.reactor.buffers()),
          position_,
          true,
          false,
          {}});
  }
}

rpc::Task<void> BackupLink::run() {
  try {
    rpc::Hello hello = parts_.hello;
    hello.session = shard_.session();
    hello.endpoint = backup_.endpoint;
    connection_ = co_await parts_.network->connect(
        parts_.reactor, rpc::Address::parse(backup_.address), hello, parts_.options.patience);
    if (backup_.process != 0 && connection_->peer().incarnation != backup_.process)
      throw UnavailableError("another process answers there");
    for (;;) {
      copy_more();
      while (unsent_.empty()) co_await more_.wait();
      Item item = std::move(unsent_.front());
      unsent_.pop_front();
      unsent_bytes_ -= item.record->bytes();
      unsent_blocks_ -= item.block ? 1 : 0;
      co_await send(std::move(item));
    }
  } catch (const Error& error) {
    fail(error.what());
  }
}

// The calls of one record are sent one after the other; the answer to the last is the backup's word
// for all of it.
rpc::Task<void> BackupLink::send(Item item) {
  const std::span<const std::byte> payload = item.record->payload();
  const std::uint64_t number = next_++;
  unacknowledged_.push_back(item.since);
  auto client = connection_->bootstrap<wire::Shard>();
  for (std::size_t at = 0;;) {
    const std::size_t bytes = std::min(payload.size() - at, kPayloadBytesMax);
    rpc::Credit credit = co_await connection_->acquire_credit(rpc::Way::kOut, bytes + kCallBytes);
    auto request = client.recordRequest();
    request.setEpoch(shard_.epoch().number);
    request.setStream(stream_);
    request.setNumber(number);
    if (at == 0) request.setRecord(item.record->head().asReader());
    const std::byte* const piece = payload.data() + at;
    if (bytes <= kCopiedBytes) {
      request.setPayload({reinterpret_cast<const kj::byte*>(piece), bytes});
    } else {
      const auto orphanage =
          capnp::Orphanage::getForMessageContaining(wire::Shard::RecordParams::Builder(request));
      request.adoptPayload(
          connection_->attach(orphanage, rpc::Attachment(piece, bytes, item.record->owner())));
    }
    at += bytes;
    const bool last = at == payload.size();
    request.setMore(!last);
    auto answered = request.send().ignoreResult().attach(kj::mv(credit));
    if (!last) {
      tasks_.spawn("a piece of a record", answered.catch_([this](kj::Exception&& error) {
        fail(rpc::from_kj(error).message);
      }));
      continue;
    }
    sent_ = item.position;
    changed_();
    tasks_.spawn("a record", answered.then([this, item] { took(item); },
                                           [this](kj::Exception&& error) {
                                             fail(rpc::from_kj(error).message);
                                           }));
    co_return;
  }
}

void BackupLink::took(const Item& item) {
  if (!trouble_.empty()) return;
  unacknowledged_.pop_front();
  acknowledged_ = {item.position, item.since};
  // Changes that were answered before this, and are not acknowledged yet, have to be before the
  // backup counts as one that has them all.
  if (item.complete) joined_at_ = position_;
  changed_();
}

void BackupLink::look(TimePoint now) {
  if (!trouble_.empty()) return;
  std::optional<TimePoint> oldest;
  if (!unacknowledged_.empty())
    oldest = unacknowledged_.front();
  else if (!unsent_.empty())
    oldest = unsent_.front().since;
  if (oldest && now - *oldest > parts_.options.patience)
    fail(str("it has not acknowledged a change of the rows for ",
             std::chrono::duration_cast<std::chrono::milliseconds>(now - *oldest).count(), " ms"));
}

// The connection is closed, not destroyed: this may be one of its own calls.
void BackupLink::fail(const std::string& why) {
  if (!trouble_.empty()) return;
  trouble_ = why;
  log_warning(rpc::task_name(rpc::Role::kPs, backup_.ps), " at ", backup_.address,
              " is sent no changes of the rows any more: ", why);
  unsent_.clear();
  unsent_bytes_ = unsent_blocks_ = 0;
  copier_.reset();
  if (connection_) connection_->close();
  changed_();
}

}  // namespace cairn::ps
