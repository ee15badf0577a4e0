// fetch: the values of RemoteValues, in whatever nest of vectors, maps, pairs and tuples they
// stand; all else stays as it is.
#pragma once
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "coordinator/cluster/closure.h"

namespace cairn {

// Each RemoteValue becomes its outputs (a nest that a function returned lies flat: see
// core/graph/function.h).
//   Errors  those of RemoteValue::get_all(), of the first that has one.
//   Thread  any; it waits for each, `limit` at most.
// It is a function object with an overload for each kind of nest, which calls itself for what the
// nest holds: so nests of any depth are taken apart at compile time, and the result has the nest's
// own type, with vectors of Tensors in place of RemoteValues.
struct Fetcher {
  // How long to wait for each RemoteValue. The time is not shared out: a nest of several may take
  // a multiple of it.
  Duration limit = kForever;

  std::vector<Tensor> operator()(const RemoteValue& value) const { return value.get_all(limit); }
  template <typename T>
  T operator()(const T& plain) const {
    // A value that is no RemoteValue and no nest is given back as it is.
    return plain;
  }
  template <typename T>
  auto operator()(const std::vector<T>& list) const {
    // One after the other: their closures run at the same time anyway, so that the whole takes as
    // long as the slowest.
    std::vector<std::decay_t<decltype((*this)(std::declval<const T&>()))>> fetched;
    for (const T& value : list) fetched.push_back((*this)(value));
    return fetched;
  }
  template <typename K, typename T>
  auto operator()(const std::map<K, T>& named) const {
    // The keys stay, and with them the order.
    std::map<K, std::decay_t<decltype((*this)(std::declval<const T&>()))>> fetched;
    for (const auto& [name, value] : named) fetched.emplace(name, (*this)(value));
    return fetched;
  }
  template <typename A, typename B>
  auto operator()(const std::pair<A, B>& two) const {
    return std::pair{(*this)(two.first), (*this)(two.second)};
  }
  template <typename... T>
  auto operator()(const std::tuple<T...>& all) const {
    // Members may be of different kinds: each goes by its own overload.
    return std::apply([this](const auto&... value) { return std::tuple{(*this)(value)...}; }, all);
  }
};

}  // namespace cairn
