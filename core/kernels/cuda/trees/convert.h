// cast_word() for dtypes that are known only at run time.
#pragma once
#include "core/kernels/cuda/trees/casts.h"
#include "core/tensor/tensor.h"

namespace cairn::cuda {

template <typename From, typename Word>
CAIRN_DEVICE Word convert_from(Word word, DType to) {
  switch (to) {
    case DType::kFloat32: return cast_word<Word, From, AsNumber<float>>(word);
    case DType::kFloat64: return cast_word<Word, From, AsNumber<double>>(word);
    case DType::kInt32: return cast_word<Word, From, AsNumber<std::int32_t>>(word);
    case DType::kInt64: return cast_word<Word, From, AsNumber<std::int64_t>>(word);
    case DType::kBool: return cast_word<Word, From, AsBool>(word);
    case DType::kUint8: return cast_word<Word, From, AsNumber<std::uint8_t>>(word);
    case DType::kBfloat16: return cast_word<Word, From, AsBfloat16>(word);
    case DType::kFloat16: return cast_word<Word, From, AsFloat16>(word);
    default: return 0;
  }
}

template <typename Word>
CAIRN_KERNEL_BODY Word convert(Word word, DType from, DType to) {
  switch (from) {
    case DType::kFloat32: return convert_from<AsNumber<float>>(word, to);
    case DType::kFloat64: return convert_from<AsNumber<double>>(word, to);
    case DType::kInt32: return convert_from<AsNumber<std::int32_t>>(word, to);
    case DType::kInt64: return convert_from<AsNumber<std::int64_t>>(word, to);
    case DType::kBool:
    case DType::kUint8: return convert_from<AsNumber<std::uint8_t>>(word, to);
    case DType::kBfloat16: return convert_from<AsBfloat16>(word, to);
    case DType::kFloat16: return convert_from<AsFloat16>(word, to);
    default: return 0;
  }
}

}  // namespace cairn::cuda
