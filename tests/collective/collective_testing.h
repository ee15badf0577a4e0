// Groups whose members run on threads of the test.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/base/collective.h"
#include "core/base/random.h"

namespace cairn::testing {

using Members = std::vector<std::unique_ptr<Collective>>;

// Runs `act` on a thread for each member; what each of them threw, as "Code: message", or "".
inline std::vector<std::string> on_all(Members& members,
                                       const std::function<void(Collective&)>& act) {
  std::vector<std::string> errors(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        act(*members[i]);
      } catch (const Error& error) {
        errors[i] = str(code_name(error.code()), ": ", error.what());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

inline bool all_well(const std::vector<std::string>& errors) {
  for (const auto& error : errors) {
    if (error.empty()) continue;
    ADD_FAILURE() << error;
    return false;
  }
  return true;
}

// Values of a member: floats whose sum depends on the order in which they are added.
inline Tensor uneven(std::int64_t elements, std::uint64_t seed) {
  Tensor made(DType::kFloat32, {elements});
  Random random(seed);
  for (float& value : made.mutable_values<float>()) {
    const int power = static_cast<int>(random.below(24)) - 12;
    value = std::ldexp(static_cast<float>(random.below(1 << 20)) - (1 << 19), power);
  }
  return made;
}

// A reduction of the tensor's own memory, which the tensor keeps.
inline AllReduceBuffer in_place(Tensor& value, ReduceOp op = ReduceOp::kSum) {
  return {op, value.dtype(), value.elements(), value.mutable_raw(), value.owner()};
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  const auto all = tensor.values<T>();
  return {all.begin(), all.end()};
}

// Whether both hold the same bits, NaNs included.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::equal(a.raw(), a.raw() + a.bytes(), b.raw());
}

}  // namespace cairn::testing
