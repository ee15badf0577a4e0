// Plain HTML tables, as which notebooks show objects; the notebook gives them their style.
#pragma once
#include <string>
#include <vector>

namespace cairn::python {

using HtmlRows = std::vector<std::vector<std::string>>;

// The text with what HTML would read as its own escaped.
std::string html_text(const std::string& text);
// Returns an HTML table of these texts, all of them escaped. An empty caption is left out.
std::string html_table(const std::vector<std::string>& head, const HtmlRows& rows,
                       const std::string& caption = "");

}  // namespace cairn::python
