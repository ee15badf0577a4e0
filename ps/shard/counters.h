// Counts of the work that a shard has done, readable from any thread while the shard works.
#pragma once
#include <atomic>
#include <cstdint>

namespace cairn::ps {

// Written by the shard's thread alone.
struct ShardCounters {
  using Number = std::atomic<std::uint64_t>;
  Number session{0}, layout_version{0}, lineage{0}, epoch{0};
  Number open{0};                       // 1: answers pulls and pushes
  Number tables{0}, rows{0}, bytes{0};  // bytes: memory of the rows, slots included
  struct Traffic {
    Number calls{0}, rows{0}, bytes{0};
  };
  Traffic pulls, pushes;  // pushes: applied ones
  // refused: applied before; by a fenced worker; pulled from another lineage, or of another
  // epoch
  Number duplicates{0}, fenced{0}, outdated{0};
  struct Staleness {  // over the applied pushes
    Number sum{0}, max{0};
  };
  Staleness staleness;
  // Requests that wait, for rows or for room to copy them aside; pieces that wait for the rest.
  struct Kept {
    Number waiting{0}, staged_bytes{0};
  };
  Kept kept;
  // The checkpoint that is being written, 0 without one: blocks of rows in all, and handed to the
  // writer; their bytes; memory for rows copied aside for it, and the bound on that.
  struct Save {
    Number marks{0};  // in all
    Number blocks{0}, taken_blocks{0}, bytes{0}, copied_bytes{0}, copied_bytes_max{0};
  };
  Save save;
  // Rows of tables that may have some on a disk: how many are there alone, the bytes of its files,
  // and how many were read from it, left memory, and were written for that, in all.
  struct Tier {
    Number rows_elsewhere{0}, disk_bytes{0}, fetched_rows{0}, evicted_rows{0}, written_rows{0};
  };
  Tier tier;
  // Gradients of rows that were not admitted, and rows that went for good, of the tables of now.
  struct Turnover {
    Number dropped{0}, gone{0};
  };
  Turnover turnover;
  // The last restore: rows so far. Of one on demand also the bytes of all rows, roughly, and how
  // many of them the stream has brought; both 0 when all are there.
  struct Restore {
    Number rows{0}, bytes_in_all{0}, bytes{0};
  };
  Restore restore;
  // The newest global step of a push that was applied; subscribers, and the memory of what they are
  // still to be sent.
  struct Follow {
    Number step{0}, subscribers{0}, bytes{0};
  };
  Follow follow;

  // One writer needs no locked instruction.
  static void add(Number& number, std::uint64_t by) {
    set(number, number.load(std::memory_order_relaxed) + by);
  }
  static void raise(Number& number, std::uint64_t to) {
    if (to > number.load(std::memory_order_relaxed)) set(number, to);
  }
  static void set(Number& number, std::uint64_t value) {
    number.store(value, std::memory_order_relaxed);
  }
};

}  // namespace cairn::ps
