// SumOrder: in which order a group adds what its members have. Float addition rounds, so the order
// is part of a result; each is fixed by the number of members and the values' sizes alone.
//
//   kRanks  ((r0 + r1) + r2) + r3: what a program that adds in a loop gets.
//   kPairs  (r0 + r1) + (r2 + r3), neighbours first and then their sums, as a tree of copies adds.
//           The rounding error grows with the logarithm of the number of members alone.
//           With up to three members it is the same as kRanks.
//           Source  Higham, "The accuracy of floating point summation", 1993.
//   kRing   The elements of all values of a call, one after another, are cut into one slice per
//           member, of equal size but for the last ones; slice s is r(s+1) + r(s+2) + ... + r(s),
//           as it goes around a ring. So the sum of a value depends on what else is in the call.
//           With up to two members it is the same as kRanks, since a + b = b + a.
//           Source  Patarasuk and Yuan, 2009; the ring between processes cuts and adds alike.
//
// Sums of integers are the same in any order.
#pragma once
#include <cstdint>

namespace cairn {

enum class SumOrder : std::uint8_t { kRanks, kPairs, kRing };

}  // namespace cairn
