#include "storage/object_store/s3_xml.h"

#include <array>
#include <utility>

namespace cairn::storage {

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name) {
  const std::string begin = "<" + std::string(name) + ">", end = "</" + std::string(name) + ">";
  std::vector<std::string_view> found;
  for (std::size_t at = xml.find(begin); at != std::string_view::npos; at = xml.find(begin, at)) {
    at += begin.size();
    const std::size_t stop = xml.find(end, at);
    if (stop == std::string_view::npos) break;
    found.push_back(xml.substr(at, stop - at));
    at = stop + end.size();
  }
  return found;
}

std::string xml_decoded(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string out;
  while (!text.empty()) {
    std::size_t taken = 0;
    for (const auto& [entity, character] : kEntities)
      if (text.starts_with(entity)) {
        out.push_back(character);
        taken = entity.size();
      }
    if (taken == 0) {
      out.push_back(text.front());
      taken = 1;
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const auto found = xml_elements(xml, name);
  return found.empty() ? std::string() : xml_decoded(found.front());
}

}  // namespace cairn::storage
