// Arrays in expressions: operators, and what C++ numbers become in them.
#include <gmock/gmock.h>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

Array row_of(std::vector<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

template <typename T>
std::vector<T> numbers_in(const Array& array) {
  const Tensor value = array.eval();
  return {value.values<T>().begin(), value.values<T>().end()};
}

TEST(Arrays, AreChangedInPlaceByCompoundAssignment) {
  Array x = row_of({1, 2, 3});
  const Array before = x;
  x += row_of({1, 1, 1});
  x *= 2.0f;
  x -= 1.0f;
  x /= 2;
  EXPECT_THAT(numbers_in<float>(x), ElementsAre(1.5f, 2.5f, 3.5f));
  // the expression is another one, its parts stay
  EXPECT_THAT(numbers_in<float>(before), ElementsAre(1, 2, 3));
}

TEST(Arrays, CompareElementByElement) {
  const Array x = row_of({1, 2, 3}), y = row_of({3, 2, 1});
  EXPECT_THAT(numbers_in<bool>(x == y), ElementsAre(false, true, false));
  EXPECT_THAT(numbers_in<bool>(x != y), ElementsAre(true, false, true));
  EXPECT_THAT(numbers_in<bool>(x < y), ElementsAre(true, false, false));
  EXPECT_THAT(numbers_in<bool>(x <= y), ElementsAre(true, true, false));
  EXPECT_THAT(numbers_in<bool>(x > y), ElementsAre(false, false, true));
  EXPECT_THAT(numbers_in<bool>(x >= y), ElementsAre(false, true, true));
  EXPECT_THAT(numbers_in<bool>(2 < x), ElementsAre(false, false, true));
  EXPECT_THAT(numbers_in<float>(where(x == 2, 10, x)), ElementsAre(1, 10, 3));
}

TEST(Arrays, AreRoundedDownUpAndToTheNearestWhereHalvesGoToTheEvenNumber) {
  const Array x = row_of({-1.5f, -0.5f, 0.4f, 0.5f, 1.5f, 2.5f});
  EXPECT_THAT(numbers_in<float>(floor(x)), ElementsAre(-2, -1, 0, 0, 1, 2));
  EXPECT_THAT(numbers_in<float>(ceil(x)), ElementsAre(-1, 0, 1, 1, 2, 3));
  EXPECT_THAT(numbers_in<float>(round(x)), ElementsAre(-2, 0, 0, 0, 2, 2));
}

template <typename T>
struct Integers : ::testing::Test {};
using IntegerTypes =
    ::testing::Types<char, signed char, short, unsigned short, int, unsigned, long, unsigned long,
                     long long, unsigned long long, std::size_t, std::int64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

TYPED_TEST(Integers, BecomeWhatTheyStandBeside) {
  const TypeParam two = 2;
  const Array wide = Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{1, 3});
  const Array narrow = Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{1, 3});
  EXPECT_THAT(numbers_in<float>(row_of({1, 3}) * two), ElementsAre(2, 6));
  EXPECT_THAT(numbers_in<std::int64_t>(wide + two), ElementsAre(3, 5));
  EXPECT_THAT(numbers_in<std::int32_t>(two - narrow), ElementsAre(1, -1));
  EXPECT_THAT(numbers_in<bool>(wide > two), ElementsAre(false, true));
  EXPECT_THAT(numbers_in<std::int64_t>(where(wide > two, two, wide)), ElementsAre(1, 2));

  const bool small = sizeof(TypeParam) < 4 || std::is_same_v<TypeParam, int>;
  EXPECT_EQ(Array(two).dtype(), small ? DType::kInt32 : DType::kInt64);
  EXPECT_EQ((Array(two) + 1).dtype(), small ? DType::kInt32 : DType::kInt64);
  EXPECT_EQ((1 + Array(two)).dtype(), small ? DType::kInt32 : DType::kInt64);
}

TEST(Integers, TakeTheTypeOfTheVariableTheyAreAssignedTo) {
  Variable v = current_variable_creator().create_variable({.name = "integers_v", .shape = {}});
  v.assign(3);
  v.assign_add(4L);
  v.assign_sub(std::size_t{2});
  EXPECT_EQ(v.read().eval().item<float>(), 5.0f);
  EXPECT_EQ((v + 1).eval().item<float>(), 6.0f);
}

TEST(Integers, ThatDoNotFitAreRefused) {
  const Array narrow = Tensor::scalar<std::int32_t>(1);
  EXPECT_THAT(message_of([&] { narrow + (std::int64_t{1} << 40); }),
              HasSubstr("1099511627776 does not fit into int32"));
  EXPECT_THAT(message_of([&] { Array(~std::uint64_t{0}); }),
              HasSubstr("18446744073709551615 is beyond int64"));
  EXPECT_EQ((narrow + 2147483647L).dtype(), DType::kInt32);
}

TEST(Numbers, ThatAreNotIntegersKeepTheirType) {
  const Array counts = Tensor::scalar<std::int64_t>(1);
  EXPECT_THROW(counts * 1.5f, InvalidArgumentError);
  EXPECT_THROW(counts + true, InvalidArgumentError);
  EXPECT_THROW(counts + Array(Tensor::scalar<std::int32_t>(1)), InvalidArgumentError);
  EXPECT_EQ(Array(true).dtype(), DType::kBool);
  EXPECT_EQ(Array(1.5L).dtype(), DType::kFloat32);
}

}  // namespace
}  // namespace cairn
