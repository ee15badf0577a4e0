#include "tools/job/parts/label_texts.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LabelTexts : public ::testing::Test {
 protected:
  // `label`: of the label's table; `more`: of [data].
  Job job(const std::string& label, const std::string& more = "",
          const std::string& model = "") const {
    return parse_job(str("[data]\ntrain = 'a.csv'\n", more,
                         "\n[data.csv]\ncolumns = ['y', 'x:float32']\nlabel = {column = 'y'", label,
                         "}\n[features]\nnumeric = ['x']\n[model]\nkind = 'deep'\n", model),
                     folder_.path() + "/job.toml");
  }
  std::string refusal(const Job& job) const {
    try {
      verify_label_texts(job);
      return "";
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
  }

  TempFolder folder_;
};

TEST_F(LabelTexts, APositiveTextThatNeverOccursIsAnErrorWithThoseThatDo) {
  folder_.write("a.csv", "1.0,5\n0.0,6\n0.0,7\n");
  EXPECT_THAT(refusal(job(", positive = ['1']")),
              AllOf(HasSubstr("data.csv.label.positive: no row of data.train has the label \"1\""),
                    HasSubstr("\"0.0\" (2 rows), \"1.0\" (1 row)")));
  EXPECT_EQ(refusal(job(", positive = ['1.0']")), "");
  EXPECT_EQ(refusal(job("", "", "")).empty(), true);
}

TEST_F(LabelTexts, SoIsANegativeTextAClassAndOneOfSeveral) {
  folder_.write("a.csv", "yes,5\nno,6\nno,7\n");
  EXPECT_THAT(refusal(job(", positive = ['yes'], negative = ['non']")),
              HasSubstr("data.csv.label.negative: no row of data.train has the label \"non\""));
  EXPECT_THAT(refusal(job(", positive = ['yes', 'Yes']")),
              HasSubstr("no row of the data has the label \"Yes\""));
  EXPECT_THAT(
      refusal(job("", "", "objective = 'multiclass'\nclasses = ['yes', 'no', 'perhaps']\n")),
      HasSubstr("model.classes: no row of the data has the label \"perhaps\""));
}

// As in the Adult data, whose test file writes labels with a full stop.
TEST_F(LabelTexts, ATextMayOccurInTheTestDataAlone) {
  folder_.write("a.csv", "yes,5\nno,6\n");
  folder_.write("b.csv", "no.,5\nyes.,6\n");
  EXPECT_EQ(refusal(job(", positive = ['yes', 'yes.']", "test = 'b.csv'")), "");
  EXPECT_THAT(refusal(job(", positive = ['yes.']", "test = 'b.csv'")),
              HasSubstr("no row of data.train has the label \"yes.\""));
}

TEST_F(LabelTexts, TestDataWithoutAPositiveRowIsWarnedOf) {
  folder_.write("a.csv", "yes,5\nno,6\n");
  folder_.write("b.csv", "NO,5\nYES,6\n");
  const Job evaluated = job(", positive = ['yes']", "test = 'b.csv'");
  EXPECT_EQ(refusal(evaluated), "");
  EXPECT_THAT(no_positive_warnings(evaluated),
              ElementsAre(AllOf(HasSubstr("data.test: every label counts as 0"),
                                HasSubstr("\"NO\" (1 row), \"YES\" (1 row)"))));
  folder_.write("b.csv", "no,5\nyes,6\n");
  EXPECT_THAT(no_positive_warnings(evaluated), IsEmpty());
}

TEST_F(LabelTexts, RowsThatAreLeftOutAreNoLabels) {
  folder_.write("a.csv", "yes,5\nno,6\n,7\nlate,50\n");
  EXPECT_THAT(refusal(job(", positive = ['late'], unknown = 'skip'", "where = 'x < 10'")),
              AllOf(HasSubstr("its labels are \"no\" (1 row), \"yes\" (1 row):")));
}

TEST_F(LabelTexts, LinesOfLibsvmHaveTheirLabelFirst) {
  folder_.write("a.libsvm", "# a comment\n+1 1:1 2:0.5\n-1 3:1\n");
  const auto job = [&](const std::string& label) {
    return parse_job(str("[data]\ntrain = 'a.libsvm'\nformat = 'libsvm'\n[data.libsvm]\n"
                         "dimension = 10\nlabel = {positive = ['",
                         label, "']}\n[model]\nkind = 'deep'\n"),
                     folder_.path() + "/job.toml");
  };
  EXPECT_THAT(refusal(job("1")), AllOf(HasSubstr("data.libsvm.label.positive"),
                                       HasSubstr("\"+1\" (1 row), \"-1\" (1 row)")));
  EXPECT_EQ(refusal(job("+1")), "");
}

}  // namespace
}  // namespace cairn::tools
