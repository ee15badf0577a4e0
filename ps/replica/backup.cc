#include "ps/replica/backup.h"

#include <span>

#include "core/base/error.h"
#include "ps/replica/log_record.h"

namespace cairn::ps {
namespace {

std::span<const std::byte> bytes_of(capnp::Data::Reader data) {
  return {reinterpret_cast<const std::byte*>(data.begin()), data.size()};
}

}  // namespace

void Backup::verify(wire::Shard::RecordParams::Reader call) const {
  const Epoch epoch = call.getEpoch();
  if (epoch != shard_.epoch())
    throw FailedPreconditionError(
        str("a record of epoch ", epoch, ": this shard is in epoch ", shard_.epoch()));
  const bool begins = call.getNumber() == 0 && call.getRecord().isBooks() && !begun_;
  if (begins && call.getStream() != stream_.number) {
    if (call.getStream() == 0) throw InvalidArgumentError("a stream of records has a number");
    return;
  }
  if (stream_.number == 0 || call.getStream() != stream_.number || stream_.epoch != epoch)
    throw FailedPreconditionError(str("record ", call.getNumber(), " of stream ", call.getStream(),
                                      ", which has not begun here, or is over: the rows have to "
                                      "be copied anew"));
  if (call.getNumber() != stream_.next)
    throw FailedPreconditionError(
        str("record ", call.getNumber(), ": the next one of this stream ", "is ", stream_.next));
}

void Backup::take(wire::Shard::RecordParams::Reader call) {
  verify(call);
  const std::span<const std::byte> piece = bytes_of(call.getPayload());
  if (begun_ || call.getMore()) {
    const std::size_t before = begun_ ? begun_->payload.size() : 0;
    if (before + piece.size() > kPayloadMax)
      throw ResourceExhaustedError(str("a record of more than ", kPayloadMax, " bytes"));
  }
  if (call.getMore() && !begun_) {
    begun_ = std::make_unique<Begun>();
    begun_->head.setRoot(call.getRecord());
  }
  if (begun_) begun_->payload.insert(begun_->payload.end(), piece.begin(), piece.end());
  if (call.getMore()) return;
  const std::unique_ptr<Begun> begun = std::move(begun_);
  if (begun)
    replay(shard_, begun->head.getRoot<wire::Record>().asReader(), begun->payload);
  else
    replay(shard_, call.getRecord(), piece);
  if (call.getNumber() == 0) stream_ = {call.getEpoch(), call.getStream(), 0};
  ++stream_.next;
}

}  // namespace cairn::ps
