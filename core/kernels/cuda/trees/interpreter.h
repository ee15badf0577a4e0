// The interpreter of elementwise programs: each thread runs all steps over kLanes neighbouring
// elements, whose intermediate values stay in its registers and its part of the first-level cache.
// All threads read the same program, so its steps stay in the first-level cache.
#pragma once
#include "core/kernels/cuda/runtime/faults.h"
#include "core/kernels/cuda/trees/convert.h"
#include "core/kernels/cuda/trees/program.h"

namespace cairn::cuda {

struct LeafPointers {
  const std::byte* at[Program::kLeavesMax];
};

CAIRN_DEVICE std::uint64_t read_element(const std::byte* from, std::int64_t i, std::uint8_t width) {
  switch (width) {
    case 1: return reinterpret_cast<const std::uint8_t*>(from)[i];
    case 2: return reinterpret_cast<const std::uint16_t*>(from)[i];
    case 4: return reinterpret_cast<const std::uint32_t*>(from)[i];
    default: return reinterpret_cast<const std::uint64_t*>(from)[i];
  }
}

CAIRN_DEVICE void write_element(std::byte* to, std::int64_t i, std::uint8_t width,
                                std::uint64_t value) {
  switch (width) {
    case 1: reinterpret_cast<std::uint8_t*>(to)[i] = static_cast<std::uint8_t>(value); return;
    case 2: reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(value); return;
    case 4: reinterpret_cast<std::uint32_t*>(to)[i] = static_cast<std::uint32_t>(value); return;
    default: reinterpret_cast<std::uint64_t*>(to)[i] = value; return;
  }
}

struct alignas(16) FourWords {
  std::uint32_t word[kLanes];
};
struct alignas(8) FourHalfWords {
  std::uint16_t word[kLanes];
};

// Whether kLanes elements of this width may be read or written at once. Values lie on 64-byte
// boundaries, and chunks begin at multiples of kLanes.
CAIRN_DEVICE bool are_packed(const std::byte* at, std::uint8_t width, int count) {
  return count == kLanes &&
         (reinterpret_cast<std::uintptr_t>(at) & (std::uintptr_t{width} * kLanes - 1)) == 0;
}

// Elements [first, first + count) of a leaf as they lie in memory; count <= kLanes.
template <typename Word>
CAIRN_DEVICE void fetch_stored(const Leaf& leaf, const std::byte* from, std::int64_t first,
                               int count, Word* to) {
  switch (leaf.mode) {
    case Leaf::Mode::kDense:
      if (leaf.width == 2 && are_packed(from, 2, count)) {
        const FourHalfWords all = *reinterpret_cast<const FourHalfWords*>(from + first * 2);
        CAIRN_UNROLL
        for (int l = 0; l < kLanes; ++l) to[l] = all.word[l];
        return;
      }
      if (sizeof(Word) == 4 && leaf.width == 4 && are_packed(from, 4, count)) {
        const FourWords all = *reinterpret_cast<const FourWords*>(from + first * 4);
        CAIRN_UNROLL
        for (int l = 0; l < kLanes; ++l) to[l] = all.word[l];
        return;
      }
      CAIRN_UNROLL
      for (int l = 0; l < kLanes; ++l)
        if (l < count) to[l] = static_cast<Word>(read_element(from, first + l, leaf.width));
      return;
    case Leaf::Mode::kScalar: {
      const Word one = static_cast<Word>(read_element(from, 0, leaf.width));
      CAIRN_UNROLL
      for (int l = 0; l < kLanes; ++l) to[l] = one;
      return;
    }
    case Leaf::Mode::kInner: {
      std::int64_t at = leaf.period.remainder(first);
      CAIRN_UNROLL
      for (int l = 0; l < kLanes; ++l) {
        if (l < count) to[l] = static_cast<Word>(read_element(from, at, leaf.width));
        if (++at == leaf.period.by) at = 0;
      }
      return;
    }
    case Leaf::Mode::kOuter:
      CAIRN_UNROLL
      for (int l = 0; l < kLanes; ++l)
        if (l < count)
          to[l] = static_cast<Word>(read_element(from, leaf.period.divide(first + l), leaf.width));
      return;
    case Leaf::Mode::kGeneral:
      CAIRN_UNROLL
      for (int l = 0; l < kLanes; ++l)
        if (l < count)
          to[l] = static_cast<Word>(read_element(from, leaf.strides.source(first + l), leaf.width));
      return;
  }
}

// The bits of a bfloat16 are the upper half of a float's.
template <typename Word>
CAIRN_DEVICE void fetch(const Leaf& leaf, const std::byte* from, std::int64_t first, int count,
                        Word* to) {
  fetch_stored(leaf, from, first, count, to);
  if (!leaf.narrow) return;
  CAIRN_UNROLL
  for (int l = 0; l < kLanes; ++l) to[l] <<= 16;
}

template <typename Word>
CAIRN_DEVICE void store(std::byte* to, std::int64_t first, int count, std::uint8_t width,
                        const Word* from) {
  if (width == 2 && are_packed(to, 2, count)) {
    FourHalfWords all;
    CAIRN_UNROLL
    for (int l = 0; l < kLanes; ++l) all.word[l] = static_cast<std::uint16_t>(from[l]);
    *reinterpret_cast<FourHalfWords*>(to + first * 2) = all;
    return;
  }
  if (sizeof(Word) == 4 && width == 4 && are_packed(to, 4, count)) {
    FourWords all;
    CAIRN_UNROLL
    for (int l = 0; l < kLanes; ++l) all.word[l] = static_cast<std::uint32_t>(from[l]);
    *reinterpret_cast<FourWords*>(to + first * 4) = all;
    return;
  }
  CAIRN_UNROLL
  for (int l = 0; l < kLanes; ++l)
    if (l < count) write_element(to, first + l, width, from[l]);
}

// Needed by a program to run, beside the memory of its intermediate values.
struct ProgramRun {
  const ProgramStep* steps;
  const Leaf* leaves;
  int step_count, leaf_count;
  std::uint8_t width;
  bool narrow;
  std::int64_t elements;
  LeafPointers from;
  std::byte* result;
  FaultSite fault;

  CAIRN_DEVICE int count_from(std::int64_t first) const {
    return static_cast<int>(elements - first < kLanes ? elements - first : kLanes);
  }

  template <typename Word>
  CAIRN_DEVICE void write(std::int64_t first, int count, Word* made) const {
    if (narrow) {
      CAIRN_UNROLL
      for (int l = 0; l < kLanes; ++l) made[l] = narrow_bfloat16(value_of<float>(made[l]));
    }
    store(result, first, count, width, made);
  }

  // One step over kLanes elements.
  template <typename Word>
  CAIRN_DEVICE void run(const ProgramStep& step, std::int64_t first, int count,
                        const Word (&in)[3][kLanes], Word* out) const {
    switch (step.code) {
      case Code::where:
        CAIRN_UNROLL
        for (int l = 0; l < kLanes; ++l) out[l] = operation::where(in[0][l], in[1][l], in[2][l]);
        return;
      case Code::cast:
        CAIRN_UNROLL
        for (int l = 0; l < kLanes; ++l) out[l] = convert(in[0][l], step.from, step.to);
        return;
      case Code::div_i:
      case Code::div_l:
      case Code::floor_mod_i:
      case Code::floor_mod_l:
        CAIRN_UNROLL
        for (int l = 0; l < kLanes; ++l)
          if (l < count && in[1][l] == 0) fault.report(first + l, 0);
        break;
      default: break;
    }
    compute(step.code, in[0], in[1], out);
  }
};

// Any program. Values between steps are an array that is indexed at run time, which a GPU keeps in
// its first-level cache.
template <typename Word, int kRegisters>
struct Interpreter {
  ProgramRun program;

  CAIRN_KERNEL_BODY void operator()(std::int64_t chunk) const {
    Word registers[kRegisters][kLanes];
    const std::int64_t first = chunk * kLanes;
    const int count = program.count_from(first);
    for (int s = 0; s < program.step_count; ++s) {
      const ProgramStep& step = program.steps[s];
      Word in[3][kLanes] = {}, out[kLanes] = {};
      CAIRN_UNROLL
      for (int k = 0; k < 3; ++k) {
        const Operand operand = step.operands[k];
        if (operand.kind == Operand::Kind::kNone) break;
        if (operand.kind == Operand::Kind::kLeaf)
          fetch(program.leaves[operand.index], program.from.at[operand.index], first, count, in[k]);
        else
          CAIRN_UNROLL
        for (int l = 0; l < kLanes; ++l) in[k][l] = registers[operand.index][l];
      }
      program.run(step, first, count, in, out);
      if (s + 1 == program.step_count)
        program.write(first, count, out);
      else
        CAIRN_UNROLL
      for (int l = 0; l < kLanes; ++l) registers[step.made][l] = out[l];
    }
  }
};

// Programs of a few leaves and values, which nearly all are: everything stays in registers, chosen
// by comparison instead of by address, and all leaves are on their way before the first step.
struct SmallInterpreter {
  static constexpr int kLeaves = 4, kRegisters = 3;
  using Word = std::uint32_t;
  ProgramRun program;

  CAIRN_DEVICE void operator()(std::int64_t chunk) const {
    const std::int64_t first = chunk * kLanes;
    const int count = program.count_from(first);
    const FourWords a = leaf(0, first, count), b = leaf(1, first, count), c = leaf(2, first, count),
                    d = leaf(3, first, count);
    FourWords x{}, y{}, z{}, out{};
    for (int s = 0; s < program.step_count; ++s) {
      const ProgramStep& step = program.steps[s];
      Word in[3][kLanes];
      CAIRN_UNROLL
      for (int k = 0; k < 3; ++k) {
        const Operand operand = step.operands[k];
        const bool is_leaf = operand.kind == Operand::Kind::kLeaf;
        CAIRN_UNROLL
        for (int l = 0; l < kLanes; ++l) {
          const Word of_leaf = operand.index == 0   ? a.word[l]
                               : operand.index == 1 ? b.word[l]
                               : operand.index == 2 ? c.word[l]
                                                    : d.word[l];
          const Word of_register = operand.index == 0   ? x.word[l]
                                   : operand.index == 1 ? y.word[l]
                                                        : z.word[l];
          in[k][l] = is_leaf ? of_leaf : of_register;
        }
      }
      program.run(step, first, count, in, out.word);
      CAIRN_UNROLL
      for (int l = 0; l < kLanes; ++l) {
        x.word[l] = step.made == 0 ? out.word[l] : x.word[l];
        y.word[l] = step.made == 1 ? out.word[l] : y.word[l];
        z.word[l] = step.made == 2 ? out.word[l] : z.word[l];
      }
    }
    program.write(first, count, out.word);
  }

 private:
  CAIRN_DEVICE FourWords leaf(int i, std::int64_t first, int count) const {
    FourWords made{};
    if (i < program.leaf_count)
      fetch(program.leaves[i], program.from.at[i], first, count, made.word);
    return made;
  }
};

}  // namespace cairn::cuda
