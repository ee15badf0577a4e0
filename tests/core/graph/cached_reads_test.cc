#include "core/graph/cached_reads.h"

#include <gtest/gtest.h>

#include "core/exec/local_runtime.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

float value_of(const Array& array) { return array.eval().item<float>(); }

TEST(CachedReads, GiveWhatWasReadFirstUntilTheScopeEnds) {
  LocalRuntime runtime;
  Variable v = runtime.create_variable({.name = "v"});
  {
    auto cached = cache_variable_reads();
    EXPECT_EQ(value_of(v.read()), 0.0f);
    v.assign(1.0f);
    EXPECT_EQ(value_of(v.read()), 0.0f) << "what is written is not seen";
  }
  EXPECT_EQ(value_of(v.read()), 1.0f);
  auto again = cache_variable_reads();
  EXPECT_EQ(value_of(v.read()), 1.0f) << "another scope remembers nothing of the first";
}

TEST(CachedReads, AreOneReadOfAFunctionAcrossUpdates) {
  Variable v = testing::make_variable("v", {2});
  auto body = [&](const auto&) {
    const Array before = v.read();
    v.assign_add(before);
    return before + v.read();
  };
  EXPECT_EQ(testing::count_ops(testing::trace_function({}, body).graph, "read_variable"), 2);
  auto cached = cache_variable_reads();
  EXPECT_EQ(testing::count_ops(testing::trace_function({}, body).graph, "read_variable"), 1);
  EXPECT_EQ(testing::count_ops(testing::trace_function({}, body).graph, "read_variable"), 1)
      << "each function reads for itself";
}

TEST(CachedReads, DoNotNest) {
  auto cached = cache_variable_reads();
  EXPECT_THROW(cache_variable_reads(), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
