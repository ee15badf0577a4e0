#include "collective/local/shared_updates.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

namespace cairn {
namespace {

// ---- what the members tell one another first ----

// A dense share of at most so many bytes travels there too: counters and metrics need no exchange
// of their own.
constexpr std::size_t kInlineBytesMax = 16;

bool is_inline(const Update& update) {
  return update.shares != Aggregation::kNone && !update.ids.defined() &&
         update.value.dtype() != DType::kString && update.value.bytes() <= kInlineBytesMax;
}

// For each update: the variable, what it shares, and how many of the numbers that follow hold its
// value.
Tensor header_of(std::span<const Update> updates) {
  std::vector<std::int64_t> numbers;
  for (const Update& update : updates) {
    const std::size_t words =
        is_inline(update) ? (update.value.bytes() + sizeof(std::int64_t) - 1) / sizeof(std::int64_t)
                          : 0;
    numbers.push_back(update.variable);
    numbers.push_back(static_cast<std::int64_t>(update.shares));
    numbers.push_back(static_cast<std::int64_t>(words));
    numbers.resize(numbers.size() + words);
    if (words > 0)
      std::memcpy(numbers.data() + numbers.size() - words, update.value.raw(),
                  update.value.bytes());
  }
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

// A header comes from another process, so that the lengths in it are held against its size.
std::vector<SharedUpdates::Told> told_by(const Tensor& header) {
  std::vector<SharedUpdates::Told> all;
  const auto numbers = header.values<std::int64_t>();
  for (std::size_t i = 0; i < numbers.size();) {
    const std::size_t left = numbers.size() - i;
    const auto words = left < 3 ? left : static_cast<std::size_t>(numbers[i + 2]);
    if (left < 3 || words > left - 3)
      throw InvalidArgumentError(
          str("a replica's list of updates ends within number ", all.size()));
    all.push_back({numbers[i], numbers[i + 1], numbers.subspan(i + 3, words)});
    i += 3 + words;
  }
  return all;
}

bool same_update(const SharedUpdates::Told& a, const SharedUpdates::Told& b) {
  return a.variable == b.variable && a.shares == b.shares;
}

// The updates of one variable, in order: what each of them shares, and where it stands. A variable
// is the unit that is left out: half of its updates would be a value that no program asked for.
struct OfVariable {
  std::vector<std::int64_t> shares;
  std::vector<std::size_t> places;
};
std::map<std::int64_t, OfVariable> by_variable(const std::vector<SharedUpdates::Told>& told) {
  std::map<std::int64_t, OfVariable> all;
  for (std::size_t i = 0; i < told.size(); ++i) {
    OfVariable& one = all[told[i].variable];
    one.shares.push_back(told[i].shares);
    one.places.push_back(i);
  }
  return all;
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

// One row into another of the same id, as one replica's rows of equal ids are combined
// (equal_ids()).
template <typename T, typename Unsigned = T>
void fold(EqualIds how, const std::byte* from, std::byte* to, std::int64_t n) {
  const T* x = reinterpret_cast<const T*>(from);
  T* row = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i)
    if (how == EqualIds::kProduct)
      row[i] = static_cast<T>(static_cast<Unsigned>(row[i]) * static_cast<Unsigned>(x[i]));
    else
      row[i] = (how == EqualIds::kMin) == (x[i] < row[i]) ? x[i] : row[i];
}
void fold(EqualIds how, DType dtype, const std::byte* from, std::byte* to, std::int64_t n) {
  if (how == EqualIds::kSum || how == EqualIds::kLast) return add(dtype, from, to, n);
  switch (dtype) {
    case DType::kFloat32: return fold<float>(how, from, to, n);
    case DType::kInt32: return fold<std::int32_t, std::uint32_t>(how, from, to, n);
    case DType::kInt64: return fold<std::int64_t, std::uint64_t>(how, from, to, n);
    default:
      throw UnimplementedError(str("replicas' rows of ", dtype_name(dtype),
                                   " cannot be combined; aggregate them by ONLY_FIRST_REPLICA"));
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
Rows combined_rows(const std::vector<Tensor>& ids, const std::vector<Tensor>& rows, EqualIds how) {
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
        fold(how, rows[r].dtype(), from, to, dim);
      first = false;
    }
  }
  return {all_ids.rows(0, count), all_rows.rows(0, count)};
}

// A mean of rows is the sum of all replicas' rows by their number. Factors are divided before they
// are multiplied, as in the reference.
Rows combined_rows(const std::vector<Tensor>& ids, std::vector<Tensor> rows, const Update& own) {
  const EqualIds how = equal_ids(own.rule.kind);
  const bool mean = own.shares == Aggregation::kMean;
  const int members = static_cast<int>(ids.size());
  if (mean && how == EqualIds::kProduct)
    for (Tensor& each : rows) {
      each = each.clone();
      divide(each, members);
    }
  Rows combined = combined_rows(ids, rows, how);
  if (mean && how == EqualIds::kSum) divide(combined.values, members);
  return combined;
}

}  // namespace

// Members leave updates out only where a check failed, so the lists are nearly always equal. Where
// they are not, a variable whose updates are not the same everywhere is left out altogether.
std::vector<SharedUpdates::Places> SharedUpdates::agreed() const {
  const bool same = std::all_of(told_.begin(), told_.end(), [&](const auto& each) {
    return std::ranges::equal(each, told_[0], same_update);
  });
  std::vector<Places> places;
  if (same) {
    for (std::size_t i = 0; i < told_[0].size(); ++i) places.emplace_back(told_.size(), i);
    return places;
  }
  std::vector<std::map<std::int64_t, OfVariable>> all;
  for (const auto& each : told_) all.push_back(by_variable(each));
  for (const auto& [variable, first] : all[0]) {
    const bool everywhere = std::all_of(all.begin(), all.end(), [&, v = variable](const auto& of) {
      auto found = of.find(v);
      return found != of.end() && found->second.shares == all[0].at(v).shares;
    });
    if (!everywhere) continue;
    for (std::size_t i = 0; i < first.places.size(); ++i) {
      Places& of_update = places.emplace_back();
      for (const auto& of_member : all) of_update.push_back(of_member.at(variable).places[i]);
    }
  }
  std::sort(places.begin(), places.end());  // in member 0's order
  return places;
}

// The members' headers hold the values already.
Update SharedUpdates::combined_inline(const Update& own, const Places& places) const {
  std::vector<Tensor> values;
  for (std::size_t rank = 0; rank < told_.size(); ++rank) {
    const Told& told = told_[rank][places[rank]];
    Tensor value(own.value.dtype(), own.value.shape());
    if (told.value.size_bytes() < value.bytes() ||
        told.value.size_bytes() >= value.bytes() + sizeof(std::int64_t))
      throw InvalidArgumentError(str("replica ", rank, " has a share of ", told.value.size_bytes(),
                                     " bytes, another one of ", value.type().to_string(),
                                     "; all must have one type"));
    std::memcpy(value.mutable_raw(), told.value.data(), value.bytes());
    values.push_back(std::move(value));
  }
  Update made = own;
  made.shares = Aggregation::kNone;
  made.value =
      own.shares == Aggregation::kOnlyFirstReplica ? values[0] : combined_dense(values, own.shares);
  return made;
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
  Rows rows = combined_rows(ids, values, own);
  made.ids = std::move(rows.ids);
  made.value = std::move(rows.values);
  return made;
}

// A member whose value is not in its header would go into an exchange to which the others do not
// come, so that question is answered for all of them at once.
bool SharedUpdates::all_inline(const Places& places) const {
  for (std::size_t rank = 0; rank < told_.size(); ++rank)
    if (told_[rank][places[rank]].value.empty()) return false;
  return true;
}

// All members look at the same headers, so they take part in the same exchanges in the same order
// without having to agree on them first.
void SharedUpdates::agree(std::span<const Update> own) {
  headers_ = group_.all_gather(header_of(own));
  told_.clear();
  for (const Tensor& header : headers_) told_.push_back(told_by(header));
  agreed_ = agreed();
}

std::vector<bool> SharedUpdates::announce(std::span<const Update> updates) {
  agree(updates);
  std::vector<bool> left_out(updates.size(), true);
  for (const Places& places : agreed_)
    left_out[places[static_cast<std::size_t>(group_.rank())]] = false;
  pushed_at_.assign(updates.size(), kNowhere);
  std::size_t pushed = 0;
  for (std::size_t i = 0; i < updates.size(); ++i)
    if (!left_out[i] && updates[i].value.defined()) pushed_at_[i] = pushed++;
  announced_ = pushed > 0;
  return left_out;
}

std::span<Update> SharedUpdates::merged(std::span<Update> own, Role role) {
  merged_.clear();
  shared_ = false;
  if (!std::exchange(announced_, false)) {
    agree(own);
    pushed_at_.resize(own.size());
    std::iota(pushed_at_.begin(), pushed_at_.end(), std::size_t{0});
  }
  for (const Places& places : agreed_) {
    const std::size_t at = pushed_at_[places[static_cast<std::size_t>(group_.rank())]];
    if (at == kNowhere) continue;  // this member's device makes it
    const Update& one = own[at];
    Update update = one;
    if (one.shares != Aggregation::kNone) {
      const bool told = all_inline(places);
      update = told ? combined_inline(one, places) : combined(one, role);
      shared_ = shared_ || !told;
    }
    if (role == Role::kApplies) merged_.push_back(std::move(update));
  }
  return merged_;
}

}  // namespace cairn
