// Random numbers in the graph. Recorded as the operations of core/graph/ops.h, which includes this
// file.
//
// They are counter-based: an element is a function of (seed, the operation's place in its function,
// the step, the element's number) and of nothing else. So a closure that is run again, on another
// worker or lane, draws what it drew before; another step draws anew.
//   Place  operations are numbered within the function being traced; outside of one each gets a
//          number of its own, so that two random Arrays differ while the same Array always has the
//          same value.
//   Step   by default step_key(). To tie numbers to something else, such as an example's number,
//          pass that as `step`.
#pragma once
#include <cstdint>

#include "core/graph/array.h"

namespace cairn {

// int64 [2]: the global step and the replica. A closure that updates nothing has no global step; it
// has -1 - its sequence number.
Array step_key();

struct RandomOptions {
  std::uint64_t seed = 0;
  Array step = {};  // int32 or int64, any shape: all its numbers count
};

// float32 of a shape that is known, or of `like`'s shape, whose elements are not looked at.
//   Errors  InvalidArgument: bounds in the wrong order, a deviation below 0, neither finite.
// [low, high)
Array random_uniform(const Shape& shape, float low = 0, float high = 1,
                     const RandomOptions& options = {});
Array random_uniform_like(const Array& like, float low = 0, float high = 1,
                          const RandomOptions& options = {});
Array random_normal(const Shape& shape, float mean = 0, float stddev = 1,
                    const RandomOptions& options = {});
Array random_normal_like(const Array& like, float mean = 0, float stddev = 1,
                         const RandomOptions& options = {});
// Normal, drawn again beyond two deviations.
Array random_truncated_normal(const Shape& shape, float mean = 0, float stddev = 1,
                              const RandomOptions& options = {});
Array random_truncated_normal_like(const Array& like, float mean = 0, float stddev = 1,
                                   const RandomOptions& options = {});
// int64, uniform in [low, high); high > low.
Array random_integers(const Shape& shape, std::int64_t low, std::int64_t high,
                      const RandomOptions& options = {});
Array random_integers_like(const Array& like, std::int64_t low, std::int64_t high,
                           const RandomOptions& options = {});

// Each element 0 with probability `rate`, else divided by 1 - rate; for training only. A rate of 0
// is x itself.
//   Errors  InvalidArgument: a rate outside [0, 1).   Source  Srivastava et al., JMLR 15 (2014).
Array dropout(const Array& x, float rate, const RandomOptions& options = {});

}  // namespace cairn
