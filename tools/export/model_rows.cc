#include "tools/export/model_rows.h"

#include <algorithm>
#include <vector>

#include "model/saved/model_file.h"
#include "storage/merged_rows.h"

namespace cairn::tools {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

ModelRows::ModelRows(const SavedModel& model) : weights_(model.folder + "/" + kWeightsFolder) {}

void ModelRows::held(const VariableSpec& variable, const TakeSome& take) const {
  ckpt::RowsAhead rows(weights_.path(), weights_.rows(weights_.variable(variable.name)));
  storage::RowBatch batch;
  while (rows.next(batch)) take(batch.rows, batch.data);
}

void ModelRows::dense(const VariableSpec& variable, const Take& take) const {
  const std::size_t row_bytes =
      static_cast<std::size_t>(variable.dim()) * dtype_bytes(variable.dtype);
  const auto most =
      static_cast<std::int64_t>(kPieceBytes / std::max<std::size_t>(row_bytes, 1) + 1);
  std::vector<std::byte> made;
  std::int64_t next = 0;
  const auto make_up_to = [&](std::int64_t end) {
    for (; next < end; next += std::min(most, end - next)) {
      const std::int64_t count = std::min(most, end - next);
      made.resize(static_cast<std::size_t>(count) * row_bytes);
      initialize_rows(variable, weights_.manifest().seed, next, count, variable.dim(), made.data());
      take(made);
    }
  };
  held(variable, [&](std::span<const std::int64_t> ids, std::span<const std::byte> rows) {
    for (std::size_t i = 0; i < ids.size();) {
      make_up_to(ids[i]);
      std::size_t end = i + 1;
      while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
      take(rows.subspan(i * row_bytes, (end - i) * row_bytes));
      next = ids[end - 1] + 1;
      i = end;
    }
  });
  make_up_to(variable.rows());
}

}  // namespace cairn::tools
