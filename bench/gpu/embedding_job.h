// The embedding job that is measured: ten tables of 1.68 million rows of 128 floats, and steps of
// 105,000 lookups in each, drawn from a power law.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/kernels/cuda/embedding/tables.h"

namespace cairn::bench {

struct JobSize {
  int tables = 10;
  std::int64_t rows = 1'680'000;   // per table
  std::int64_t lookups = 105'000;  // per table and step
  int dim = 128;
  double exponent = 1.05;  // of the power law
  int id_sets = 4;         // the measured steps take turns with them
  int replays = 80;
};

struct Measured {
  std::string name;
  double median_ms = 0, min_ms = 0, max_ms = 0;
  double bytes = 0;  // that must move at least: each gradient, output and distinct row once
};

// One rule's measurements: the step, its parts, and the step on hashed tables.
struct JobResult {
  std::vector<Measured> measured;
  double distinct = 0;  // rows per step
  bool right = true;    // the rows looked up and updated have the expected values
};

// Copies 2 GB within the device; bytes per second, counting both what is read and what is written.
double copy_bandwidth();

// Ids of every step, [id_sets][tables * lookups], table by table. Rank k of the power law is drawn
// with probability in proportion to k^-exponent, by the inverse of its distribution function; a
// table's ranks are dealt out over its rows by a permutation of its own.
std::vector<std::vector<std::int64_t>> power_law_ids(const JobSize& size);

//   Errors  what CUDA refuses, as cairn::Error.   Cost  some 5 s, and device memory for the tables.
JobResult run_job(const JobSize& size, cuda::Rule rule,
                  const std::vector<std::vector<std::int64_t>>& ids);

// The same job with tables in the host's memory behind a RowCache (row_cache.h).
struct CachedSize {
  double share = 0.1;  // of the tables' rows that fit into the cache
  int lookahead = 4;
  int warm_up = 40;  // steps before those that are measured, in which the cache fills
};
struct CachedResult {
  // A step, and a step that moves rows and computes nothing: from one's end to the next one's.
  std::vector<Measured> measured;
  double found = 0, read = 0, written = 0;  // distinct rows per step, of the cache's counts
  double row_bytes = 0;
  bool right = true;
};

// `ids` should hold more sets than rows stay in the cache for, or their repetition is what is
// measured.
//   Errors  as run_job(); also what RowCache finds, such as too little room.
//   Cost    some 20 s, and as much pinned memory as the tables take: 9 GB for SGD, 26 GB for Adam.
CachedResult run_cached_job(const JobSize& size, const CachedSize& cached, cuda::Rule rule,
                            const std::vector<std::vector<std::int64_t>>& ids);

// Copies 1 GB each way between pinned memory and the device at the same time; bytes per second and
// way.
double bus_bandwidth();

}  // namespace cairn::bench
