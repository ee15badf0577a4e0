#include "tools/job/train/plot_page.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

namespace cairn::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The texts behind each `begin`, up to the next `end`.
std::vector<std::string> between(const std::string& page, const std::string& begin,
                                 const std::string& end) {
  std::vector<std::string> all;
  for (auto at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    all.push_back(page.substr(at, page.find(end, at) - at));
  }
  return all;
}
std::vector<std::string> titles(const std::string& page) { return between(page, "<h2>", "</h2>"); }
std::vector<std::string> paths(const std::string& page) {
  std::vector<std::string> all;
  for (const std::string& attributes : between(page, "<path ", ">"))
    all.push_back(between(attributes, " d=\"", "\"").at(0));
  return all;
}
// The numbers of the ticks, on the left or below.
std::vector<std::string> ticks(const std::string& page, const std::string& anchor) {
  std::vector<std::string> all = between(page, "text-anchor=\"" + anchor + "\">", "</text>");
  std::erase_if(all, [](const std::string& text) {
    return text.find_first_not_of("0123456789.") != std::string::npos;
  });
  return all;
}

RunCurves run(const std::string& name, std::vector<RunCurve> curves) {
  return {name, std::move(curves), {}};
}

TEST(PlotPage, HasADiagramForEachThingAndACurveForEachRun) {
  const RunCurve loss{"loss", {{0, 1}, {100, 0.5}}}, auc{"auc, test data", {{100, 0.8}}};
  const std::string page = plot_page({run("a", {loss, {"staleness", {{0, 1}, {100, 2}}}}),
                                      run("b", {loss, {"examples/s", {{0, 9}, {9, 8}}}, auc})});
  EXPECT_THAT(page, StartsWith(kPlotBegins));
  EXPECT_THAT(titles(page),
              ElementsAre("loss", "auc, test data", "examples/s", "staleness", "Last values"));
  EXPECT_EQ(paths(page).size(), 5u);
  EXPECT_THAT(between(page, "</span>", "</li>"), ElementsAre("a", "b"));
}

// The area of a diagram is 62 to 704 across and 12 to 260 downwards.
TEST(PlotPage, ACurveRunsThroughItsPointsBetweenTheTicks) {
  const std::string page = plot_page({run("a", {{"loss", {{0, 1}, {50, 0.5}, {100, 0}}}})});
  EXPECT_THAT(paths(page), ElementsAre("M62.0 12.0L383.0 136.0L704.0 260.0"));
  EXPECT_THAT(ticks(page, "end"), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1"));
  EXPECT_THAT(ticks(page, "middle"), ElementsAre("0", "20", "40", "60", "80", "100"));
}

TEST(PlotPage, AGapBreaksTheCurveAndALonePointIsADot) {
  const std::string page =
      plot_page({run("a", {{"loss", {{0, 1}, {50, std::nan("")}, {100, 0}}}})});
  EXPECT_THAT(paths(page), ElementsAre("M62.0 12.0M704.0 260.0"));
  EXPECT_THAT(between(page, "<circle cx=\"", "\""), ElementsAre("62.0", "704.0"));
}

TEST(PlotPage, ALongCurveIsThinnedAndKeepsItsPeak) {
  RunCurve loss{"loss", {}};
  for (int i = 0; i < 100'000; ++i) loss.points.push_back({double(i), i == 54'321 ? 10.0 : 0.0});
  const std::string page = plot_page({run("a", {loss})});
  EXPECT_LT(page.size(), 50'000u);
  EXPECT_THAT(paths(page).at(0), HasSubstr(" 12.0L"));  // the top
}

TEST(PlotPage, NamesAreTextAndNothingIsLoadedFromElsewhere) {
  const std::string page = plot_page({run("<script>&\"", {{"loss", {{1, 2}}}})});
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;&amp;&quot;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

TEST(PlotPage, RunsWithoutAnythingToDrawAreStillNamed) {
  const std::string page = plot_page({run("a", {})});
  EXPECT_THAT(titles(page), ElementsAre("Last values"));
  EXPECT_THAT(page, HasSubstr("<td>a</td><td>0</td>"));
}

}  // namespace
}  // namespace cairn::tools
