// The options of cairn-bench.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::bench {

// The files that a run writes besides its printed figures.
struct Records {
  std::string json;    // file to append JSON lines to; "": none
  std::string commit;  // that those lines are of
  std::string trace;   // file to write; "": none
};

struct Options {
  std::vector<std::string> names;  // of benchmarks
  Records records;
  int windows = 7;
  double seconds = 2;  // of a window, about
  int ps = 1, workers = 1, shards = 1, lanes = 1;
  std::vector<std::string> transports = {"auto", "tcp"};
  struct Bfloat16 {
    bool wire = false, products = false;
  };
  Bfloat16 bfloat16;
  std::vector<std::uint32_t> depths = {2};
  std::vector<int> steps = {1, 10};  // of one closure
  std::int64_t prefetch = 2;
  std::int64_t batch = 0;  // of wide-deep and dlrm; 0: their own
  std::vector<std::string> growth = {"workers", "rows", "batch"};
  struct Storage {
    std::int64_t table_rows = 2'000'000;  // of a table; cold-rows: keys; turnover: new ids
    std::string memory_limit = "2 GB";    // cold-rows: of the ps
    bool only_limited = false;            // cold-rows: nothing to compare with
    bool only_restore = false;            // storage: restoring on demand alone
  };
  Storage storage;
  bool one_device = true;       // wide-deep in one process as well
  bool check_replicas = false;  // hybrid: compare copies after each step
  std::string data;             // records of wide-deep; "": a file of our own
  std::uint64_t seed = 1;
};

}  // namespace cairn::bench
