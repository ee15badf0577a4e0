// Bytes inside JSON, whose strings must be text: iterator states and vocabularies in a manifest.
//   Source  RFC 4648, section 4, with padding.
//   Thread  any.
#pragma once
#include <string>
#include <string_view>

namespace cairn::storage {

std::string to_base64(std::string_view bytes);
// Errors  InvalidArgument: a length that is not a multiple of 4, or a character that is not a digit
//         of the alphabet.
std::string from_base64(std::string_view text);

}  // namespace cairn::storage
