// StreamOrder: what the fake driver knows about the order of work, so that it finds accesses to
// memory that nothing orders.
//
// Every stream, and every thread of the host, knows up to which point it has seen the work of the
// streams (a vector clock); events and waits pass that knowledge on. Two accesses of which one
// writes are ordered if the later one's stream has seen the earlier one. A stream knows what the
// thread that uses it knows. Threads that use one stream in turn have been ordered by the program,
// so the later one takes over what the earlier one knows; of threads that share no stream nothing
// is known, however they wait for one another.
//   Source  Lamport, "Time, clocks, and the ordering of events in a distributed system", CACM 1978;
//           vector clocks: Fidge, 1988, and Mattern, 1989.
//   Thread  one at a time; "this thread" is the caller's.
#pragma once
#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/driver.h"

namespace cairn::testing {

class StreamOrder {
 public:
  using Stream = cuda::Stream;
  using Event = cuda::Event;
  using Range = cuda::Range;

  // ---- streams and events ----

  Stream make_stream() {
    auto* made = reinterpret_cast<Stream>(next_name());
    streams_[made].user = std::this_thread::get_id();
    return made;
  }
  void destroy(Stream stream) { streams_.erase(stream); }
  Event make_event() {
    auto* made = reinterpret_cast<Event>(next_name());
    events_[made] = {};
    return made;
  }
  void destroy(Event event) { events_.erase(event); }
  void record(Event event, Stream stream) { events_.at(event) = use(stream); }
  void wait_for(Stream stream, Event event) { learn(use(stream), events_.at(event)); }
  // This thread waits until the work has ended that the stream has now, or had at the event.
  void host_waits_for(Stream stream) { learn(host(), use(stream)); }
  void host_waits_for(Event event) { learn(host(), events_.at(event)); }
  bool host_has_seen(Event event) {
    return std::ranges::all_of(events_.at(event),
                               [&](const auto& at) { return host_has_seen(at.first, at.second); });
  }
  bool host_has_seen(Stream stream, std::int64_t time) {
    const auto seen = host().find(stream);
    return seen != host().end() && seen->second >= time;
  }
  // The time of the last piece of work that was announced on the stream.
  std::int64_t time(Stream stream) { return use(stream).at(stream); }
  // Checks that the stream exists; from now on this thread uses it.
  void require(Stream stream) { use(stream); }

  // ---- memory ----

  void add_block(std::byte* begin, std::size_t bytes) { blocks_[begin].bytes = bytes; }
  void remove_block(std::byte* begin) { blocks_.erase(begin); }
  std::size_t blocks() const { return blocks_.size(); }
  std::size_t used_bytes() const {
    std::size_t used = 0;
    for (const auto& [begin, block] : blocks_) used += block.bytes;
    return used;
  }
  bool holds(const std::byte* at) { return holder(at) != nullptr; }
  // Announcements of more than `row_bytes` of this block are left out.
  void watch_rows(const std::byte* block, std::size_t row_bytes) {
    blocks_.at(const_cast<std::byte*>(block)).row_bytes = row_bytes;
  }
  //   Errors  Internal: memory that is not here, a race, a read of what nothing wrote.
  void announce(Stream stream, std::span<const Range> reads, std::span<const Range> writes) {
    Clock& clock = use(stream);
    const std::int64_t now = ++clock[stream];
    for (const Range& range : reads) access(clock, stream, now, range, false);
    for (const Range& range : writes) access(clock, stream, now, range, true);
  }

  // Names the blocks, streams and events that are still here; empty: none.
  std::string leaks() const {
    if (blocks_.empty() && streams_.empty() && events_.empty()) return {};
    return str(blocks_.size(), " blocks, ", streams_.size(), " streams, ", events_.size(),
               " events");
  }

 private:
  using Clock = std::map<Stream, std::int64_t>;
  struct Track {
    Clock clock;
    std::thread::id user;  // the last one
  };
  struct Access {
    Stream stream;
    std::int64_t time;
    const std::byte *begin, *end;
    bool writes;
  };
  struct Block {
    std::size_t bytes = 0;
    std::vector<Access> accesses;
    std::size_t row_bytes = std::numeric_limits<std::size_t>::max();  // watch_rows()
  };

  // No two of a process are equal, so that a stream of one device is not taken for another's.
  static std::uintptr_t next_name() {
    static std::atomic<std::uintptr_t> last = 0;
    return ++last;
  }

  Clock& host() { return hosts_[std::this_thread::get_id()]; }

  Clock& use(Stream stream) {
    const auto found = streams_.find(stream);
    CAIRN_CHECK(found != streams_.end(),
                "a stream that was never made, or is destroyed, or is another device's");
    Track& track = found->second;
    const std::thread::id here = std::this_thread::get_id();
    if (track.user != here) learn(host(), hosts_[track.user]);
    track.user = here;
    learn(track.clock, host());
    return track.clock;
  }
  static void learn(Clock& clock, const Clock& from) {
    for (const auto& [stream, time] : from) clock[stream] = std::max(clock[stream], time);
  }

  Block* holder(const std::byte* at) {
    auto after = blocks_.upper_bound(const_cast<std::byte*>(at));
    if (after == blocks_.begin()) return nullptr;
    auto& [begin, block] = *std::prev(after);
    return at < begin + block.bytes ? &block : nullptr;
  }

  void access(const Clock& clock, Stream stream, std::int64_t now, const Range& range,
              bool writes) {
    if (range.bytes == 0) return;
    Block* const block = holder(range.begin);
    if (block == nullptr)
      throw InternalError("work on memory that is not the device's, or is released");
    if (range.bytes > block->row_bytes) return;
    const std::byte* const end = range.begin + range.bytes;
    bool written = writes;
    for (const Access& earlier : block->accesses) {
      if (earlier.end <= range.begin || end <= earlier.begin) continue;
      written = written || earlier.writes;
      if (!writes && !earlier.writes) continue;
      const auto seen = clock.find(earlier.stream);
      if (earlier.stream != stream && (seen == clock.end() || seen->second < earlier.time))
        throw InternalError(str("a race: work on one stream ", writes ? "writes" : "reads",
                                " what work on another ", earlier.writes ? "writes" : "reads",
                                ", and no event lies between them"));
    }
    if (!written) throw InternalError("work reads memory that nothing has written");
    // An access hides those of its own kind that it covers.
    std::erase_if(block->accesses, [&](const Access& old) {
      return old.stream == stream && old.writes == writes && range.begin <= old.begin &&
             old.end <= end;
    });
    block->accesses.push_back({stream, now, range.begin, end, writes});
  }

  std::map<std::thread::id, Clock> hosts_;
  std::map<Stream, Track> streams_;
  std::map<Event, Clock> events_;
  std::map<std::byte*, Block> blocks_;
};

}  // namespace cairn::testing
