// cast() between any two dtypes but string, as core/kernels/cpu/cast.cc does it.
#pragma once
#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/cuda/half.h"
#include "core/kernels/to_integer.h"

namespace cairn::cuda {

template <typename Word, typename From>
CAIRN_DEVICE Word convert_to(From x, DType to) {
  switch (to) {
    case DType::kFloat32: return word_of<Word>(static_cast<float>(x));
    case DType::kFloat64: return word_of<Word>(static_cast<double>(x));
    case DType::kInt32: return word_of<Word>(to_integer<std::int32_t>(x));
    case DType::kInt64: return word_of<Word>(to_integer<std::int64_t>(x));
    case DType::kBool: return word_of<Word>(static_cast<Bool>(x != 0 ? 1 : 0));
    case DType::kUint8: return word_of<Word>(to_integer<std::uint8_t>(x));
    case DType::kBfloat16: return word_of<Word>(narrow_bfloat16(static_cast<float>(x)));
    case DType::kFloat16: return word_of<Word>(narrow_float16(static_cast<float>(x)));
    default: return 0;
  }
}

template <typename Word>
CAIRN_KERNEL_BODY Word convert(Word word, DType from, DType to) {
  switch (from) {
    case DType::kFloat32: return convert_to<Word>(value_of<float>(word), to);
    case DType::kFloat64: return convert_to<Word>(value_of<double>(word), to);
    case DType::kInt32: return convert_to<Word>(value_of<std::int32_t>(word), to);
    case DType::kInt64: return convert_to<Word>(value_of<std::int64_t>(word), to);
    case DType::kBool:
    case DType::kUint8: return convert_to<Word>(value_of<std::uint8_t>(word), to);
    case DType::kBfloat16:
      return convert_to<Word>(widen_bfloat16(value_of<std::uint16_t>(word)), to);
    case DType::kFloat16: return convert_to<Word>(widen_float16(value_of<std::uint16_t>(word)), to);
    default: return 0;
  }
}

}  // namespace cairn::cuda
