#include "core/kernels/cuda/runtime/matrix_copy.h"

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/half.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {
namespace {

template <typename From, typename To>
void copy_elements(Queue& queue, const MatrixCopy& copy, const std::byte* from, std::byte* to) {
  const auto* const x = reinterpret_cast<const typename From::Stored*>(from);
  auto* const y = reinterpret_cast<typename To::Stored*>(to);
  const Divisor width{copy.to_columns};
  const std::int64_t rows = copy.rows, columns = copy.columns;
  for_each(queue, copy.to_rows * copy.to_columns, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
    const std::int64_t i = width.divide(at), j = at - i * width.by;
    const bool within = i < rows && j < columns;
    y[at] = To::write(within ? From::read(x[i * columns + j]) : 0.0f);
  });
}

}  // namespace

void copy_matrix(Queue& queue, const MatrixCopy& copy, const std::byte* from, std::byte* to) {
  const bool narrow_from = copy.from == DType::kBfloat16, narrow_to = copy.to == DType::kBfloat16;
  if (!narrow_from && narrow_to && !copy.changes_size())
    return queue.driver().narrow(queue.stream(), copy.rows * copy.columns,
                                 reinterpret_cast<const float*>(from),
                                 reinterpret_cast<std::uint16_t*>(to));
  if (narrow_from)
    narrow_to ? copy_elements<AsBfloat16, AsBfloat16>(queue, copy, from, to)
              : copy_elements<AsBfloat16, AsFloat32>(queue, copy, from, to);
  else
    narrow_to ? copy_elements<AsFloat32, AsBfloat16>(queue, copy, from, to)
              : copy_elements<AsFloat32, AsFloat32>(queue, copy, from, to);
}

}  // namespace cairn::cuda
