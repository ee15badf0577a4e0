// A scope in which a variable that is read whole is read once.
//
//   Function step = strategy.function([&] {
//     auto cached = cache_variable_reads();
//     ...                          // w.read() as often as it likes: one pull
//   });
//
// Reads of a function are one read anyway until the variable is changed. Within the scope they are
// one beyond that: what is written in it is not seen by reads in it, as under the reference's
// cache_variable_reads(). Reads of rows (gather) are not cached.
//   Thread  the scope holds for the thread that opened it.
#pragma once

namespace cairn {

class [[nodiscard]] CachedReads {
 public:
  // InvalidArgument: one is open on this thread; they do not nest.
  CachedReads();
  ~CachedReads();
  CachedReads(const CachedReads&) = delete;
  CachedReads& operator=(const CachedReads&) = delete;
};

inline CachedReads cache_variable_reads() { return CachedReads(); }

}  // namespace cairn
