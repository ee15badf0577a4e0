// FlatValues: the values of an all-reduce as one row of bytes, so that a thousand small ones travel
// in one message and a large one in several, all by the same code.
//
// Values follow each other in the order given, each beginning at a multiple of 8, so that a cut at
// any multiple of 8 falls between elements whatever the dtypes. They stay where they are: a message
// is gathered from their places, and what comes is added into them.
//   Thread  one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/exec/all_reduce_buffer.h"
#include "rpc/loop/buffer_pool.h"
#include "rpc/net/byte_stream.h"

namespace cairn {

enum class WireFormat : std::uint8_t {
  kRaw,
  kBfloat16,  // of float32 values; others are raw
};

class FlatValues {
 public:
  // Bytes [begin, end) of the row, both multiples of 8.
  struct Range {
    std::size_t begin = 0, end = 0;
    std::size_t bytes() const { return end - begin; }
  };

  // Values that lie on devices are left out.
  FlatValues(std::vector<AllReduceBuffer> values, WireFormat format);
  std::size_t bytes() const { return bytes_; }  // a multiple of 8
  // The i-th of n parts of a range, as equal as multiples of 8 can be.
  static Range slice(Range whole, int i, int n);

  // The range as it travels. Pieces refer to the values, kept by the reductions' owners; what is
  // small, or in another format, is in buffers of the pool.
  std::vector<rpc::ByteStream::Piece> outgoing(Range range, rpc::BufferPool& pool) const;
  // Adds the received bytes to the range, or replaces the range by them.
  //   Errors  InvalidArgument: it is not as long as the range is when it travels.
  void add(Range range, std::span<const std::byte> received);
  void replace(Range range, std::span<const std::byte> received);
  // After the last addition, on the member that made it: means are divided, and values are rounded
  // to what they are on the wire, so that this member holds the bits that it sends.
  void finish(Range range, int members);

 private:
  struct Portion;
  template <typename Use>
  void each_portion(Range range, Use use) const;
  template <typename Use>
  void each_received(Range range, std::span<const std::byte> received, Use use) const;

  std::vector<AllReduceBuffer> values_;
  std::vector<std::size_t> begins_;
  std::size_t bytes_ = 0;
  WireFormat format_;
};

}  // namespace cairn
