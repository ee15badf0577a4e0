// JSON as it is written into answers.
//   Thread  any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace cairn::serving {

bool is_utf8(std::string_view text);

// `text` in quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_text(std::string& out, std::string_view text);
inline std::string json_quoted(std::string_view text) {
  std::string out;
  append_json_text(out, text);
  return out;
}
void append_json_number(std::string& out, std::int64_t value);

// {"error": MESSAGE}, the body of every answer that is an error, in all forms.
std::string error_body(std::string_view message);

// The elements of a tensor as JSON, one at a time. Numbers have the fewest digits that read back as
// the same; floats that are whole end in ".0"; those that are not finite are NaN, Infinity and
// -Infinity. A string is a JSON string, or {"b64": ...} if it is not UTF-8 or `as_bytes`.
class ElementWriter {
 public:
  // `tensor` must outlive this.
  explicit ElementWriter(const Tensor& tensor, bool as_bytes = false)
      : tensor_(tensor), as_bytes_(as_bytes) {}
  // The elements [begin, end), with ", " between them.
  void append(std::string& out, std::int64_t begin, std::int64_t end) const;
  // The elements from `begin` on, as the nested lists of the dimensions from `axis` on; a single
  // value if there are none.
  void append_nested(std::string& out, std::int64_t begin, int axis) const;

 private:
  void append_text(std::string& out, std::string_view text) const;

  const Tensor& tensor_;
  const bool as_bytes_;
};

}  // namespace cairn::serving
