#include "collective/base/flat_values.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "collective/base/sum.h"
#include "core/base/error.h"
#include "core/tensor/bfloat16.h"

namespace cairn {
namespace {

constexpr std::size_t kUnit = 8;
// Below it a copy is cheaper than one more place that the system has to gather from.
constexpr std::size_t kGatheredBytesMin = 1024;
constexpr std::size_t kWidenedAtOnce = 2048;  // floats: 8 KB, in the first cache

std::size_t padded(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

std::shared_ptr<kj::byte> staging(std::size_t bytes, rpc::BufferPool& pool) {
  if (bytes > (std::size_t{32} << 10)) return pool.take(bytes);
  return {new kj::byte[bytes], std::default_delete<kj::byte[]>()};
}

rpc::ByteStream::Piece zeros(std::size_t bytes) {
  alignas(kUnit) static const kj::byte kZeros[kUnit] = {};
  return {kj::arrayPtr(kZeros, bytes), nullptr};
}

}  // namespace

// The part of one value that lies in a range.
struct FlatValues::Portion {
  const AllReduceBuffer& value;
  std::byte* data;
  std::size_t elements;
  bool narrow;  // it travels as bfloat16
  std::size_t bytes() const { return elements * dtype_bytes(value.dtype); }
  std::size_t payload() const { return narrow ? elements * 2 : bytes(); }
  std::size_t wire_bytes() const { return padded(payload()); }
};

FlatValues::FlatValues(std::vector<AllReduceBuffer> values, WireFormat format)
    : values_(std::move(values)), format_(format) {
  std::erase_if(values_, lies_on_device);
  for (const AllReduceBuffer& each : values_) {
    begins_.push_back(bytes_);
    bytes_ += padded(static_cast<std::size_t>(each.elements) * dtype_bytes(each.dtype));
  }
}

FlatValues::Range FlatValues::slice(Range whole, int i, int n) {
  const std::size_t units = whole.bytes() / kUnit, k = static_cast<std::size_t>(i),
                    of = static_cast<std::size_t>(n);
  return {whole.begin + units * k / of * kUnit, whole.begin + units * (k + 1) / of * kUnit};
}

template <typename Use>
void FlatValues::each_portion(Range range, Use use) const {
  const auto behind = std::ranges::upper_bound(begins_, range.begin);
  for (auto i = static_cast<std::size_t>(behind - begins_.begin()) - (begins_.empty() ? 0 : 1);
       i < values_.size() && begins_[i] < range.end; ++i) {
    const AllReduceBuffer& value = values_[i];
    const std::size_t width = dtype_bytes(value.dtype);
    const std::size_t from = std::max(range.begin, begins_[i]) - begins_[i];
    const std::size_t to =
        std::min(range.end - begins_[i], static_cast<std::size_t>(value.elements) * width);
    if (from >= to) continue;
    use(Portion{value, value.values + from, (to - from) / width,
                format_ == WireFormat::kBfloat16 && value.dtype == DType::kFloat32});
  }
}

std::vector<rpc::ByteStream::Piece> FlatValues::outgoing(Range range, rpc::BufferPool& pool) const {
  const auto is_staged = [](const Portion& each) {
    return each.narrow || each.bytes() < kGatheredBytesMin;
  };
  std::size_t staged_bytes = 0;
  each_portion(range, [&](const Portion& each) {
    if (is_staged(each)) staged_bytes += each.wire_bytes();
  });
  const auto buffer = staged_bytes > 0 ? staging(staged_bytes, pool) : nullptr;
  kj::byte* free = buffer.get();
  std::vector<rpc::ByteStream::Piece> pieces;
  each_portion(range, [&](const Portion& each) {
    const std::size_t padding = each.wire_bytes() - each.payload();
    if (!is_staged(each)) {
      pieces.push_back({kj::arrayPtr(reinterpret_cast<const kj::byte*>(each.data), each.bytes()),
                        std::const_pointer_cast<void>(each.value.owner)});
      if (padding > 0) pieces.push_back(zeros(padding));
      return;
    }
    // Portions that are staged one behind the other are one piece.
    const bool goes_on = !pieces.empty() && pieces.back().bytes.end() == free;
    kj::byte* const begin = free;
    if (each.narrow)
      narrow_to_bfloat16(reinterpret_cast<const float*>(each.data), each.elements,
                         reinterpret_cast<std::byte*>(free));
    else
      std::memcpy(free, each.data, each.bytes());
    std::memset(free + each.payload(), 0, padding);
    free += each.wire_bytes();
    if (goes_on)
      pieces.back().bytes = kj::arrayPtr<const kj::byte>(pieces.back().bytes.begin(), free);
    else
      pieces.push_back({kj::arrayPtr<const kj::byte>(begin, free), buffer});
  });
  return pieces;
}

template <typename Use>
void FlatValues::each_received(Range range, std::span<const std::byte> received, Use use) const {
  std::size_t expected = 0;
  each_portion(range, [&](const Portion& each) { expected += each.wire_bytes(); });
  if (received.size() != expected)
    throw InvalidArgumentError(str("a message of an all-reduce has ", received.size(),
                                   " bytes of values, not ", expected));
  const std::byte* from = received.data();
  each_portion(range, [&](const Portion& each) {
    use(each, from);
    from += each.wire_bytes();
  });
}

void FlatValues::add(Range range, std::span<const std::byte> received) {
  each_received(range, received, [](const Portion& each, const std::byte* from) {
    if (!each.narrow) return add_to(each.value.dtype, each.data, from, each.elements);
    float wide[kWidenedAtOnce];
    for (std::size_t begin = 0; begin < each.elements; begin += kWidenedAtOnce) {
      const std::size_t n = std::min(kWidenedAtOnce, each.elements - begin);
      widen_from_bfloat16(from + 2 * begin, n, wide);
      add_to(DType::kFloat32, each.data + 4 * begin, reinterpret_cast<const std::byte*>(wide), n);
    }
  });
}

void FlatValues::replace(Range range, std::span<const std::byte> received) {
  each_received(range, received, [](const Portion& each, const std::byte* from) {
    if (each.narrow)
      widen_from_bfloat16(from, each.elements, reinterpret_cast<float*>(each.data));
    else
      std::memcpy(each.data, from, each.bytes());
  });
}

void FlatValues::finish(Range range, int members) {
  each_portion(range, [&](const Portion& each) {
    if (each.value.op == ReduceOp::kMean)
      divide_by(static_cast<float>(members), each.data, each.elements);
    if (!each.narrow) return;
    auto* floats = reinterpret_cast<float*>(each.data);
    float rounded[kWidenedAtOnce];
    for (std::size_t begin = 0; begin < each.elements; begin += kWidenedAtOnce) {
      const std::size_t n = std::min(kWidenedAtOnce, each.elements - begin);
      round_to_bfloat16(floats + begin, n, rounded);
      std::memcpy(floats + begin, rounded, n * sizeof(float));
    }
  });
}

}  // namespace cairn
