// TierCut: what a store had of a table's rows at one moment, as they lie in memory: without what
// else a record says of a row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "storage/row_log/cold_store.h"

namespace cairn::ps {

class TierCut final : public storage::ColdCut {
 public:
  // Records begin with `row_bytes` of the row. `rows`, ascending: these alone, as some of the
  // records may be of others.
  TierCut(std::unique_ptr<storage::ColdCut> records, std::size_t row_bytes,
          std::size_t record_bytes, std::optional<std::vector<std::int64_t>> rows = {});
  // No fewer than there are.
  std::uint64_t rows() const override { return records_->rows(); }
  void next(std::size_t most, storage::RowsDone done) override;

 private:
  struct Form {
    std::size_t row_bytes, record_bytes;
    std::optional<std::vector<std::int64_t>> rows;
    void take(storage::ReadRows& read) const;
  };

  std::unique_ptr<storage::ColdCut> records_;
  std::shared_ptr<const Form> form_;
};

}  // namespace cairn::ps
