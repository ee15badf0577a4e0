#include "core/rows/layout.h"

#include <algorithm>

namespace cairn {
namespace {

void check_positive(std::string_view partitioner, std::string_view option, std::int64_t value) {
  if (value < 1)
    throw InvalidArgumentError(
        str(partitioner, "Partitioner: ", option, " must be at least 1, got ", value));
}

// The size along `axis`, in a shape of which at least that much is known.
std::int64_t size_to_split(std::string_view partitioner, const Shape& shape, int axis) {
  if (axis < 0 || axis >= shape.rank())
    throw InvalidArgumentError(
        str(partitioner, "Partitioner: the shape ", shape.to_string(), " has no axis ", axis,
            " to partition along; make such a variable without a partitioner"));
  if (shape[axis] == Shape::kUnknown)
    throw InvalidArgumentError(str(partitioner, "Partitioner: axis ", axis, " of the shape ",
                                   shape.to_string(), " is not known"));
  return shape[axis];
}

std::int64_t elements_to_split(std::string_view partitioner, const Shape& shape) {
  if (!shape.known())
    throw InvalidArgumentError(
        str(partitioner, "Partitioner: the shape ", shape.to_string(), " is not fully known"));
  return shape.elements();
}

// The reference (TensorFlow's partitioners) charges every string the same.
std::int64_t element_bytes(DType dtype, std::int64_t bytes_per_string) {
  return dtype == DType::kString ? bytes_per_string : static_cast<std::int64_t>(dtype_bytes(dtype));
}

std::vector<std::int64_t> along(int axis, const Shape& shape, std::int64_t parts) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(shape.rank()), 1);
  all[static_cast<std::size_t>(axis)] = parts;
  return all;
}

class Fixed final : public Partitioner {
 public:
  explicit Fixed(std::int64_t shards) : shards_(shards) {
    check_positive("FixedShards", "num_shards", shards);
  }
  // No parts of no rows, as the reference: a strategy refuses that.
  std::vector<std::int64_t> operator()(const Shape& shape, DType, int axis) const override {
    return along(axis, shape, std::min(shards_, size_to_split("FixedShards", shape, axis)));
  }

 private:
  std::int64_t shards_;
};

class MinSize final : public Partitioner {
 public:
  explicit MinSize(MinSizeOptions options) : options_(options) {
    check_positive("MinSize", "min_shard_bytes", options.min_shard_bytes);
    check_positive("MinSize", "max_shards", options.max_shards);
    check_positive("MinSize", "bytes_per_string", options.bytes_per_string);
  }
  // The bytes are divided rounding up, so a part may be smaller than "min": so the reference
  // counts.
  std::vector<std::int64_t> operator()(const Shape& shape, DType dtype, int axis) const override {
    std::int64_t size = size_to_split("MinSize", shape, axis);
    std::int64_t bytes =
        elements_to_split("MinSize", shape) * element_bytes(dtype, options_.bytes_per_string);
    std::int64_t wanted =
        bytes / options_.min_shard_bytes + (bytes % options_.min_shard_bytes != 0);
    return along(axis, shape,
                 std::max<std::int64_t>(1, std::min({size, options_.max_shards, wanted})));
  }

 private:
  MinSizeOptions options_;
};

class MaxSize final : public Partitioner {
 public:
  explicit MaxSize(MaxSizeOptions options) : options_(options) {
    check_positive("MaxSize", "max_shard_bytes", options.max_shard_bytes);
    if (options_.max_shards == 0) options_.max_shards.reset();  // as in the reference: no bound
    if (options_.max_shards) check_positive("MaxSize", "max_shards", *options_.max_shards);
    check_positive("MaxSize", "bytes_per_string", options.bytes_per_string);
  }
  std::vector<std::int64_t> operator()(const Shape& shape, DType dtype, int axis) const override {
    std::int64_t size = size_to_split("MaxSize", shape, axis),
                 elements = elements_to_split("MaxSize", shape);
    if (elements == 0)
      throw InvalidArgumentError(str("MaxSizePartitioner: a variable of shape ", shape.to_string(),
                                     " has nothing to split"));
    std::int64_t slice_bytes = elements / size * element_bytes(dtype, options_.bytes_per_string);
    // A part holds whole slices along the axis, at least one, however large a slice is.
    std::int64_t slices_a_part = std::max<std::int64_t>(1, options_.max_shard_bytes / slice_bytes);
    std::int64_t parts = size / slices_a_part + (size % slices_a_part != 0);
    return along(axis, shape, std::min(parts, options_.max_shards.value_or(parts)));
  }

 private:
  MaxSizeOptions options_;
};

}  // namespace

// The ends decide most cases at once: ascending distinct rows fill a range only if it is as long as
// their number.
std::optional<RowRange> as_range(std::span<const std::int64_t> rows) {
  if (rows.empty() || rows.back() - rows.front() != static_cast<std::int64_t>(rows.size()) - 1)
    return std::nullopt;
  bool counted = true;  // without branches, so that it is done in vectors
  for (std::size_t i = 1; i < rows.size(); ++i) counted &= rows[i] == rows[i - 1] + 1;
  return counted ? std::optional(RowRange{rows.front(), rows.back() + 1}) : std::nullopt;
}

std::shared_ptr<const Partitioner> FixedShardsPartitioner(std::int64_t num_shards) {
  return std::make_shared<Fixed>(num_shards);
}
std::shared_ptr<const Partitioner> MinSizePartitioner(MinSizeOptions options) {
  return std::make_shared<MinSize>(options);
}
std::shared_ptr<const Partitioner> MaxSizePartitioner(MaxSizeOptions options) {
  return std::make_shared<MaxSize>(options);
}

std::vector<RowRange> split_rows(std::int64_t rows, std::int64_t parts) {
  if (rows < 0 || parts < 1)
    throw InvalidArgumentError(str("cannot split ", rows, " rows into ", parts, " parts"));
  parts = std::max<std::int64_t>(1, std::min(parts, rows));
  std::vector<RowRange> ranges;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < parts; ++i) {
    std::int64_t size = rows / parts + (i < rows % parts ? 1 : 0);
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

const VariableLayout* Layout::find(const std::string& name) const {
  for (const auto& variable : variables)
    if (variable.spec && variable.spec->name == name) return &variable;
  return nullptr;
}

bool has_rows_after(const ShardLayout& before, const ShardReplica& next) {
  const auto same = [&next](const ShardReplica& one) {
    return one.ps == next.ps && one.endpoint == next.endpoint && one.process == next.process;
  };
  return same(before.primary) || std::ranges::any_of(before.backups, same);
}

std::vector<ShardLayout> shards_of(ShardReplica first, std::uint32_t count) {
  std::vector<ShardLayout> shards;
  for (; count > 0; --count, ++first.endpoint) shards.push_back({first, {}, 1, first.ps});
  return shards;
}

}  // namespace cairn
