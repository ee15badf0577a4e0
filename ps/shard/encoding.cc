#include "ps/shard/encoding.h"

namespace cairn::ps {

std::size_t wire_bytes(RowEncoding encoding, DType dtype) {
  return is_narrowed(encoding, dtype) ? 2 : dtype_bytes(dtype);
}

}  // namespace cairn::ps
