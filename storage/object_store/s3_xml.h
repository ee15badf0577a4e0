// The answers of S3 are XML, of which little is wanted: the text of elements by their name.
//   Thread  any.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cairn::storage {

// The text of each element of that name, in order, with what is within it as it stands.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);
// The text of the first one, entities decoded; empty: there is none.
std::string xml_text(std::string_view xml, std::string_view name);
std::string xml_decoded(std::string_view text);

}  // namespace cairn::storage
