#include "core/graph/static_hash_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/graph/ops.h"

namespace cairn {
namespace {

void verify(const StaticHashTable::Contents& of) {
  const bool there = of.keys.defined() && of.values.defined() && of.default_value.defined();
  if (!there) throw InvalidArgumentError("a hash table wants keys, values and a default value");
  const DType keys = of.keys.dtype();
  if ((keys != DType::kInt64 && keys != DType::kString) || of.keys.shape().rank() != 1)
    throw InvalidArgumentError(str("the keys of a hash table are int64[n] or string[n], not ",
                                   of.keys.type().to_string()));
  if (of.values.dtype() == DType::kString || of.values.shape() != of.keys.shape())
    throw InvalidArgumentError(str("the values of a hash table of ", of.keys.type().to_string(),
                                   " are as many, and no strings; got ",
                                   of.values.type().to_string()));
  if (of.default_value.type() != TensorType{of.values.dtype(), Shape{}})
    throw InvalidArgumentError(str("the default value of a hash table with values of ",
                                   dtype_name(of.values.dtype()), " is ",
                                   of.default_value.type().to_string()));
}

bool equal_values(const Tensor& values, std::size_t a, std::size_t b) {
  const std::size_t bytes = dtype_bytes(values.dtype());
  return std::memcmp(values.raw() + a * bytes, values.raw() + b * bytes, bytes) == 0;
}

// The places of distinct keys, ascending.
template <typename Key>
std::vector<std::size_t> sorted_places(std::span<const Key> keys, const Tensor& values) {
  std::vector<std::size_t> order(keys.size()), places;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  for (std::size_t at : order) {
    if (places.empty() || keys[places.back()] != keys[at])
      places.push_back(at);
    else if (!equal_values(values, places.back(), at))
      throw FailedPreconditionError(str("a hash table has the key ", keys[at], " with two values"));
  }
  return places;
}

Tensor keys_at(const Tensor& keys, const std::vector<std::size_t>& places) {
  const auto n = static_cast<std::int64_t>(places.size());
  if (keys.dtype() == DType::kString) {
    std::vector<std::string> picked;
    for (std::size_t at : places) picked.push_back(keys.string_values()[at]);
    return Tensor::strings({n}, std::move(picked));
  }
  Tensor picked(DType::kInt64, {n});
  for (std::size_t i = 0; i < places.size(); ++i)
    picked.mutable_values<std::int64_t>()[i] = keys.values<std::int64_t>()[places[i]];
  return picked;
}

Tensor values_at(const StaticHashTable::Contents& of, const std::vector<std::size_t>& places) {
  const std::size_t bytes = dtype_bytes(of.values.dtype());
  Tensor picked(of.values.dtype(), {static_cast<std::int64_t>(places.size()) + 1});
  std::byte* to = picked.mutable_raw();
  for (std::size_t at : places) {
    std::memcpy(to, of.values.raw() + at * bytes, bytes);
    to += bytes;
  }
  std::memcpy(to, of.default_value.raw(), bytes);
  return picked;
}

}  // namespace

StaticHashTable::StaticHashTable(Contents contents) {
  verify(contents);
  const bool text = contents.keys.dtype() == DType::kString;
  const auto places = text ? sorted_places(contents.keys.string_values(), contents.values)
                           : sorted_places(contents.keys.values<std::int64_t>(), contents.values);
  size_ = static_cast<std::int64_t>(places.size());
  keys_ = keys_at(contents.keys, places);
  values_ = values_at(contents, places);
}

// A key that is not there has the place behind the last, where the default is.
Array StaticHashTable::lookup(const Array& keys) const {
  return gather(values_, find_key(keys, keys_));
}

}  // namespace cairn
