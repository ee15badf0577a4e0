#include "tools/job/train/plot_page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/base/error.h"

namespace cairn::tools {
namespace {

// In the units of the drawing: the whole, and what is left free around the curves for labels.
constexpr double kWidth = 720, kHeight = 300, kLeft = 62, kRight = 16, kTop = 12, kBottom = 40;
constexpr double kTicks = 5;          // about so many on an axis
constexpr std::size_t kColours = 8;   // c0 to c7 below
constexpr std::size_t kPieces = 700;  // of a curve: about one for each unit of its width
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1e21; --faint: #6b7078; --grid: #e3e5e8;
  --c0: #1f6fb4; --c1: #d9480f; --c2: #2b8a3e; --c3: #9c36b5; --c4: #b08900; --c5: #0b7285;
  --c6: #c2255c; --c7: #5c5f66; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181b; --ink: #e6e8ea; --faint: #9aa0a8;
  --grid: #2f3338; --c0: #5aa9e6; --c1: #ff8a4c; --c2: #63c174; --c3: #d184e6; --c4: #e0b93a;
  --c5: #4cc0d0; --c6: #f2709c; --c7: #adb2b9; } }
body { margin: 2rem auto; max-width: 760px; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--faint); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--grid); } .axis { stroke: var(--faint); }
.curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.legend span { display: inline-block; width: 1.4em; height: .25em; margin-right: .5em;
  vertical-align: middle; }
table { border-collapse: collapse; } td, th { padding: .15rem 1rem .15rem 0; text-align: left;
  border-bottom: 1px solid var(--grid); font-variant-numeric: tabular-nums; }
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

template <typename... Values>
std::string printed(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// "25k", "1.5M": labels of an axis have little room.
std::string number_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return printed("%.4gG", value / 1e9);
  if (size >= 1e6) return printed("%.4gM", value / 1e6);
  if (size >= 1e4) return printed("%.4gk", value / 1e3);
  return printed("%.4g", value);
}

// A part of an axis that begins and ends at ticks, whose distance is 1, 2 or 5 times a power of 10.
struct Axis {
  double from = 0, to = 1, tick = 0.2;

  static Axis over(double least, double greatest) {
    if (!(least <= greatest)) return {};
    if (least == greatest) {  // one value: in the middle
      const double around = least == 0 ? 1 : std::abs(least) * 0.1;
      least -= around;
      greatest += around;
    }
    const double raw = (greatest - least) / kTicks;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    const double shape = raw / power;
    const double tick = power * (shape <= 1 ? 1 : shape <= 2 ? 2 : shape <= 5 ? 5 : 10);
    return {std::floor(least / tick) * tick, std::ceil(greatest / tick) * tick, tick};
  }
  int ticks() const { return static_cast<int>(std::lround((to - from) / tick)) + 1; }
  // Rounded to whole ticks, so that 0 is not 1e-17.
  double at(int i) const { return (std::round(from / tick) + i) * tick; }
  double share(double value) const { return (value - from) / (to - from); }
};

struct Extent {
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  void add(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
};

// Keeps the least and the greatest value of each piece of a long curve, so that no peak is lost.
std::vector<RunCurve::Point> thinned(const std::vector<RunCurve::Point>& points) {
  if (points.size() <= 2 * kPieces) return points;
  std::vector<RunCurve::Point> kept;
  for (std::size_t i = 0; i < kPieces; ++i) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / kPieces);
    const auto end =
        points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / kPieces);
    // gaps compare as equal to everything, so one is kept only where a piece begins with it
    auto [low, high] = std::minmax_element(
        begin, end, [](const auto& a, const auto& b) { return a.value < b.value; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  return kept;
}

// ---- a diagram ----

const RunCurve* curve_of(const RunCurves& run, const std::string& what) {
  const auto found = std::ranges::find(run.curves, what, &RunCurve::what);
  return found == run.curves.end() ? nullptr : &*found;
}

class Diagram {
 public:
  Diagram(const std::vector<RunCurves>& runs, const std::string& what) : runs_(runs), what_(what) {
    Extent steps, values;
    for (const RunCurves& run : runs)
      if (const RunCurve* curve = curve_of(run, what))
        for (const RunCurve::Point& point : curve->points) {
          steps.add(point.step);
          values.add(point.value);
        }
    x_ = Axis::over(std::min(0.0, steps.least), steps.greatest);
    y_ = Axis::over(values.least, values.greatest);
  }

  std::string svg() const {
    std::string out =
        printed("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", kWidth, kHeight) +
        escaped(what_) + " over steps\">\n" + axes();
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (const RunCurve* curve = curve_of(runs_[i], what_)) out += drawn(*curve, i);
    return out + "</svg>\n";
  }

 private:
  double x(double step) const { return kLeft + x_.share(step) * (kWidth - kLeft - kRight); }
  double y(double value) const {
    return kHeight - kBottom - y_.share(value) * (kHeight - kTop - kBottom);
  }
  std::string axes() const {
    std::string out;
    for (int i = 0; i < y_.ticks(); ++i) {
      const double at = y(y_.at(i));
      out += printed("<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>", kLeft,
                     kWidth - kRight, at, at);
      out += printed("<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">", kLeft - 8, at + 4) +
             number_text(y_.at(i)) + "</text>\n";
    }
    const double bottom = kHeight - kBottom;
    out += printed("<line class=\"axis\" x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\"/>\n", kLeft,
                   kWidth - kRight, bottom, bottom);
    for (int i = 0; i < x_.ticks(); ++i)
      out +=
          printed("<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">", x(x_.at(i)), bottom + 17) +
          number_text(x_.at(i)) + "</text>\n";
    return out + printed("<text x=\"%g\" y=\"%g\" text-anchor=\"end\">step</text>\n",
                         kWidth - kRight, kHeight - 6);
  }
  // A curve of one point, as of one evaluation, is a dot; so is a point between two gaps.
  std::string drawn(const RunCurve& curve, std::size_t run) const {
    const std::string colour = str("var(--c", run % kColours, ")");
    std::string path, dots;
    const std::vector<RunCurve::Point> points = thinned(curve.points);
    const auto known = [&](std::size_t i) {
      return i < points.size() && std::isfinite(points[i].value);
    };
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!known(i)) continue;
      const bool first = i == 0 || !known(i - 1);
      const double at_x = x(points[i].step), at_y = y(points[i].value);
      path += printed("%c%.1f %.1f", first ? 'M' : 'L', at_x, at_y);
      if (first && !known(i + 1))
        dots += printed("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" ", at_x, at_y) +
                "style=\"fill:" + colour + "\"/>";
    }
    return str("<path class=\"curve\" style=\"stroke:", colour, "\" d=\"", path, "\"><title>",
               escaped(runs_[run].name), "</title></path>", dots, "\n");
  }

  const std::vector<RunCurves>& runs_;
  const std::string& what_;
  Axis x_, y_;
};

// ---- the page ----

// The order of diagrams: the loss, then the metrics, each by its first appearance, then the figures
// of the machine.
std::vector<std::string> diagrams_of(const std::vector<RunCurves>& runs) {
  const std::vector<std::string> last{"examples/s", "staleness"};
  std::vector<std::string> all{"loss"};
  for (const RunCurves& run : runs)
    for (const RunCurve& curve : run.curves)
      if (std::ranges::count(all, curve.what) + std::ranges::count(last, curve.what) == 0)
        all.push_back(curve.what);
  all.insert(all.end(), last.begin(), last.end());
  std::erase_if(all, [&](const std::string& what) {
    return std::ranges::none_of(runs, [&](const RunCurves& run) { return curve_of(run, what); });
  });
  return all;
}

std::string legend(const std::vector<RunCurves>& runs) {
  std::string out = "<ul class=\"legend\">\n";
  for (std::size_t i = 0; i < runs.size(); ++i)
    out += str("<li><span style=\"background:var(--c", i % kColours, ")\"></span>",
               escaped(runs[i].name), "</li>\n");
  return out + "</ul>\n";
}

// The last values of each run.
std::string table(const std::vector<RunCurves>& runs, const std::vector<std::string>& diagrams) {
  std::string out = "<h2>Last values</h2>\n<table>\n<tr><th>run</th><th>step</th>";
  for (const std::string& what : diagrams) out += "<th>" + escaped(what) + "</th>";
  out += "</tr>\n";
  for (const RunCurves& run : runs) {
    double step = 0;
    std::string cells;
    for (const std::string& what : diagrams) {
      const RunCurve* curve = curve_of(run, what);
      if (curve != nullptr) step = std::max(step, curve->points.back().step);
      const bool known = curve != nullptr && std::isfinite(curve->points.back().value);
      cells += "<td>" + (known ? number_text(curve->points.back().value) : "") + "</td>";
    }
    out += str("<tr><td>", escaped(run.name), "</td><td>", printed("%.0f", step), "</td>", cells,
               "</tr>\n");
  }
  return out + "</table>\n";
}

}  // namespace

std::string plot_page(const std::vector<RunCurves>& runs) {
  const std::vector<std::string> diagrams = diagrams_of(runs);
  std::string body;
  for (const std::string& what : diagrams)
    body += "<h2>" + escaped(what) + "</h2>\n" + Diagram(runs, what).svg();
  return str(kPlotBegins,
             "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
             "content=\"width=device-width\">\n<title>Runs of Cairn</title>\n<style>",
             kStyle, "</style>\n</head>\n<body>\n<h1>", runs.size() == 1 ? "A run" : "Runs",
             " of Cairn</h1>\n", legend(runs), body, table(runs, diagrams), "</body>\n</html>\n");
}

}  // namespace cairn::tools
