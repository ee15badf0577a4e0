#include "html.h"

#include "core/base/error.h"

namespace cairn::python {

std::string html_text(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '<')
      made += "&lt;";
    else if (c == '>')
      made += "&gt;";
    else if (c == '&')
      made += "&amp;";
    else if (c == '"')
      made += "&quot;";
    else
      made += c;
  }
  return made;
}

std::string html_table(const std::vector<std::string>& head, const HtmlRows& rows,
                       const std::string& caption) {
  std::string text = "<table>";
  if (!caption.empty()) text += str("<caption>", html_text(caption), "</caption>");
  text += "<thead><tr>";
  for (const std::string& each : head) text += str("<th>", html_text(each), "</th>");
  text += "</tr></thead><tbody>";
  for (const auto& row : rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += str("<td>", html_text(cell), "</td>");
    text += "</tr>";
  }
  return text + "</tbody></table>";
}

}  // namespace cairn::python
