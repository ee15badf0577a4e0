// Base64, in which JSON carries bytes that are no text: {"b64": "aGVsbG8="}.
//   Source  RFC 4648, sections 4 and 5.
//   Thread  any.
#pragma once
#include <string>
#include <string_view>

namespace cairn::serving {

// The bytes that `text` stands for, into `out`; false: it is not base64. Both alphabets are read,
// the usual one and the one for URLs, and the "=" at the end may be missing.
bool base64_decode(std::string_view text, std::string& out);

// With "=" at the end.
std::string base64_encode(std::string_view bytes);

}  // namespace cairn::serving
