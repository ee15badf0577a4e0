#include "worker/rows/update_gather.h"

#include <algorithm>

#include "core/memory/bulk_copy.h"
#include "core/tensor/bfloat16.h"

namespace cairn::worker {
namespace {

bool on_a_word(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data) % 8 == 0; }

// Places in shared memory start at multiples of 8.
std::size_t room_for(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

void UpdateGather::fill(const ShardRequest& request, BlobMemory& memory, PushCall& call) const {
  call.headers.reserve(request.segments.size());
  for (const Segment& segment : request.segments) {
    const Update& update = updates_[segment.item];
    const PartRows rows{segment.variable, segment.part, segment.listed(), segment.whole};
    call.headers.push_back({rows, update.rule, update.learning_rate});
  }
  call.ids = local_ids(request, memory);
  call.values = shared_values(request, memory);
  call.values_shared = !call.values.empty();
  if (!call.values_shared) call.values = travelling_values(request);
  call.encoding = encoding_;
}

// The segment's values as they lie; no data where they travel as something else, or start where no
// place and no blob may.
Bytes UpdateGather::where_it_lies(const Segment& segment) const {
  const Tensor& tensor = value(segment);
  const std::byte* from = tensor.raw() + segment.offset();
  if (segment.encoded || !on_a_word(from)) return {};
  return {std::const_pointer_cast<void>(tensor.owner()), const_cast<std::byte*>(from),
          segment.wire_bytes()};
}

void UpdateGather::lay_out(const Segment& segment, std::byte* out) const {
  const std::byte* from = value(segment).raw() + segment.offset();
  if (segment.encoded)
    narrow_to_bfloat16(reinterpret_cast<const float*>(from), segment.elements(), out);
  else
    copy_bulk(out, from, segment.wire_bytes());
}

// One place per segment, each where it was computed if that is in shared memory. The rest is laid
// out in one piece of shared memory, taken in one go: either there is room for all of it, or
// everything travels, for a call's values are either all shared or all in its message. Empty: they
// travel.
std::vector<Bytes> UpdateGather::shared_values(const ShardRequest& request,
                                               BlobMemory& memory) const {
  if (!memory.shares(request.value_bytes)) return {};
  std::vector<Bytes> values(request.segments.size());
  std::size_t elsewhere = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Segment& segment = request.segments[i];
    if (segment.rows == 0) continue;
    values[i] = where_it_lies(segment);
    if (memory.shared(values[i])) continue;
    values[i] = {nullptr, nullptr, segment.wire_bytes()};
    elsewhere += room_for(values[i].size);
  }
  if (elsewhere == 0) return values;
  const Bytes room = memory.take_shared(elsewhere);
  if (room.data == nullptr) return {};
  std::byte* out = room.data;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].size == 0 || values[i].data != nullptr) continue;
    values[i].owner = room.owner;
    values[i].data = out;
    lay_out(request.segments[i], out);
    out += room_for(values[i].size);
  }
  return values;
}

// The values of all segments, end to end. They are named where they lie if that makes the message
// no dearer: a socket's call takes each place as a piece of its own, so many small pieces are first
// laid out in one buffer. Together they must be a multiple of 8 bytes, which is what a message
// counts in.
std::vector<Bytes> UpdateGather::travelling_values(const ShardRequest& request) const {
  if (request.value_bytes == 0) return {};
  const bool few_or_large = request.segments.size() == 1 ||
                            request.value_bytes >= request.segments.size() * kScatteredBytesMin;
  if (request.value_bytes % 8 == 0 && few_or_large) {
    std::vector<Bytes> values;
    values.reserve(request.segments.size());
    for (const Segment& segment : request.segments)
      if (segment.rows > 0) values.push_back(where_it_lies(segment));
    if (std::all_of(values.begin(), values.end(),
                    [](const Bytes& one) { return one.data != nullptr; }))
      return values;
  }
  const Bytes all = pooled_bytes(pool_, request.value_bytes);
  std::byte* out = all.data;
  for (const Segment& segment : request.segments) {
    if (segment.rows == 0) continue;
    lay_out(segment, out);
    out += segment.wire_bytes();
  }
  return {all};
}

}  // namespace cairn::worker
