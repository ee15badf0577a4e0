#include "tools/ckpt/format/array_names.h"

#include <set>
#include <string>

#include "core/base/error.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools::ckpt {
namespace {

struct Names {
  DType dtype;
  std::string_view safetensors, npy;
};
// NumPy has no bfloat16 of its own.
constexpr Names kNames[] = {{DType::kFloat32, "F32", "<f4"}, {DType::kFloat64, "F64", "<f8"},
                            {DType::kInt32, "I32", "<i4"},   {DType::kInt64, "I64", "<i8"},
                            {DType::kBool, "BOOL", "|b1"},   {DType::kUint8, "U8", "|u1"},
                            {DType::kBfloat16, "BF16", ""},  {DType::kFloat16, "F16", "<f2"}};

}  // namespace

std::string_view safetensors_dtype(DType dtype) {
  for (const Names& names : kNames)
    if (names.dtype == dtype) return names.safetensors;
  return "";
}
std::string_view npy_dtype(DType dtype) {
  for (const Names& names : kNames)
    if (names.dtype == dtype) return names.npy;
  return "";
}
std::optional<DType> from_safetensors_dtype(std::string_view name) {
  for (const Names& names : kNames)
    if (names.safetensors == name) return names.dtype;
  return std::nullopt;
}
std::optional<DType> from_npy_dtype(std::string_view name) {
  for (const Names& names : kNames)
    if (!names.npy.empty() && names.npy == name) return names.dtype;
  return std::nullopt;
}

void verify_expressible(ArrayFormat format, const std::vector<ArrayInfo>& arrays) {
  std::string wrong;
  std::set<std::string> names;
  for (const ArrayInfo& info : arrays) {
    const bool npz = format == ArrayFormat::kNpz;
    if ((npz ? npy_dtype(info.dtype) : safetensors_dtype(info.dtype)).empty())
      wrong += str("\n  \"", info.name, "\" is of ", dtype_name(info.dtype),
                   npz ? ", which npz does not have: export as safetensors" : "");
    if (info.name == kMetadataArray)
      wrong += str("\n  \"", info.name, "\": the name stands for the file's metadata");
    if (!names.insert(info.name).second)
      wrong += str("\n  \"", info.name, "\" would be the name of two arrays");
    if (npz && info.name.size() > 0xfff0)
      wrong += str("\n  a name of ", info.name.size(), " bytes is longer than a zip file has");
  }
  if (!wrong.empty()) throw InvalidArgumentError(str("this cannot be exported:", wrong));
}

}  // namespace cairn::tools::ckpt
