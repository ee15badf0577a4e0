#include "serving/api/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "serving/api/base64.h"

namespace cairn::serving {
namespace {

// Bytes of the well-formed UTF-8 sequence that `text` begins with; 0: it begins with none.
//   Source  The Unicode Standard, table 3-7.
std::size_t sequence_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80, high = 0xBF;  // of the second byte
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

void append_control(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    default: break;
  }
  out += "\\u00";
  out += kHex[static_cast<unsigned char>(c) >> 4];
  out += kHex[static_cast<unsigned char>(c) & 15];
}

template <typename Real>
void append_real(std::string& out, Real value) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    return;
  }
  std::array<char, 40> text;
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  const std::string_view written(text.data(), static_cast<std::size_t>(end - text.data()));
  out += written;
  if (written.find_first_of(".e") == written.npos) out += ".0";
}

template <typename T, typename Append>
void append_each(std::string& out, const T* values, std::int64_t begin, std::int64_t end,
                 Append append) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (i > begin) out += ", ";
    append(out, values[i]);
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = sequence_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t bytes = sequence_bytes(text);
    const char c = text.front();
    if (bytes == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_control(out, c);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  out += '"';
}

void append_json_number(std::string& out, std::int64_t value) {
  std::array<char, 24> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

std::string error_body(std::string_view message) {
  std::string out = "{\"error\": ";
  append_json_text(out, message);
  out += '}';
  return out;
}

void ElementWriter::append_text(std::string& out, std::string_view text) const {
  if (!as_bytes_ && is_utf8(text)) {
    append_json_text(out, text);
    return;
  }
  out += "{\"b64\": \"";
  out += base64_encode(text);
  out += "\"}";
}

void ElementWriter::append(std::string& out, std::int64_t begin, std::int64_t end) const {
  const auto whole = [](std::string& to, auto value) { append_json_number(to, value); };
  const auto real = [](std::string& to, auto value) { append_real(to, value); };
  const void* const raw = tensor_.raw();
  switch (tensor_.dtype()) {
    case DType::kFloat32: return append_each(out, static_cast<const float*>(raw), begin, end, real);
    case DType::kFloat64:
      return append_each(out, static_cast<const double*>(raw), begin, end, real);
    case DType::kInt32:
      return append_each(out, static_cast<const std::int32_t*>(raw), begin, end, whole);
    case DType::kInt64:
      return append_each(out, static_cast<const std::int64_t*>(raw), begin, end, whole);
    case DType::kUint8:
      return append_each(out, static_cast<const std::uint8_t*>(raw), begin, end, whole);
    case DType::kBool:
      return append_each(out, static_cast<const bool*>(raw), begin, end,
                         [](std::string& to, bool value) { to += value ? "true" : "false"; });
    case DType::kBfloat16:
      return append_each(
          out, static_cast<const std::uint16_t*>(raw), begin, end,
          [](std::string& to, std::uint16_t bits) { append_real(to, from_bfloat16(bits)); });
    case DType::kFloat16:
      return append_each(
          out, static_cast<const std::uint16_t*>(raw), begin, end,
          [](std::string& to, std::uint16_t bits) { append_real(to, from_float16(bits)); });
    case DType::kString:
      return append_each(
          out, tensor_.string_values().data(), begin, end,
          [this](std::string& to, const std::string& text) { append_text(to, text); });
  }
}

void ElementWriter::append_nested(std::string& out, std::int64_t begin, int axis) const {
  const Shape& shape = tensor_.shape();
  if (axis >= shape.rank()) return append(out, begin, begin + 1);
  out += '[';
  if (axis == shape.rank() - 1) {
    append(out, begin, begin + shape[axis]);
  } else {
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    for (std::int64_t i = 0; i < shape[axis]; ++i) {
      if (i > 0) out += ", ";
      append_nested(out, begin + i * inner, axis + 1);
    }
  }
  out += ']';
}

}  // namespace cairn::serving
