#include "worker/rows/variable_copy.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/bfloat16.h"

namespace cairn::worker {
namespace {

// The rows come from the shards, so the initial values are left out: to draw them would take longer
// than to receive the rows, and a layout does not have those that a program gave.
std::shared_ptr<const VariableSpec> without_initial_values(const VariableSpec& spec) {
  VariableSpec plain = spec;
  plain.initializer = Initializer::zeros();
  return std::make_shared<const VariableSpec>(std::move(plain));
}

// Fills `local` with the ids in the part's rows, relative to its first row; returns their count.
std::size_t take_ids(std::span<const std::int64_t> ids, RowRange rows,
                     std::vector<std::int64_t>& local) {
  const auto end = std::lower_bound(ids.begin(), ids.end(), rows.end);
  local.resize(static_cast<std::size_t>(end - ids.begin()));
  std::transform(ids.begin(), end, local.begin(), [&](std::int64_t id) { return id - rows.begin; });
  return local.size();
}

// Words of eight bytes, and of what is left over the bytes and their number. Not against an
// adversary: it finds copies that have drifted apart.
std::uint64_t hash_bytes(std::uint64_t hash, const std::byte* bytes, std::size_t size) {
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  };
  std::uint64_t word = 0;
  for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
    std::memcpy(&word, bytes, sizeof word);
    mix(word);
  }
  word = size;
  for (std::size_t i = 0; i < size; ++i)
    word = word << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  mix(word);
  return hash;
}

}  // namespace

VariableCopy::VariableCopy(const VariableLayout& layout)
    : spec_(without_initial_values(*layout.spec)) {
  verify_whole_read(*spec_);
  CAIRN_CHECK(!layout.parts.empty(), "variable \"", spec_->name, "\" has no parts");
  parts_.reserve(layout.parts.size());
  for (const Part& part : layout.parts) parts_.emplace_back(spec_, layout.rule, part.rows, 0);
}

std::size_t VariableCopy::saved_row_bytes() const {
  return parts_.front().layout().saved_row_bytes();
}

void VariableCopy::put(std::uint32_t part, std::int64_t begin, std::span<const std::byte> rows) {
  RowMemory& to = parts_[part];
  const std::size_t bytes = saved_row_bytes();
  for (std::size_t at = 0; at < rows.size(); at += bytes, ++begin)
    to.restore(begin, rows.data() + at, to.layout().slots);
}

void VariableCopy::verify_ids(const Tensor& ids) const {
  if (ids.dtype() != DType::kInt64 || ids.shape().rank() != 1)
    throw InvalidArgumentError(str("row ids of variable \"", spec_->name,
                                   "\" must be int64 of rank 1, got ", ids.type().to_string()));
  std::int64_t last = -1;
  for (const std::int64_t id : ids.values<std::int64_t>()) {
    if (id <= last || id >= spec_->rows())
      throw InvalidArgumentError(str("row id ", id, " after ", last, " of variable \"", spec_->name,
                                     "\": ids ascend, each once, within its rows 0 to ",
                                     spec_->rows() - 1));
    last = id;
  }
}

Tensor VariableCopy::read(const Tensor& ids) {
  if (ids.defined()) verify_ids(ids);
  Tensor value(spec_->dtype, value_shape(*spec_, ids));
  std::byte* out = value.mutable_raw();
  std::span<const std::int64_t> rest;
  if (ids.defined()) rest = ids.values<std::int64_t>();
  std::vector<std::int64_t> local;
  for (RowMemory& part : parts_) {
    std::size_t count = static_cast<std::size_t>(part.rows());
    if (!ids.defined()) {
      part.read_all(out);
    } else {
      count = take_ids(rest, part.range(), local);
      part.read(part.find(local), out);
      rest = rest.subspan(count);
    }
    out += count * part.layout().row_bytes();
  }
  return value;
}

void VariableCopy::verify(const Update& update) const {
  const bool sparse = update.ids.defined(), optimizer = !is_assignment(update.rule.kind);
  verify_rule(update.rule);
  verify_learning_rate(update.rule, update.learning_rate);
  verify_update(*spec_, update.rule, sparse);
  if (sparse) verify_ids(update.ids);
  const TensorType wanted{spec_->dtype, value_shape(*spec_, update.ids)};
  if (!update.value.defined() || update.value.type() != wanted)
    throw InvalidArgumentError(str("an update of variable \"", spec_->name, "\" wants ",
                                   wanted.to_string(), ", got ", update.value.type().to_string()));
  if ((optimizer && spec_->dtype != DType::kFloat32) || dtype_bytes(spec_->dtype) == 2)
    throw InvalidArgumentError(str("variable \"", spec_->name, "\" is ", dtype_name(spec_->dtype),
                                   ": ", rule_name(update.rule), " cannot update it"));
  if (is_kept(update.rule) && !same_slots(update.rule, rule()))
    throw FailedPreconditionError(str("variable \"", spec_->name, "\" is updated by ",
                                      rule_name(update.rule), ", but its copy has the slots of ",
                                      rule_name(rule())));
}

void VariableCopy::apply(const Update& update, RowEncoding encoding) {
  const std::byte* values = update.value.raw();
  if (encoding == RowEncoding::kBfloat16 && spec_->dtype == DType::kFloat32) {
    const auto count = static_cast<std::size_t>(update.value.shape().elements());
    rounded_.resize(std::max(rounded_.size(), count));
    round_to_bfloat16(reinterpret_cast<const float*>(values), count, rounded_.data());
    values = reinterpret_cast<const std::byte*>(rounded_.data());
  }
  const bool whole = !update.ids.defined();
  std::span<const std::int64_t> rest;
  if (!whole) rest = update.ids.values<std::int64_t>();
  std::vector<std::int64_t> local;
  for (RowMemory& part : parts_) {
    const std::size_t count =
        whole ? static_cast<std::size_t>(part.rows()) : take_ids(rest, part.range(), local);
    if (!whole) rest = rest.subspan(count);
    // A part that no row of the update lies in hears of it, and counts it, as its shard would.
    if (count == 0 && !reaches_every_part(update.rule.kind)) continue;
    if (whole)
      part.update_all(update.rule, update.learning_rate, values);
    else
      part.update(update.rule, update.learning_rate, part.find(local), values);
    values += count * part.layout().row_bytes();
  }
}

std::uint64_t VariableCopy::fingerprint(std::uint64_t hash) const {
  constexpr std::size_t kBlockBytes = 64 << 10;
  const std::size_t row_bytes = std::max<std::size_t>(saved_row_bytes(), 1);
  const auto block = static_cast<std::int64_t>(std::max<std::size_t>(kBlockBytes / row_bytes, 1));
  std::vector<std::byte> saved(static_cast<std::size_t>(block) * row_bytes);
  for (const RowMemory& part : parts_)
    for (RowRange rows{0, 0}; rows.begin < part.rows(); rows.begin = rows.end) {
      rows.end = std::min(rows.begin + block, part.rows());
      part.save(rows, saved.data());
      // Row by row, so that the number does not depend on where the parts begin.
      for (std::int64_t i = 0; i < rows.size(); ++i)
        hash = hash_bytes(hash, saved.data() + static_cast<std::size_t>(i) * row_bytes, row_bytes);
    }
  return hash;
}

}  // namespace cairn::worker
