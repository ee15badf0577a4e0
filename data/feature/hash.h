// Hashes that end up in models and files: they are the same on every machine and in every version,
// and may never change. None of them resists an attacker.
//   Thread  any.
//   Cost  a multiplication per byte of text, or per eight bytes of a checksum.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/base/random.h"

namespace cairn {

// FNV-1a over the bytes, then mixed, because FNV's low bits alone are poor: what the operation
// string_hash_bucket takes modulo its buckets, so that a feature hashed in the pipeline and one
// hashed in the graph agree.
//   Source  Fowler, Noll, Vo, "The FNV non-cryptographic hash algorithm"; 64 bits.
inline std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001B3ull;
  return mix_bits(hash);
}

// A hash with one more input; the order counts, so that the cross of A and B is not that of B and
// A. The constant is 2^64 divided by the golden ratio, as in splitmix64.
inline std::uint64_t cross_hash(std::uint64_t so_far, std::uint64_t next) {
  return mix_bits(so_far * 0x9E3779B97F4A7C15ull + next);
}

// A checksum of bytes, taken eight at a time, little-endian. It detects damage, not forgery.
// Checkpoints use CRC-32C instead (core/base/checksum.h), which other programs know as well.
inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t hash = bytes.size();
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    hash = cross_hash(hash, word);
  }
  for (; at < bytes.size(); ++at) hash = cross_hash(hash, static_cast<std::uint64_t>(bytes[at]));
  return hash;
}

// The bucket of a hash, in [0, buckets). The remainder favours low buckets by less than buckets /
// 2^64.
inline std::int64_t hash_bucket(std::uint64_t hash, std::int64_t buckets) {
  return static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(buckets));
}

}  // namespace cairn
