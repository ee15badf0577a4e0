// Hashes that end up in models and files: the same on every machine and in every version.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/base/random.h"

namespace cairn {

// FNV-1a over the bytes, then mixed: what the operation string_hash_bucket takes modulo its
// buckets.
inline std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001B3ull;
  return mix_bits(hash);
}

// One more input of a cross; the order counts.
inline std::uint64_t cross_hash(std::uint64_t so_far, std::uint64_t next) {
  return mix_bits(so_far * 0x9E3779B97F4A7C15ull + next);
}

// Of bytes, eight at a time: tells damage, no forgery.
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

inline std::int64_t hash_bucket(std::uint64_t hash, std::int64_t buckets) {
  return static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(buckets));
}

}  // namespace cairn
