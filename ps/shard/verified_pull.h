// VerifiedPull: a pull whose tables a shard has found and whose ids it has verified. What is left
// is to copy the rows, or to lend them. It answers with the rows as they are when it is asked, and
// is good until the shard is next called: a later call may take the tables away.
//
//   VerifiedPull& pull = shard.pull(request);
//   if (auto loan = pull.lend()) ...
//   else pull.read(buffer_of(pull.bytes()));
//
//   Thread  the shard's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/memory/loan.h"
#include "ps/shard/counters.h"
#include "ps/shard/requests.h"

namespace cairn::ps {

class Table;

// One header of the pull.
struct VerifiedRead {
  Table* table;
  std::span<const std::int64_t> ids;  // local row numbers; none with whole
  bool whole;
  // The caller has these values already: its copy is of this lineage, and the part was not
  // written since. Nothing of it is in the answer.
  bool copied;
};

class VerifiedPull {
 public:
  explicit VerifiedPull(ShardCounters& counters) : counters_(counters) {}

  std::span<const VerifiedRead> reads() const { return reads_; }
  std::size_t bytes() const { return bytes_; }  // that read() writes

  // All rows as of one moment, header after header. `out` has room for bytes().
  void read(std::byte* out);
  // Where a pull of one variable asks for rows that lie together as they travel, a loan of them;
  // null: read() them.
  std::shared_ptr<Loan> lend();

 private:
  friend class Shard;  // which fills it anew for every request, so that no pull allocates

  void count(std::size_t rows, std::size_t bytes);

  ShardCounters& counters_;
  std::vector<VerifiedRead> reads_;
  RowEncoding encoding_ = RowEncoding::kRaw;
  NextReader next_reader_ = NextReader::kThisCore;
  std::size_t bytes_ = 0;
  std::vector<std::byte> scratch_;  // values on their way to being narrowed
};

}  // namespace cairn::ps
