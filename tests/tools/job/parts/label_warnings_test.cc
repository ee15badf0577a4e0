#include "tools/job/parts/label_warnings.h"

#include <gmock/gmock.h>

#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LabelWarnings : public ::testing::Test {
 protected:
  std::vector<std::string> of(const std::string& rows, const std::string& label,
                              const std::string& model = "") {
    folder_.write("a.csv", rows);
    return label_warnings(parse_job("[data]\ntrain = '" + folder_.path() +
                                        "/a.csv'\n[data.csv]\ncolumns = ['x:float32', " + label +
                                        "\n[features]\nnumeric = ['x']\n[model]\n" + model,
                                    "some.toml"));
  }
  TempFolder folder_;
};

TEST_F(LabelWarnings, LabelsThatAreAllOfOneClassAreTold) {
  const std::string number = "'y:float32']\nlabel = {column = 'y'}",
                    text = "'y']\nlabel = {column = 'y', positive = 'yes'}",
                    threshold = "'y:float32']\nlabel = {column = 'y', above = 10}";
  EXPECT_THAT(of("1,1\n2,1\n", number), ElementsAre(HasSubstr("every label of data.train")));
  EXPECT_THAT(of("1,yes\n2,yes\n", text), ElementsAre(HasSubstr("is 1: the model can learn")));
  EXPECT_THAT(of("1,5\n2,6\n", threshold), ElementsAre(HasSubstr("is 0: the model can learn")));
  EXPECT_THAT(of("1,1\n2,0\n", number), IsEmpty());
  EXPECT_THAT(of("1,yes\n2,no\n", text), IsEmpty());
  EXPECT_THAT(of("1,5\n2,16\n", threshold), IsEmpty());
}

TEST_F(LabelWarnings, ADeclaredClassWithoutARowIsTold) {
  const std::string text = "'y']\nlabel = {column = 'y'}";
  EXPECT_THAT(of("1,a\n2,c\n", text,
                 "kind = 'deep'\nobjective = 'multiclass'\n"
                 "classes = ['a', 'b', 'c', 'd']\n"),
              ElementsAre(HasSubstr("of the class \"b\", \"d\" (model.classes")));
  EXPECT_THAT(
      of("1,a\n2,c\n", text, "kind = 'deep'\nobjective = 'multiclass'\nclasses = ['a', 'c']\n"),
      IsEmpty());
}

TEST(WhyNotANumber, AnAucOfOneClassSaysSo) {
  EXPECT_THAT(why_not_a_number("auc", "test"), HasSubstr("all of the test data are of one"));
  EXPECT_EQ(why_not_a_number("rmse", "test"), "");
}

}  // namespace
}  // namespace cairn::tools
