// cast() of one register, between any two dtypes but string, as core/kernels/cpu/cast.cc does it.
// How a number of a dtype is read and written says AsNumber, AsBool, or one of half.h.
#pragma once
#include <type_traits>

#include "core/kernels/cuda/runtime/half.h"
#include "core/kernels/cuda/trees/elementwise.h"
#include "core/kernels/to_integer.h"

namespace cairn::cuda {

template <typename T>
struct AsNumber {
  using Stored = T;
  CAIRN_DEVICE static T read(T x) { return x; }
  template <typename From>
  CAIRN_DEVICE static T write(From x) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(x);
    else
      return to_integer<T>(x);
  }
};

struct AsBool {
  using Stored = Bool;
  CAIRN_DEVICE static Bool read(Bool x) { return x; }
  template <typename From>
  CAIRN_DEVICE static Bool write(From x) {
    return static_cast<Bool>(x != 0 ? 1 : 0);
  }
};

template <typename Word, typename From, typename To>
CAIRN_DEVICE Word cast_word(Word word) {
  return word_of<Word>(To::write(From::read(value_of<typename From::Stored>(word))));
}

}  // namespace cairn::cuda
