// IdxFile: one file of the IDX format, in which the MNIST images came: a head, and the values of
// all examples.
//   Source  Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", "the IDX
//           file format": two zero bytes, the type, the number of dimensions, each dimension, then
//           the values; all numbers big-endian.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/dataset/file_schema.h"
#include "data/file/byte_source.h"

namespace cairn {

// The contents of a file's head, which have been found to fit the column.
struct IdxHead {
  std::int64_t count = 0;     // examples
  std::size_t bytes = 0;      // of the head
  std::size_t row_bytes = 0;  // of an example, as it lies in the file
  int type = 0;
};

// Reads the head alone, also of a compressed file. The size of one that is not is verified.
//   Errors  NotFound: there is no such file. InvalidArgument: it is not of the format, or not what
//           the column says. DataLoss: it is shorter or longer than its head says.
IdxHead read_idx_head(const std::string& path, const IdxColumn& column);

// Thread: one at a time.
class IdxFile {
 public:
  IdxFile(std::string path, const IdxColumn& column);
  // Rows [begin, begin + rows), all of which the head promised.
  //   Errors  DataLoss: the file ends before, or goes on behind the last row, or its compressed
  //           data is damaged.
  Tensor read(std::int64_t begin, std::int64_t rows);

 private:
  void verify_end();

  std::string path_;
  const IdxColumn& column_;
  IdxHead head_;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> buffer_;
};

}  // namespace cairn
