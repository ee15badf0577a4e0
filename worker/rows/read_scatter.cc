#include "worker/rows/read_scatter.h"

#include <cstring>

#include "core/memory/bulk_copy.h"
#include "core/tensor/bfloat16.h"

namespace cairn::worker {
namespace {

// How a read is served: by how many messages, and from which shard if that is one.
struct Sources {
  std::uint32_t messages = 0;
  bool one_shard = true;
  bool encoded = false;
  ShardId shard = 0;
};

// One vector for the whole wave: a wave may read hundreds of tables, and this runs for every step.
std::vector<Sources> count_sources(std::size_t reads, std::span<const ShardRequest> requests) {
  std::vector<Sources> all(reads);
  for (const ShardRequest& request : requests)
    for (const Segment& segment : request.segments) {
      Sources& sources = all[segment.item];
      sources.one_shard =
          sources.messages == 0 || (sources.one_shard && sources.shard == request.shard);
      sources.shard = request.shard;
      sources.encoded = segment.encoded;
      ++sources.messages;
    }
  return all;
}

bool aligned(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data) % 8 == 0; }

}  // namespace

ReadScatter::ReadScatter(const Routing& routing, std::span<Read> reads,
                         std::span<const ShardRequest> requests, rpc::BufferPool& pool,
                         const MemoryOf& memory_of)
    : reads_(reads), pool_(pool), encoding_(routing.encoding()) {
  const std::vector<Sources> all = count_sources(reads.size(), requests);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    Read& read = reads[i];
    const Sources& sources = all[i];
    read.value = Tensor();
    if (sources.messages == 1) continue;
    const VariableSpec& spec = *routing.variable(read.variable).spec;
    const Shape shape = value_shape(spec, read.ids);
    const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * dtype_bytes(spec.dtype);
    // A shard writes rows as they travel, so encoded ones cannot be written to where they belong.
    if (sources.messages > 1 && sources.one_shard && !sources.encoded) {
      // Before the first connection nothing is shared yet, and the pool serves.
      BlobMemory& memory = memory_of(sources.shard);
      if (memory.shares(bytes)) {
        Bytes meeting = memory.take(bytes);
        read.value = Tensor::borrowed(spec.dtype, shape, meeting.data, std::move(meeting.owner));
        continue;
      }
    }
    read.value = pooled_tensor(pool_, spec.dtype, shape);
  }
}

ReadScatter::Copies ReadScatter::ask(const ShardRequest& request, BlobMemory& memory,
                                     const PartCache* cache, PullCall& call) const {
  Copies copies;
  call.headers.reserve(request.segments.size());
  for (std::size_t i = 0; i < request.segments.size(); ++i) {
    const Segment& segment = request.segments[i];
    call.headers.push_back({segment.variable, segment.part, segment.listed(), segment.whole});
    const PartCache::Copy* copy =
        segment.whole && cache != nullptr ? cache->find(segment.variable, segment.part) : nullptr;
    // A call names one lineage: copies of another one, of a shard that was restarted between
    // two pulls, are of no use beside them.
    if (copy == nullptr || (call.copies_of != 0 && call.copies_of != copy->at.lineage)) continue;
    call.copies_of = copy->at.lineage;
    call.headers[i].written = copy->at.written;
    copies.resize(request.segments.size());
    copies[i] = *copy;
  }
  call.ids = local_ids(request, memory);
  call.encoding = encoding_;
  call.value_bytes = request.value_bytes;
  call.into = destination(request, memory);
  return copies;
}

// Only a request of one segment has one destination, for in a reply the rows of several segments
// stand end to end. A read without a buffer refers to the reply's own memory instead.
Bytes ReadScatter::destination(const ShardRequest& request, const BlobMemory& memory) const {
  const Segment& segment = request.segments.front();
  Tensor& value = reads_[segment.item].value;
  if (request.segments.size() != 1 || !value.defined() || segment.encoded ||
      !memory.shares(request.value_bytes))
    return {};
  // A place in shared memory begins at a multiple of 8, and rows of odd sizes may not.
  std::byte* at = value.mutable_raw() + segment.offset();
  if (!aligned(at)) return {};
  return {std::const_pointer_cast<void>(value.owner()), at, request.value_bytes};
}

// The values of all segments stand end to end in the reply, less those that were left out. The
// reply names the last write of whole parts only, in the order in which they were asked for.
void ReadScatter::land(const ShardRequest& request, std::span<const PartCache::Copy> copies,
                       const PullReply& reply, PartCache* cache) {
  const std::byte *from = reply.values.data(), *const end = from + reply.values.size();
  std::size_t whole = 0;
  for (std::size_t i = 0; i < request.segments.size(); ++i) {
    const Segment& segment = request.segments[i];
    const PartCache::Written at =
        segment.whole ? PartCache::Written{reply.version.lineage, reply.written.at(whole++)}
                      : PartCache::Written();
    // The shard left the values out if and only if the copy that we named is still what it has.
    if (segment.whole && !copies.empty() && copies[i].values.defined() && copies[i].at == at) {
      land_copy(segment, copies[i].values);
      continue;
    }
    if (segment.wire_bytes() > static_cast<std::size_t>(end - from))
      throw InternalError(str("shard ", request.shard, " left out values of variable \"",
                              segment.spec->name, "\", of which no copy is at hand"));
    land_values(segment, from, reply.owner);
    from += segment.wire_bytes();
    if (segment.whole && cache != nullptr) remember(segment, at, *cache);
  }
}

void ReadScatter::land_values(const Segment& segment, const std::byte* from,
                              const std::shared_ptr<const void>& owner) {
  Read& read = reads_[segment.item];
  const bool alone = !read.value.defined();
  if (alone && !segment.encoded && aligned(from)) {
    read.value =
        Tensor::borrowed(segment.spec->dtype, value_shape(*segment.spec, read.ids), from, owner);
    return;
  }
  if (alone)
    read.value = pooled_tensor(pool_, segment.spec->dtype, value_shape(*segment.spec, read.ids));
  std::byte* to = read.value.mutable_raw() + segment.offset();
  if (segment.encoded)
    widen_from_bfloat16(from, segment.elements(), reinterpret_cast<float*>(to));
  else if (segment.bytes() > 0 && to != from)  // equal: the shard wrote them in place
    copy_bulk(to, from, segment.bytes());
}

void ReadScatter::land_copy(const Segment& segment, const Tensor& values) {
  Tensor& value = reads_[segment.item].value;
  if (!value.defined())
    value = values;
  else if (values.bytes() > 0)
    std::memcpy(value.mutable_raw() + segment.offset(), values.raw(), values.bytes());
}

// The copy is made from the read's value, not from the message, because that has been widened.
void ReadScatter::remember(const Segment& segment, const PartCache::Written& at,
                           PartCache& cache) const {
  cache.saw(segment.variable, segment.part, at, segment.bytes(), [&] {
    const Shape shape = value_shape(*segment.spec, {});
    Tensor copy(segment.spec->dtype, shape.rank() > 0 ? shape.with_dim(0, segment.rows) : shape);
    if (segment.bytes() > 0)
      std::memcpy(copy.mutable_raw(), reads_[segment.item].value.raw() + segment.offset(),
                  segment.bytes());
    return copy;
  });
}

}  // namespace cairn::worker
