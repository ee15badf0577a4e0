// The interpreter of elementwise programs: each thread runs all steps over kLanes neighbouring
// elements, whose intermediate values stay in its registers and its part of the first-level cache.
// A program is read by all threads alike, so that its steps come from the constant path; the cost
// of a step is then far below that of fetching its elements from memory, which bounds all but long
// programs (bench/gpu).
#pragma once
#include "core/kernels/cuda/convert.h"
#include "core/kernels/cuda/faults.h"
#include "core/kernels/cuda/program.h"

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

// Elements [first, first + count) of a leaf; count <= kLanes.
template <typename Word>
CAIRN_DEVICE void fetch(const Leaf& leaf, const std::byte* from, std::int64_t first, int count,
                        Word* to) {
  switch (leaf.mode) {
    case Leaf::Mode::kDense:
      // Values lie on 64-byte boundaries, and `first` is a multiple of kLanes.
      if (sizeof(Word) == 4 && leaf.width == 4 && count == kLanes &&
          (reinterpret_cast<std::uintptr_t>(from) & 15) == 0) {
        const FourWords all = *reinterpret_cast<const FourWords*>(from + first * 4);
        for (int l = 0; l < kLanes; ++l) to[l] = all.word[l];
        return;
      }
      for (int l = 0; l < count; ++l)
        to[l] = static_cast<Word>(read_element(from, first + l, leaf.width));
      return;
    case Leaf::Mode::kScalar: {
      const Word one = static_cast<Word>(read_element(from, 0, leaf.width));
      for (int l = 0; l < kLanes; ++l) to[l] = one;
      return;
    }
    case Leaf::Mode::kInner: {
      std::int64_t at = leaf.period.remainder(first);
      for (int l = 0; l < count; ++l) {
        to[l] = static_cast<Word>(read_element(from, at, leaf.width));
        if (++at == leaf.period.by) at = 0;
      }
      return;
    }
    case Leaf::Mode::kOuter:
      for (int l = 0; l < count; ++l)
        to[l] = static_cast<Word>(read_element(from, leaf.period.divide(first + l), leaf.width));
      return;
    case Leaf::Mode::kGeneral:
      for (int l = 0; l < count; ++l)
        to[l] = static_cast<Word>(read_element(from, leaf.strides.source(first + l), leaf.width));
      return;
  }
}

template <typename Word>
CAIRN_DEVICE void store(std::byte* to, std::int64_t first, int count, std::uint8_t width,
                        const Word* from) {
  if (sizeof(Word) == 4 && width == 4 && count == kLanes &&
      (reinterpret_cast<std::uintptr_t>(to) & 15) == 0) {
    FourWords all;
    for (int l = 0; l < kLanes; ++l) all.word[l] = static_cast<std::uint32_t>(from[l]);
    *reinterpret_cast<FourWords*>(to + first * 4) = all;
    return;
  }
  for (int l = 0; l < count; ++l) write_element(to, first + l, width, from[l]);
}

template <typename Word, int kRegisters>
struct Interpreter {
  const ProgramStep* steps;
  const Leaf* leaves;
  int step_count;
  std::uint8_t width;
  std::int64_t elements;
  LeafPointers from;
  std::byte* result;
  FaultSite fault;

  CAIRN_KERNEL_BODY void operator()(std::int64_t chunk) const {
    Word registers[kRegisters][kLanes];
    const std::int64_t first = chunk * kLanes;
    const int count = static_cast<int>(elements - first < kLanes ? elements - first : kLanes);
    for (int s = 0; s < step_count; ++s) {
      const ProgramStep& step = steps[s];
      Word in[3][kLanes] = {}, out[kLanes] = {};
      CAIRN_UNROLL
      for (int k = 0; k < 3; ++k) {
        const Operand operand = step.operands[k];
        if (operand.kind == Operand::Kind::kNone) break;
        if (operand.kind == Operand::Kind::kLeaf)
          fetch(leaves[operand.index], from.at[operand.index], first, count, in[k]);
        else
          for (int l = 0; l < kLanes; ++l) in[k][l] = registers[operand.index][l];
      }
      run(step, first, count, in, out);
      if (s + 1 == step_count)
        store(result, first, count, width, out);
      else
        for (int l = 0; l < kLanes; ++l) registers[step.made][l] = out[l];
    }
  }

 private:
  CAIRN_DEVICE void run(const ProgramStep& step, std::int64_t first, int count,
                        const Word (&in)[3][kLanes], Word* out) const {
    switch (step.code) {
      case Code::where:
        for (int l = 0; l < kLanes; ++l)
          out[l] = value_of<Bool>(in[0][l]) != 0 ? in[1][l] : in[2][l];
        return;
      case Code::cast:
        for (int l = 0; l < kLanes; ++l) out[l] = convert(in[0][l], step.from, step.to);
        return;
      case Code::div_i:
      case Code::div_l:
      case Code::floor_mod_i:
      case Code::floor_mod_l:
        for (int l = 0; l < count; ++l)
          if (in[1][l] == 0) fault.report(first + l, 0);
        break;
      default: break;
    }
    compute(step.code, in[0], in[1], out);
  }
};

}  // namespace cairn::cuda
