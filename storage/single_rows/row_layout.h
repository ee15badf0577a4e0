// RowLayout: how rows lie in a block's value, so that one can be decoded without the others.
//
//   StoredRows rows = decode_rows(key, value);          // verifies the block, once
//   RowLayout layout = row_layout(value);               // and from then on a row is
//   layout.rows_at + i * layout.stride                  // the place of its bytes in the value
//   Thread  values; any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "storage/row_encoding.h"

namespace cairn::storage {

struct RowLayout {
  DType dtype = DType::kFloat32;
  std::int64_t dim = 0;     // parameters of a row
  std::uint32_t count = 0;  // of rows
  bool contiguous = false;  // otherwise a list of numbers stands before the rows
  BlockForm form = {};
  std::size_t list_at = 0;  // of the list, in the value
  std::size_t rows_at = 0;  // of the first row; compressed: of the frame
  std::size_t stride = 0;   // bytes of a row with its slots; compressed: once it is decompressed

  bool compressed() const { return form.compression != Compression::kNone; }
  // Bytes of a row's parameters, which come first in it.
  std::size_t parameter_bytes() const;
};

// The layout of a value that decode_rows() has verified; `value` may be cut off behind the list.
//   Errors  DataLoss: the bytes are no such value.
RowLayout row_layout(std::string_view value);

// The numbers of a list's rows, less the first one's.
//   `list`  the bytes from `list_at` to `rows_at`.
//   Errors  DataLoss: the bytes are no such list.
void read_row_list(const RowLayout& layout, std::string_view list,
                   std::vector<std::uint64_t>& offsets);

// Decodes a row's parameters, which are parameter_bytes() long, as decode_rows() does.
void decode_parameters(const RowLayout& layout, const std::byte* from, std::byte* to);

}  // namespace cairn::storage
