// Trees as kernels of their own: that they are used where there is a compiler, and have the
// interpreter's bits. Without a GPU the compiler is that of the host (compiled_trees.h).
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "core/tensor/bfloat16.h"
#include "tests/core/kernels/cuda/some_gpu.h"
#include "tests/core/kernels/cuda/trees/some_trees.h"
#ifndef CAIRN_ON_GPU
#include "core/kernels/cuda/trees/tree_source.h"
#include "tests/core/kernels/cuda/trees/compiled_trees.h"
#endif

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using Bytes = std::vector<std::byte>;

#ifdef CAIRN_ON_GPU

struct Compiled : ::testing::Test, SomeGpu {
  void SetUp() override {
    const cuda::CompiledFigures figures = gpus().compiled();
    if (!figures.compiles) GTEST_SKIP() << figures.text;
  }
  ~Compiled() override { compile(true); }
  static void compile(bool on) { ::setenv("CAIRN_NVRTC", on ? "1" : "0", 1); }
  static int kernels() { return gpus().compiled().trees; }
  static void expect_packs(bool) {}
};

#else

struct Compiled : ::testing::Test, SomeGpu {
  // Its threads run one after another.
  class Kernel final : public cuda::CompiledKernel {
   public:
    Kernel(Compiled& test, HostKernel run) : test_(test), run_(run) {}
    void launch(cuda::Stream, std::int64_t blocks, const void* parameter,
                std::size_t bytes) override {
      EXPECT_GT(blocks, 0);
      cuda::TreeArguments arguments;
      ASSERT_EQ(bytes, sizeof arguments);
      std::memcpy(&arguments, parameter, bytes);
      test_.packed = arguments.packed;
      const HostKernel run = run_;
      test_.driver.run_on_host([arguments, run] {
        constexpr std::int64_t kThreads = 3;
        for (std::int64_t i = 0; i < kThreads; ++i) run(arguments, i, kThreads);
      });
    }

   private:
    Compiled& test_;
    const HostKernel run_;
  };

  int made = 0;
  bool packed = false;  // as the last launch was given it
  int kernels() const { return made; }
  // A host forgives words that do not lie on their boundaries.
  void expect_packs(bool wanted) const { EXPECT_EQ(packed, wanted); }
  void compile(bool on) {
    if (!on) return driver.compile_by({});
    driver.compile_by([this](const cuda::KernelSource& source) {
      const auto found = compiled_trees().find(source.name);
      CAIRN_CHECK(found != compiled_trees().end() && found->second.text == source.text,
                  "the tests were built with other sources: ", source.text);
      ++made;
      return std::make_shared<Kernel>(*this, found->second.run);
    });
  }
};

#endif

// Positive numbers, and with `any` others, the largest and NaN among them.
Bytes values_of(const TensorType& type, unsigned seed, bool any) {
  std::mt19937 random(seed);
  const auto n = static_cast<std::size_t>(type.shape.elements());
  Bytes made(n * dtype_bytes(type.dtype));
  std::uniform_real_distribution<float> reals(any ? -3.0f : 0.1f, 3.0f);
  const auto fill = [&](auto one) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto value = one();
      std::memcpy(made.data() + i * sizeof value, &value, sizeof value);
    }
  };
  const auto real = [&] {
    constexpr float kOdd[] = {0, -0.0f, 3e38f, -3e38f, std::numeric_limits<float>::quiet_NaN()};
    const float number = reals(random);
    return any && random() % 16 == 0 ? kOdd[random() % std::size(kOdd)] : number;
  };
  switch (type.dtype) {
    case DType::kFloat32: fill(real); break;
    case DType::kBfloat16: fill([&] { return to_bfloat16(real()); }); break;
    case DType::kFloat16: fill([&] { return to_float16(real()); }); break;
    case DType::kBool: fill([&] { return static_cast<std::uint8_t>(random() % 2); }); break;
    case DType::kInt32: fill([&] { return static_cast<std::int32_t>(random() % 9) + 1; }); break;
    default: fill([&] { return static_cast<std::int64_t>(random()); }); break;
  }
  return made;
}

// Replaces every NaN by one and the same: which NaN an operation returns, and its sign, is up to
// the host's compiler.
void unify_nans(DType dtype, Bytes& values) {
  const auto unify = [&](auto infinity) {
    using Bits = decltype(infinity);
    for (std::size_t i = 0; i + sizeof(Bits) <= values.size(); i += sizeof(Bits)) {
      Bits bits{};
      std::memcpy(&bits, values.data() + i, sizeof bits);
      const auto magnitude = static_cast<Bits>(bits & std::numeric_limits<Bits>::max() >> 1);
      if (magnitude <= infinity) continue;
      bits = std::numeric_limits<Bits>::max();
      std::memcpy(values.data() + i, &bits, sizeof bits);
    }
  };
  if (dtype == DType::kFloat32) unify(std::uint32_t{0x7f800000});
  if (dtype == DType::kBfloat16) unify(std::uint16_t{0x7f80});
  if (dtype == DType::kFloat16) unify(std::uint16_t{0x7c00});
}

// Runs a tree on values that lie `offset` bytes behind a boundary.
class Prepared {
 public:
  Prepared(Device& device, const FusedTree& tree) : device_(device), tree_(tree) {
    run_ = device.fusion()->prepare(tree);
  }
  Bytes operator()(const std::vector<Bytes>& inputs, std::size_t offset) const {
    std::vector<std::shared_ptr<std::byte>> kept;
    const auto place = [&](std::size_t bytes) {
      kept.push_back(device_.allocate(bytes + offset));
      return kept.back().get() + offset;
    };
    std::vector<const std::byte*> in;
    for (const Bytes& input : inputs) {
      std::byte* const at = place(input.size());
      device_.copy(Device::Direction::kIn, at, input.data(), input.size());
      in.push_back(at);
    }
    Bytes made(static_cast<std::size_t>(tree_.result.shape.elements()) *
               dtype_bytes(tree_.result.dtype));
    std::byte* out = place(made.size());
    run_({in.data(), &out});
    device_.copy(Device::Direction::kOut, made.data(), out, made.size());
    unify_nans(tree_.result.dtype, made);
    return made;
  }

 private:
  Device& device_;
  const FusedTree& tree_;
  KernelRun run_;
};

std::vector<Bytes> inputs_of(const FusedTree& tree, bool any) {
  std::vector<TensorType> types = tree.leaves;
  if (tree.product) {
    types.push_back({DType::kFloat32, {tree.product->m, tree.product->k}});
    types.push_back({DType::kFloat32, {tree.product->k, tree.product->n}});
  }
  std::vector<Bytes> made;
  for (const TensorType& type : types)
    made.push_back(values_of(type, static_cast<unsigned>(made.size()) + 1, any));
  return made;
}

std::size_t differing(const Bytes& one, const Bytes& other) {
  std::size_t count = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    if (one[i] != other[i]) ++count;
  return count;
}

TEST_F(Compiled, TreesHaveTheBitsOfTheInterpreter) {
  const auto queue = gpu->open();
  for (const auto& [what, tree] : trees_with_kernels()) {
    SCOPED_TRACE(what);
    compile(false);
    const Prepared interpreted(*queue, tree);
    compile(true);
    const int before = kernels();
    const Prepared compiled(*queue, tree);
    EXPECT_EQ(kernels(), before + 1);
    for (const bool any : {false, true}) {
      const std::vector<Bytes> inputs = inputs_of(tree, any);
      const Bytes want = interpreted(inputs, 0);
      EXPECT_EQ(differing(compiled(inputs, 0), want), 0u);
      expect_packs(true);
      EXPECT_EQ(differing(compiled(inputs, 8), want), 0u) << "off the boundaries of packs";
      expect_packs(tree.result.dtype == DType::kBool && tree.leaves[0].dtype == DType::kBool);
    }
  }
}

#ifndef CAIRN_ON_GPU

TEST_F(Compiled, TreesOfMoreElementsThan32BitsCountHaveNoSource) {
  cuda::Program program = cuda::Program::of(trees_with_kernels()[3].tree);
  program.elements = (std::int64_t{1} << 32) - 1;
  EXPECT_TRUE(cuda::tree_source(program).has_value());
  ++program.elements;
  EXPECT_FALSE(cuda::tree_source(program).has_value());
}

TEST_F(Compiled, TreesThatTheCompilerRefusesAreInterpreted) {
  const auto queue = gpu->open();
  const FusedTree tree = trees_with_kernels()[3].tree;
  const std::vector<Bytes> inputs = inputs_of(tree, false);
  const Bytes want = Prepared(*queue, tree)(inputs, 0);
  int asked = 0;
  driver.compile_by([&](const cuda::KernelSource&) { return ++asked, nullptr; });
  EXPECT_EQ(differing(Prepared(*queue, tree)(inputs, 0), want), 0u);
  EXPECT_EQ(asked, 1);
}

#endif

TEST_F(Compiled, OtherTreesAreInterpreted) {
  const auto queue = gpu->open();
  compile(true);
  const int before = kernels();
  for (const auto& [what, tree] : trees_without_kernels()) {
    SCOPED_TRACE(what);
    const Prepared run(*queue, tree);
    EXPECT_EQ(kernels(), before);
    const std::vector<Bytes> inputs = inputs_of(tree, false);
    EXPECT_EQ(differing(run(inputs, 0), run(inputs, 8)), 0u);
  }
}

}  // namespace
}  // namespace cairn
