#include "arrow_columns.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/tensor/element.h"

namespace cairn::python {
namespace {

// One column: its pieces, batch by batch.
struct Column {
  std::string name;
  ArrowType type;
  std::vector<ArrowSlice> pieces;
  std::int64_t rows = 0;
  const NullValue* null_value = nullptr;
  bool nulls_are_missing = false;
  const SharedReference* owner = nullptr;

  bool has_null_value() const {
    return null_value != nullptr && !std::holds_alternative<std::monostate>(*null_value);
  }
  // An empty list stands for lists alone, and for no single value.
  Tensor standing_in() const {
    if (!has_null_value() || std::holds_alternative<EmptyList>(*null_value)) return {};
    return null_tensor(name, type.dtype, *null_value);
  }
};

// Values as they are read, one piece behind the other.
class Values {
 public:
  Values(const Column& column, Shape shape) : column_(column), dtype_(column.type.dtype) {
    if (dtype_ == DType::kString) {
      texts_.resize(static_cast<std::size_t>(shape.elements()));
    } else {
      numbers_ = Tensor(dtype_, shape);
    }
    shape_ = std::move(shape);
    standing_in_ = column.standing_in();
  }
  void read(const ArrowSlice& slice) {
    const ArrowTarget begin{dtype_, numbers_.defined() ? numbers_.mutable_raw() : nullptr,
                            texts_.data()};
    read_arrow_values(slice, begin.from(place_), standing_in_, column_.name);
    place_ += slice.length;
  }
  // Writes what stands for nulls over the last so many values.
  void stand_in(std::int64_t begin, std::int64_t end) {
    const std::size_t bytes = dtype_bytes(dtype_);
    for (std::int64_t i = begin; i < end; ++i) {
      if (dtype_ == DType::kString)
        texts_[static_cast<std::size_t>(i)] = standing_in_.string_values()[0];
      else
        std::memcpy(numbers_.mutable_raw() + static_cast<std::size_t>(i) * bytes,
                    standing_in_.raw(), bytes);
    }
  }
  std::int64_t place() const { return place_; }
  const Tensor& standing_in() const { return standing_in_; }
  Tensor finish() {
    if (dtype_ == DType::kString) return Tensor::strings(shape_, std::move(texts_));
    return numbers_;
  }

 private:
  const Column& column_;
  DType dtype_;
  Shape shape_;
  Tensor numbers_;
  std::vector<std::string> texts_;
  Tensor standing_in_;
  std::int64_t place_ = 0;
};

// The slice's own memory, where it lies as Cairn wants it; undefined: it does not.
Tensor shared(const Column& column, const ArrowSlice& slice, Shape shape) {
  if (!column.type.as_it_lies || slice.length == 0 || slice.schema->dictionary != nullptr ||
      slice.first_null() >= 0)
    return {};
  const std::byte* at =
      slice.buffer(1) + static_cast<std::size_t>(slice.offset) * dtype_bytes(column.type.dtype);
  if (reinterpret_cast<std::uintptr_t>(at) % 8 != 0) return {};
  return Tensor::borrowed(column.type.dtype, std::move(shape), at, *column.owner);
}

Tensor read_flat(const Column& column) {
  const Shape shape{column.rows};
  if (column.pieces.size() == 1)
    if (Tensor same = shared(column, column.pieces[0], shape); same.defined()) return same;
  Values values(column, shape);
  for (const ArrowSlice& piece : column.pieces) {
    try {
      values.read(piece);
    } catch (const ArrowNull& null) {
      refuse_null(column.name, values.place() + null.place);
    }
  }
  return values.finish();
}

// float64, with NaN in the place of nulls: of whole numbers, which have no value for them.
Tensor with_missing(const Column& column) {
  const Tensor whole = read_flat(column);
  Tensor wide(DType::kFloat64, whole.shape());
  const auto copy = [&]<typename T>(std::span<const T> from) {
    std::ranges::copy(from, wide.mutable_values<double>().begin());
  };
  switch (whole.dtype()) {
    case DType::kInt32: copy(whole.values<std::int32_t>()); break;
    case DType::kInt64: copy(whole.values<std::int64_t>()); break;
    case DType::kUint8: copy(whole.values<std::uint8_t>()); break;
    default: copy(whole.values<bool>()); break;
  }
  std::int64_t place = 0;
  for (const ArrowSlice& piece : column.pieces) {
    const std::int64_t null = piece.first_null();
    for (std::int64_t i = null; null >= 0 && i < piece.length; ++i)
      if (piece.is_null(i))
        wide.mutable_values<double>()[static_cast<std::size_t>(place + i)] =
            std::numeric_limits<double>::quiet_NaN();
    place += piece.length;
  }
  return wide;
}

// The value that stands for nulls where they are missing values.
NullValue missing_value(const ArrowType& type) {
  if (type.lists != ArrowType::Lists::kNone) return EmptyList{};
  switch (type.dtype) {
    case DType::kString: return std::string();
    case DType::kBool: return false;
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64: return std::numeric_limits<double>::quiet_NaN();
    default: return std::int64_t{0};
  }
}

Tensor read_fixed(const Column& column) {
  const std::int64_t width = column.type.width;
  const Shape shape{column.rows, width};
  if (column.rows > INT64_MAX / 64 / width)
    throw InvalidArgumentError(str("column \"", column.name, "\" has too many values"));
  if (column.pieces.size() == 1 && column.pieces[0].first_null() < 0) {
    const ArrowSlice& piece = column.pieces[0];
    const ArrowSlice all = piece.child(0, piece.offset * width, piece.length * width);
    if (Tensor same = shared(column, all, shape); same.defined()) return same;
  }
  Values values(column, shape);
  for (const ArrowSlice& piece : column.pieces) {
    const std::int64_t begin = values.place(), null = piece.first_null();
    if (null >= 0 && !values.standing_in().defined())
      refuse_null(column.name, begin / width + null);
    try {
      values.read(piece.child(0, piece.offset * width, piece.length * width));
    } catch (const ArrowNull& none) {
      refuse_null(column.name, (begin + none.place) / width);
    }
    for (std::int64_t i = std::max<std::int64_t>(null, 0); null >= 0 && i < piece.length; ++i)
      if (piece.is_null(i)) values.stand_in(begin + i * width, begin + (i + 1) * width);
  }
  return values.finish();
}

// ---- lists of any length ----

// Where the values of a ragged column are: runs without gaps, in order.
struct Runs {
  Tensor splits;
  std::vector<ArrowSlice> slices;
};

template <typename Offset>
void find_runs(const Column& column, const ArrowSlice& piece, std::int64_t& row,
               std::int64_t& total, Runs& runs) {
  if (piece.length == 0) return;
  const auto offsets = piece.numbers<Offset>(1);
  const std::span<std::int64_t> splits = runs.splits.mutable_values<std::int64_t>();
  const bool nulls = piece.first_null() >= 0;
  std::int64_t begin = offsets[0], end = begin;  // of the run
  const auto close = [&] {
    if (end > begin) runs.slices.push_back(piece.child(0, begin, end - begin));
  };
  for (std::int64_t i = 0; i < piece.length; ++i) {
    const std::int64_t from = offsets[i], to = offsets[i + 1];
    if (from < 0 || to < from)
      throw InvalidArgumentError(
          str("the Arrow stream of this table is damaged: the places of "
              "the lists of column \"",
              column.name, "\" do not ascend"));
    if (nulls && piece.is_null(i)) {
      if (!column.has_null_value()) refuse_null(column.name, row);
      close();
      begin = end = to;
    } else {
      total += to - from;
      end = to;
    }
    splits[static_cast<std::size_t>(++row)] = total;
  }
  close();
}

Runs runs_of(const Column& column) {
  Runs runs{Tensor(DType::kInt64, {column.rows + 1}), {}};
  runs.splits.mutable_values<std::int64_t>()[0] = 0;
  std::int64_t row = 0, total = 0;
  for (const ArrowSlice& piece : column.pieces) {
    if (column.type.wide_offsets)
      find_runs<std::int64_t>(column, piece, row, total, runs);
    else
      find_runs<std::int32_t>(column, piece, row, total, runs);
  }
  return runs;
}

std::int64_t row_of(const Tensor& splits, std::int64_t value) {
  const auto all = splits.values<std::int64_t>();
  return std::upper_bound(all.begin(), all.end(), value) - all.begin() - 1;
}

void read_ragged(const Column& column, Columns& out) {
  const Runs runs = runs_of(column);
  const Shape shape{runs.splits.values<std::int64_t>().back()};
  Tensor read;
  if (runs.slices.size() == 1) read = shared(column, runs.slices[0], shape);
  if (!read.defined()) {
    Values values(column, shape);
    for (const ArrowSlice& slice : runs.slices) {
      try {
        values.read(slice);
      } catch (const ArrowNull& null) {
        refuse_null(column.name, row_of(runs.splits, values.place() + null.place));
      }
    }
    read = values.finish();
  }
  out.emplace_back(column.name, read);
  out.emplace_back(column.name + "/row_splits", runs.splits);
}

void read_column(const Column& column, Columns& out) {
  if (column.type.lists == ArrowType::Lists::kRagged) return read_ragged(column, out);
  const bool whole = column.nulls_are_missing && column.type.lists == ArrowType::Lists::kNone &&
                     !std::holds_alternative<std::string>(*column.null_value) &&
                     !std::holds_alternative<double>(*column.null_value);
  const auto has_null = [](const ArrowSlice& piece) { return piece.first_null() >= 0; };
  if (whole && std::ranges::any_of(column.pieces, has_null)) {
    out.emplace_back(column.name, with_missing(column));
    return;
  }
  out.emplace_back(column.name, column.type.lists == ArrowType::Lists::kFixed ? read_fixed(column)
                                                                              : read_flat(column));
}

const NullValue* null_value_of(const NullValues& all, const std::string& column) {
  for (const auto& [name, value] : all)
    if (name == column) return &value;
  return nullptr;
}

std::vector<std::string> names_of(const ArrowSchema& schema) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < schema.n_children; ++i)
    names.emplace_back(schema.children[i]->name != nullptr ? schema.children[i]->name : "");
  return names;
}

Column column_of(const ArrowBatches& batches, std::int64_t child) {
  Column column;
  for (const Arrow<ArrowArray>& array : batches.arrays) {
    const ArrowSlice whole{&*batches.schema, &*array, array->offset, array->length};
    if (child < 0) {
      column.pieces.push_back(whole);
      continue;
    }
    if (whole.first_null() >= 0)
      throw InvalidArgumentError("a row of this table is null as a whole: leave such rows out");
    column.pieces.push_back(whole.child(child, whole.offset, whole.length));
  }
  column.rows = batches.rows;
  return column;
}

}  // namespace

Columns columns_of_arrow(const ArrowBatches& batches, const SharedReference& owner,
                         const TableOptions& options, const std::string& name, TableFacts* facts) {
  const ArrowSchema& schema = *batches.schema;
  const bool table = name.empty();
  if (table && (schema.format != std::string_view("+s") || schema.dictionary != nullptr))
    throw InvalidArgumentError(
        "an Arrow stream of a single column is no table: pass the frame that it belongs to");
  const std::vector<std::string> names = table ? names_of(schema) : std::vector{name};
  const std::vector<std::string> wanted = table ? chosen_columns(names, options, facts) : names;
  Columns made;
  for (const std::string& each : wanted) {
    const std::int64_t child = table ? std::ranges::find(names, each) - names.begin() : -1;
    Column column = column_of(batches, child);
    column.name = each;
    column.type = arrow_type_of(table ? *schema.children[child] : schema, each);
    column.null_value = null_value_of(options.defaults, each);
    const NullValue missing = missing_value(column.type);
    if (options.nulls_are_missing && column.null_value == nullptr && each != options.complete) {
      column.null_value = &missing;
      column.nulls_are_missing = true;
    }
    column.owner = &owner;
    if (facts != nullptr && table && schema.children[child]->dictionary != nullptr)
      facts->categories.push_back(each);
    read_column(column, made);
  }
  return made;
}

}  // namespace cairn::python
