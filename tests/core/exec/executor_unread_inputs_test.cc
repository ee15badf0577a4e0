#include "tests/core/exec/unread_inputs.h"

#include <gmock/gmock.h>

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json cases(const std::string& kind, const std::string& in) {
  return parse_json(R"({"cases": [{"id": "one", "kind": ")" + kind + R"(", "in": )" + in + "}]}",
                    "here");
}

std::vector<std::string> unread(const std::string& in) {
  KnownForms known;
  add_known_forms(cases("lookup", R"({"ids": [1, 2], "arguments": {"axis": 0}, "size": null})"),
                  known);
  return unread_inputs(cases("lookup", in), known);
}

TEST(UnreadInputs, AreThoseThatNoCaseOfTheKindHas) {
  EXPECT_THAT(unread(R"({"ids": [5]})"), IsEmpty());
  EXPECT_THAT(unread(R"({"ids": [], "arguments": {"axis": null}, "more": null})"), IsEmpty());
  EXPECT_THAT(unread(R"({"ids": [5], "validate": true})"),
              ElementsAre("no test reads \"validate\" of case \"one\" (lookup)"));
  EXPECT_THAT(unread(R"({"ids": [[5, 6]]})"),
              ElementsAre("no test reads \"ids[][]\" of case \"one\" (lookup)"));
  EXPECT_THAT(unread(R"({"arguments": {"axis": [0], "keep": 1}})"),
              ElementsAre("no test reads \"arguments.axis[]\" of case \"one\" (lookup)",
                          "no test reads \"arguments.keep\" of case \"one\" (lookup)"));
  EXPECT_THAT(unread(R"({"size": 3})"),
              ElementsAre("no test reads \"size\" of case \"one\" (lookup)"));
}

// Another test fails for it.
TEST(UnreadInputs, OfAKindThatNobodyKnowsAreNone) {
  EXPECT_THAT(unread_inputs(cases("other", R"({"ids": [5]})"), {}), IsEmpty());
}

}  // namespace
}  // namespace cairn::testing
