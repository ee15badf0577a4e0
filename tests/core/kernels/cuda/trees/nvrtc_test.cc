// That NVRTC compiles what is generated, where a toolkit is. It needs no GPU for that.
#include "core/kernels/cuda/trees/nvrtc.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/kernels/cuda/trees/tree_source.h"
#include "tests/core/kernels/cuda/trees/some_trees.h"

namespace cairn::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

constexpr int kCapability = 90;

struct NvrtcTest : ::testing::Test {
  void SetUp() override {
    if (!nvrtc().found) GTEST_SKIP() << nvrtc().text;
  }
};

TEST_F(NvrtcTest, CompilesTheKernelOfEveryTree) {
  for (const auto& [what, tree] : cairn::testing::trees_with_kernels()) {
    const auto made = tree_source(Program::of(tree));
    ASSERT_TRUE(made.has_value()) << what;
    std::string code;
    ASSERT_NO_THROW(code = compile_kernel(made->source, kCapability)) << what << "\n"
                                                                      << made->source.text;
    EXPECT_THAT(code, StartsWith("\177ELF")) << what;
    EXPECT_THAT(code, HasSubstr(made->source.name)) << what;
  }
}

TEST_F(NvrtcTest, SaysWhatIsWrongWithASource) {
  const KernelSource wrong{"wrong", "extern \"C\" __global__ void wrong() { no_such_thing(); }"};
  EXPECT_THAT([&] { compile_kernel(wrong, kCapability); },
              ThrowsMessage<InternalError>(AllOf(HasSubstr("wrong"), HasSubstr("no_such_thing"))));
}

TEST_F(NvrtcTest, SaysThatItKnowsNoSuchDevice) {
  const auto made = tree_source(Program::of(cairn::testing::trees_with_kernels()[0].tree));
  EXPECT_THAT([&] { compile_kernel(made->source, 13); },
              ThrowsMessage<InternalError>(HasSubstr("NVRTC: ")));
}

TEST_F(NvrtcTest, HasAKeyForEveryKindOfDevice) {
  EXPECT_NE(compiler_key(80), compiler_key(90));
  EXPECT_THAT(compiler_key(90), AllOf(HasSubstr(nvrtc().text), HasSubstr("sm_90"),
                                      HasSubstr("softplus"), HasSubstr("CAIRN_TREE_KERNEL")));
}

}  // namespace
}  // namespace cairn::cuda
