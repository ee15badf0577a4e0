// An error in the function of a map() or a filter() names the line that recorded it.
#include "data/dataset/map_origins.h"

#include <gmock/gmock.h>

#include "core/graph/ops.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::StartsWith;

// A front-end whose program stands at the line that the test says.
class MapOrigins : public ::testing::Test {
 protected:
  MapOrigins() {
    set_origin_source([] { return make_origin("/home/me/train.py", "mapped", line); });
  }
  ~MapOrigins() override { set_origin_source(nullptr); }

  // The error of reading a dataset to its end.
  static ErrorParts error_of(const Dataset& dataset) {
    try {
      read_all(dataset);
    } catch (const Error&) {
      return error_parts(std::current_exception());
    }
    ADD_FAILURE() << "there was no error";
    return {};
  }
  static Array looked_up(const cairn::Features& features) {
    return gather(Array(Tensor::of<float>({2}, std::vector<float>{1, 2})), features["value"]);
  }

  static inline std::int32_t line = 1;
};

TEST_F(MapOrigins, AnErrorOfAMapNamesItsLine) {
  line = 31;
  const Dataset dataset = Dataset::range(3).map([](const cairn::Features& features) {
    return Outputs{{"x", looked_up(features)}};
  });
  const ErrorParts error = error_of(dataset);
  EXPECT_THAT(error.message, StartsWith("train.py:31, in mapped: gather("));
  EXPECT_EQ(error.place.origin, "/home/me/train.py:31");
}

TEST_F(MapOrigins, AnErrorOfAFilterNamesItsLine) {
  line = 32;
  const Dataset dataset = Dataset::range(3).filter(
      [](const cairn::Features& features) { return looked_up(features) > Array(0.0f); });
  EXPECT_THAT(error_of(dataset).message, StartsWith("train.py:32, in mapped: gather("));
}

TEST_F(MapOrigins, OfAnErrorFromAnotherProcessTheOnlyOperationThatItCanBeIsNamed) {
  line = 33;
  Dataset::range(3).map([](const cairn::Features& features) {
    return Outputs{{"x", erfc(looked_up(features))}};
  });
  ErrorParts error{.code = Code::kInvalidArgument, .message = "could not be read: node 3, erfc(x)"};
  add_map_origin(error);
  EXPECT_EQ(error.message, "could not be read: train.py:33, in mapped: erfc(x)");
  EXPECT_EQ(error.place.origin, "/home/me/train.py:33");
}

TEST_F(MapOrigins, WhereSeveralOperationsCanBeMeantNoneIsNamed) {
  for (const std::int32_t each : {34, 35}) {
    line = each;
    const float by = static_cast<float>(each);
    Dataset::range(3).map([by](const cairn::Features& features) {
      return Outputs{{"x", sin(looked_up(features) * Array(by))}};
    });
  }
  ErrorParts error{.code = Code::kInvalidArgument, .message = "node 5, sin(x)"};
  add_map_origin(error);
  EXPECT_EQ(error.message, "node 5, sin(x)");
  error.message = "node 99, no_such_operation(x)";
  add_map_origin(error);
  EXPECT_EQ(error.message, "node 99, no_such_operation(x)");
}

}  // namespace
}  // namespace cairn::testing
