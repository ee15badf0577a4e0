// A merge of sorted streams, one a database. It works by runs, and not by rows: whatever one
// database holds below the next row of all others goes out as one piece. In a full checkpoint each
// database has parts of its own, so that runs are whole blocks, and a delta cuts its base's blocks
// only where it holds rows itself.
#include "storage/merged_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{256} << 10;
constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

}  // namespace

RowFields row_fields(const VariableInfo& variable) {
  const std::int64_t dim = variable.shape.row_elements();
  RowFields form{variable.dtype, {{"", 0, dim}}, dim};
  for (const std::string& slot : variable.slots) {
    const std::int64_t width = slot_width(variable.rule.kind, dim);
    form.fields.push_back({slot, form.elements, width});
    form.elements += width;
  }
  return form;
}

std::int64_t row_count(const VariableInfo& variable) {
  return variable.shape.rank() == 0 ? 1 : variable.shape[0];
}

MergedRows::MergedRows(const std::vector<DatabaseReader*>& databases, VariableInfo variable,
                       RowRange range)
    : variable_(std::move(variable)),
      range_(range),
      form_(row_fields(variable_)),
      superseded_(std::make_unique<const SupersededRows>(databases, variable_.name, range)) {
  for (DatabaseReader* reader : databases) {
    sources_.push_back(
        {reader, RangeRead(*reader, variable_.name, range, superseded_.get(), sources_.size())});
    bool overlap = false;
    for (const TableRecord& table : sources_.back().range.tables()) {
      updates_ = std::max(updates_, table.updates);
      overlap = overlap || table.blocks_overlap;
    }
    if (overlap)
      throw UnimplementedError(str(
          "the blocks of variable \"", variable_.name, "\" in ", reader->file(),
          " overlap: an earlier release saved them in the order in which they were made. Resume "
          "the run and let it save once, and use that checkpoint"));
    load(sources_.back());
  }
}

// A block that was saved before the variable had its rule gets the slots' initial values.
void MergedRows::fit(Source& source) {
  StoredRows& block = source.block;
  if (block.dtype == form_.dtype && block.row_bytes() == form_.bytes()) return;
  const std::size_t own = static_cast<std::size_t>(block.dim) * dtype_bytes(block.dtype);
  const bool plain = block.slots == 0 && block.dtype == DType::kFloat32 &&
                     form_.dtype == block.dtype && block.dim == form_.fields[0].width;
  if (!plain)
    throw DataLossError(str(source.reader->file(), ": a block of variable \"", variable_.name,
                            "\" at row ", block.first_row, " holds rows of ", block.row_bytes(),
                            " bytes of ", dtype_name(block.dtype), ", the manifest says ",
                            form_.bytes(), " of ", dtype_name(form_.dtype)));
  std::vector<float> slots;
  for (const SlotSpec& slot : rule_slots(variable_.rule))
    slots.insert(
        slots.end(),
        static_cast<std::size_t>(slot_width(variable_.rule.kind, variable_.shape.row_elements())),
        slot.initial_value);
  std::vector<std::byte> data(form_.bytes() * block.offsets.size());
  for (std::size_t i = 0; i < block.offsets.size(); ++i) {
    std::byte* row = data.data() + i * form_.bytes();
    std::memcpy(row, block.data.data() + i * own, own);
    std::memcpy(row + own, slots.data(), form_.bytes() - own);
  }
  block.data = std::move(data);
  block.slots = static_cast<std::uint32_t>(variable_.slots.size());
  block.rule = variable_.rule.kind;
}

// Moves on to the next block that has rows of the range. The first one may begin before it.
void MergedRows::load(Source& source) {
  while (source.range.next(source.block)) {
    fit(source);
    if (source.block.first_row <= source.last)
      throw DataLossError(str(source.reader->file(), ": the block of variable \"", variable_.name,
                              "\" at row ", source.block.first_row,
                              " begins before the end of the one before it"));
    source.at = 0;
    source.row = source.block.first_row;
    source.last = source.block.first_row + static_cast<std::int64_t>(source.block.offsets.back());
    if (source.row < range_.begin)
      advance(source, run_length(source, range_.begin, source.block.offsets.size()));
    if (source.done || source.row >= range_.end) break;
    return;
  }
  source.done = true;
}

void MergedRows::advance(Source& source, std::size_t rows) {
  source.at += rows;
  if (source.at == source.block.offsets.size()) return load(source);
  source.row = source.block.first_row + static_cast<std::int64_t>(source.block.offsets[source.at]);
  if (source.row >= range_.end) source.done = true;
}

// How many of the source's next rows, `most` at most, are below `bound`.
std::size_t MergedRows::run_length(const Source& source, std::int64_t bound,
                                   std::size_t most) const {
  const auto begin = source.block.offsets.begin() + static_cast<std::ptrdiff_t>(source.at);
  const auto left = static_cast<std::size_t>(source.block.offsets.end() - begin);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(most, left));
  if (bound <= source.block.first_row) return 0;
  const auto offset = static_cast<std::uint64_t>(bound - source.block.first_row);
  if (*(end - 1) < offset) return static_cast<std::size_t>(end - begin);
  return static_cast<std::size_t>(std::lower_bound(begin, end, offset) - begin);
}

void MergedRows::take(Source& source, std::size_t rows, RowBatch& out) {
  const std::size_t first = out.rows.size();
  out.rows.resize(first + rows);
  for (std::size_t i = 0; i < rows; ++i)
    out.rows[first + i] =
        source.block.first_row + static_cast<std::int64_t>(source.block.offsets[source.at + i]);
  const std::byte* from = source.block.data.data() + source.at * form_.bytes();
  out.data.insert(out.data.end(), from, from + rows * form_.bytes());
}

bool MergedRows::next(RowBatch& out) {
  out.clear();
  const std::size_t most = kBatchBytes / std::max<std::size_t>(form_.bytes(), 1) + 1;
  out.data.reserve(kBatchBytes + form_.bytes());
  while (out.rows.size() < most) {
    Source* lowest = nullptr;
    std::int64_t bound = range_.end;
    for (Source& source : sources_) {
      if (source.done) continue;
      // Among equal rows the later database's counts.
      if (lowest == nullptr || source.row <= lowest->row) {
        if (lowest != nullptr) bound = std::min(bound, lowest->row);
        lowest = &source;
      } else {
        bound = std::min(bound, source.row);
      }
    }
    if (lowest == nullptr) break;
    const std::int64_t row = lowest->row;
    for (Source& source : sources_)
      if (&source != lowest && !source.done && source.row == row) advance(source, 1);
    // Where another database held the row too, its next one may be the very next.
    const std::size_t rows = bound <= row ? 1 : run_length(*lowest, bound, most - out.rows.size());
    take(*lowest, rows, out);
    advance(*lowest, rows);
  }
  return !out.rows.empty();
}

}  // namespace cairn::storage
