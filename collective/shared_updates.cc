#include "collective/shared_updates.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace cairn {
namespace {

// ---- which updates ----

// What the members must agree on: two numbers for each update.
constexpr std::size_t kNumbers = 2;

Tensor header_of(std::span<const Update> updates) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(updates.size() * kNumbers);
  for (const Update& update : updates) {
    numbers.push_back(update.variable);
    numbers.push_back(static_cast<std::int64_t>(update.shares));
  }
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

// The updates of one variable, in order: what each of them shares, and where it stands.
struct OfVariable {
  std::vector<std::int64_t> shares;
  std::vector<std::size_t> places;
};
std::map<std::int64_t, OfVariable> by_variable(const Tensor& header) {
  std::map<std::int64_t, OfVariable> all;
  const auto numbers = header.values<std::int64_t>();
  for (std::size_t i = 0; i < numbers.size(); i += kNumbers) {
    OfVariable& one = all[numbers[i]];
    one.shares.push_back(numbers[i + 1]);
    one.places.push_back(i / kNumbers);
  }
  return all;
}

bool same_numbers(const Tensor& a, const Tensor& b) {
  const auto x = a.values<std::int64_t>(), y = b.values<std::int64_t>();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

// ---- what they come to ----

template <typename T>
void add(const std::byte* from, std::byte* to, std::int64_t n) {
  const T* x = reinterpret_cast<const T*>(from);
  T* sum = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

// Unsigned, since overflow is defined there: integer sums wrap around.
void add(DType dtype, const std::byte* from, std::byte* to, std::int64_t n) {
  switch (dtype) {
    case DType::kFloat32: return add<float>(from, to, n);
    case DType::kInt32: return add<std::uint32_t>(from, to, n);
    case DType::kInt64: return add<std::uint64_t>(from, to, n);
    default:
      throw UnimplementedError(str("replicas' values of ", dtype_name(dtype),
                                   " have no sum; aggregate them by ", "ONLY_FIRST_REPLICA"));
  }
}

void divide(Tensor& sum, int by) {
  if (sum.dtype() != DType::kFloat32)
    throw InvalidArgumentError(
        str("replicas' values of ", dtype_name(sum.dtype()), " have no mean, which is of floats"));
  for (float& x : sum.mutable_values<float>()) x /= static_cast<float>(by);
}

bool all_equal(const std::vector<Tensor>& values) {
  return std::all_of(values.begin() + 1, values.end(), [&](const Tensor& each) {
    return std::memcmp(each.raw(), values[0].raw(), values[0].bytes()) == 0;
  });
}

void require_one_type(const std::vector<Tensor>& values, const TensorType& wanted) {
  for (std::size_t r = 0; r < values.size(); ++r)
    if (values[r].type() != wanted)
      throw InvalidArgumentError(str("replica ", r, " has a share of ",
                                     values[r].type().to_string(), ", another one of ",
                                     wanted.to_string(), "; all must have one type"));
}

// The mean of equal values is that value, whatever a sum of them would be rounded to.
Tensor combined_dense(const std::vector<Tensor>& values, Aggregation how) {
  require_one_type(values, values[0].type());
  if (how == Aggregation::kMean && all_equal(values)) return values[0];
  Tensor sum = values[0].clone();
  for (std::size_t r = 1; r < values.size(); ++r)
    add(sum.dtype(), values[r].raw(), sum.mutable_raw(), sum.elements());
  if (how == Aggregation::kMean) divide(sum, static_cast<int>(values.size()));
  return sum;
}

struct Rows {
  Tensor ids, values;
};

// Each member's ids ascend and are distinct, so one walk over all lists side by side finds the
// members that have the lowest id; their rows are added by rank.
Rows combined_rows(const std::vector<Tensor>& ids, const std::vector<Tensor>& rows,
                   Aggregation how) {
  const Shape& shape = rows[0].shape();
  std::int64_t total = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    require_one_type({rows[r]}, {rows[0].dtype(), shape.with_dim(0, ids[r].shape()[0])});
    total += ids[r].shape()[0];
  }
  Tensor all_ids(DType::kInt64, {total}), all_rows(rows[0].dtype(), shape.with_dim(0, total));
  const std::int64_t dim = shape.row_elements();
  const std::size_t row_bytes = static_cast<std::size_t>(dim) * dtype_bytes(rows[0].dtype());
  std::vector<std::size_t> next(ids.size(), 0);
  const auto to_ids = all_ids.mutable_values<std::int64_t>();
  std::int64_t count = 0;
  for (;; ++count) {
    bool more = false;
    std::int64_t lowest = 0;
    for (std::size_t r = 0; r < ids.size(); ++r) {
      const auto list = ids[r].values<std::int64_t>();
      if (next[r] == list.size()) continue;
      lowest = more ? std::min(lowest, list[next[r]]) : list[next[r]];
      more = true;
    }
    if (!more) break;
    to_ids[static_cast<std::size_t>(count)] = lowest;
    std::byte* const to = all_rows.mutable_raw() + static_cast<std::size_t>(count) * row_bytes;
    bool first = true;
    for (std::size_t r = 0; r < ids.size(); ++r) {
      const auto list = ids[r].values<std::int64_t>();
      if (next[r] == list.size() || list[next[r]] != lowest) continue;
      const std::byte* const from = rows[r].raw() + next[r]++ * row_bytes;
      if (first)
        std::memcpy(to, from, row_bytes);
      else
        add(rows[r].dtype(), from, to, dim);
      first = false;
    }
  }
  Rows combined{all_ids.rows(0, count), all_rows.rows(0, count)};
  if (how == Aggregation::kMean) divide(combined.values, static_cast<int>(ids.size()));
  return combined;
}

}  // namespace

// Members leave updates out only where a check failed, so the lists are nearly always equal. Where
// they are not, a variable whose updates are not the same everywhere is left out altogether.
std::vector<std::size_t> SharedUpdates::agreed(const std::vector<Tensor>& headers) const {
  std::vector<std::map<std::int64_t, OfVariable>> all;
  for (const Tensor& header : headers) all.push_back(by_variable(header));
  const auto& own = all[static_cast<std::size_t>(group_.rank())];
  std::vector<std::pair<std::size_t, std::size_t>> places;  // of member 0, of this one
  for (const auto& [variable, first] : all[0]) {
    const bool everywhere = std::all_of(all.begin(), all.end(), [&, v = variable](const auto& of) {
      auto found = of.find(v);
      return found != of.end() && found->second.shares == all[0].at(v).shares;
    });
    if (!everywhere) continue;
    for (std::size_t i = 0; i < first.places.size(); ++i)
      places.emplace_back(first.places[i], own.at(variable).places[i]);
  }
  std::sort(places.begin(), places.end());
  std::vector<std::size_t> indices;
  for (const auto& [of_first, of_this] : places) indices.push_back(of_this);
  return indices;
}

// Member 0's share alone needs no gathering.
Update SharedUpdates::combined(const Update& own, Role role) {
  Update made = own;
  made.shares = Aggregation::kNone;
  const bool sparse = own.ids.defined();
  if (own.shares == Aggregation::kOnlyFirstReplica) {
    if (sparse) made.ids = group_.broadcast(own.ids, 0);
    made.value = group_.broadcast(own.value, 0);
    return made;
  }
  std::vector<Tensor> ids;
  if (sparse) ids = group_.all_gather(own.ids);
  const std::vector<Tensor> values = group_.all_gather(own.value);
  if (role == Role::kTakesPart) return made;
  if (!sparse) {
    made.value = combined_dense(values, own.shares);
    return made;
  }
  Rows rows = combined_rows(ids, values, own.shares);
  made.ids = std::move(rows.ids);
  made.value = std::move(rows.values);
  return made;
}

std::span<Update> SharedUpdates::merged(std::span<Update> own, Role role) {
  merged_.clear();
  shared_ = false;
  const std::vector<Tensor> headers = group_.all_gather(header_of(own));
  const bool same = std::all_of(headers.begin(), headers.end(),
                                [&](const Tensor& each) { return same_numbers(each, headers[0]); });
  std::vector<std::size_t> indices;
  if (!same) indices = agreed(headers);
  const std::size_t count = same ? own.size() : indices.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Update& one = own[same ? i : indices[i]];
    const bool shares = one.shares != Aggregation::kNone;
    shared_ = shared_ || shares;
    Update update = shares ? combined(one, role) : one;
    if (role == Role::kApplies) merged_.push_back(std::move(update));
  }
  return merged_;
}

}  // namespace cairn
