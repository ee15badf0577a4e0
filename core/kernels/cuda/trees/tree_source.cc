#include "core/kernels/cuda/trees/tree_source.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/kernels/cuda/trees/tree_kernel.h"

namespace cairn::cuda {
namespace {

constexpr int kPackMax = 8;

// The interpreter reports an integer that is divided by zero.
bool may_fault(Code code) {
  return code == Code::div_i || code == Code::div_l || code == Code::floor_mod_i ||
         code == Code::floor_mod_l;
}

std::string_view stored_type(std::uint8_t width) {
  switch (width) {
    case 1: return "std::uint8_t";
    case 2: return "std::uint16_t";
    case 4: return "std::uint32_t";
    default: return "std::uint64_t";
  }
}

// As casts.h has them.
std::string_view cast_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "AsNumber<float>";
    case DType::kFloat64: return "AsNumber<double>";
    case DType::kInt32: return "AsNumber<std::int32_t>";
    case DType::kInt64: return "AsNumber<std::int64_t>";
    case DType::kUint8: return "AsNumber<std::uint8_t>";
    case DType::kBool: return "AsBool";
    case DType::kBfloat16: return "AsBfloat16";
    case DType::kFloat16: return "AsFloat16";
    default: return "";
  }
}

// For names of files and functions. Code that needs certainty compares the text itself.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bits
  for (const char one : text) hash = (hash ^ static_cast<unsigned char>(one)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {
    int widest = program.width;
    for (const Leaf& leaf : program.leaves)
      if (leaf.mode == Leaf::Mode::kDense) widest = std::max<int>(widest, leaf.width);
    made_.pack = std::min(kPackMax, kWordMax / widest);
  }

  // False: it cannot be written.
  bool write() {
    if (program_.leaves.size() > TreeArguments::kLeavesMax || program_.elements >> 32 != 0)
      return false;
    for (std::size_t i = 0; i < program_.leaves.size(); ++i)
      if (!write_leaf(i, program_.leaves[i])) return false;
    for (std::size_t s = 0; s < program_.steps.size(); ++s)
      if (!write_step(s, program_.steps[s])) return false;
    write_result();
    return true;
  }

  TreeSource finish() {
    const std::string word = program_.wide ? "std::uint64_t" : "std::uint32_t";
    const auto text = [&](const std::string& name) {
      return str("#include \"core/kernels/cuda/trees/tree_kernel.h\"\n\n",
                 "namespace cairn::cuda::trees {\n\n", "struct ", name, " {\n",
                 "  using Word = ", word, ";\n", "  static constexpr int kPack = ", made_.pack,
                 ";\n", "  const TreeArguments& a;\n", members_, "\n", "  CAIRN_DEVICE explicit ",
                 name, "(const TreeArguments& given) : a(given)", initialisers_, " {}\n\n",
                 "  template <int kCount>\n",
                 "  CAIRN_DEVICE void compute(std::int64_t first) const {\n", reads_, "    Pack<",
                 stored_type(program_.width), ", kCount> made;\n", "    CAIRN_UNROLL\n",
                 "    for (int l = 0; l < kCount; ++l) {\n", steps_, "    }\n",
                 "    write(a.result, first, made);\n", "  }\n", "};\n\n",
                 "}  // namespace cairn::cuda::trees\n\n", "CAIRN_TREE_KERNEL(", name, ")\n");
    };
    made_.source.name = str("cairn", called_.substr(0, kNameMax), "_", hash_of(text("")));
    made_.source.text = text(made_.source.name);
    return made_;
  }

 private:
  static constexpr std::size_t kNameMax = 60;

  // Writes the reads of a leaf that precede a pack's elements; scalars are read once per thread.
  bool write_leaf(std::size_t i, const Leaf& leaf) {
    const std::string_view type = stored_type(leaf.width);
    const std::string from = str("a.leaves[", i, "]");
    const bool whole = leaf.period.by % made_.pack == 0;
    int boundary = 1;
    switch (leaf.mode) {
      case Leaf::Mode::kGeneral: reads_ += strided_text(i, leaf); break;
      case Leaf::Mode::kScalar:
        members_ += str("  const ", type, " s", i, ";\n");
        initialisers_ += str(", s", i, "(scalar<", type, ">(given.leaves[", i, "]))");
        break;
      case Leaf::Mode::kDense:
        reads_ += str("    const auto p", i, " = dense<", type, ", kCount>(", from, ", first);\n");
        boundary = boundary_of(leaf.width * made_.pack);
        break;
      case Leaf::Mode::kInner:
      case Leaf::Mode::kOuter: {
        const bool is_inner = leaf.mode == Leaf::Mode::kInner;
        const int period = add_period(leaf.period);
        if (period < 0) return false;
        reads_ += str("    const auto p", i, " = ", is_inner ? "inner<" : "outer<", type,
                      ", kCount, ", whole ? "true" : "false", ">(", from, ", a.periods[", period,
                      "], at", period, ");\n");
        if (is_inner && whole) boundary = boundary_of(leaf.width * made_.pack);
        break;
      }
    }
    made_.boundaries.push_back(boundary);
    const std::string element =
        leaf.mode == Leaf::Mode::kScalar ? str("s", i) : str("p", i, ".at[l]");
    // The bits of a bfloat16 are the upper half of a float's.
    steps_ +=
        str("      const Word x", i, " = Word{", element, "}", leaf.narrow ? " << 16" : "", ";\n");
    return true;
  }

  // The outermost axis, which may be a batch, is no part of the text.
  static std::string strided_text(std::size_t i, const Leaf& leaf) {
    const Strides& strides = leaf.strides;
    const std::string_view type = stored_type(leaf.width);
    std::string axes;
    for (int axis = strides.rank - 1; axis > 0; --axis)
      axes += str("      take_axis<", strides.dims[axis], ", ", strides.strides[axis],
                  ">(rest, at);\n");
    return str("    Pack<", type, ", kCount> p", i, ";\n", "    CAIRN_UNROLL\n",
               "    for (int l = 0; l < kCount; ++l) {\n",
               "      auto rest = static_cast<std::uint32_t>(first + l);\n",
               "      std::int64_t at = 0;\n", axes, "      at += std::int64_t{rest} * ",
               strides.strides[0], ";\n", "      p", i, ".at[l] = static_cast<const ", type,
               "*>(a.leaves[", i, "])[at];\n", "    }\n");
  }

  // Its place; -1: there is no room for it.
  int add_period(const Divisor& divisor) {
    const auto period = static_cast<std::uint32_t>(divisor.by);
    const auto found = std::find(made_.periods.begin(), made_.periods.end(), period);
    if (found != made_.periods.end()) return static_cast<int>(found - made_.periods.begin());
    if (made_.periods.size() == TreeArguments::kPeriodsMax) return -1;
    const std::size_t i = made_.periods.size();
    made_.periods.push_back(period);
    reads_ += str("    const Place at", i, " = place_of(first, a.periods[", i, "]);\n");
    return static_cast<int>(i);
  }

  // Each value has a name of its own; the compiler finds registers.
  bool write_step(std::size_t s, const ProgramStep& step) {
    if (may_fault(step.code) || step.code == Code::none) return false;
    std::string operands;
    for (const Operand& operand : step.operands) {
      if (operand.kind == Operand::Kind::kNone) break;
      operands += str(operands.empty() ? "" : ", ", operand.kind == Operand::Kind::kLeaf
                                                        ? str("x", int{operand.index})
                                                        : str("r", in_register_[operand.index]));
    }
    called_ += str("_", name_of(step.code));
    if (step.code == Code::cast) {
      const std::string_view from = cast_type(step.from), to = cast_type(step.to);
      if (from.empty() || to.empty()) return false;
      steps_ += str("      const Word r", s, " = cast_word<Word, ", from, ", ", to, ">(", operands,
                    ");\n");
    } else {
      steps_ += str("      const Word r", s, " = operation::", name_of(step.code), "<Word>(",
                    operands, ");\n");
    }
    in_register_[step.made] = s;
    return true;
  }

  void write_result() {
    made_.result_boundary = boundary_of(program_.width * made_.pack);
    const std::string last = str("r", program_.steps.size() - 1);
    steps_ += program_.narrow
                  ? str("      made.at[l] = narrow_bfloat16(value_of<float>(", last, "));\n")
                  : str("      made.at[l] = static_cast<", stored_type(program_.width), ">(", last,
                        ");\n");
  }

  const Program& program_;
  TreeSource made_;
  std::string called_, members_, initialisers_, reads_, steps_;
  std::array<std::size_t, 256> in_register_{};  // the step that made what is there
};

}  // namespace

std::optional<TreeSource> tree_source(const Program& program) {
  Writer writer(program);
  if (!writer.write()) return std::nullopt;
  return writer.finish();
}

}  // namespace cairn::cuda
