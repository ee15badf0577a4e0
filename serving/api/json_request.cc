#include "serving/api/json_request.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/tensor/known_names.h"
#include "serving/api/column_builder.h"

namespace cairn::serving {
namespace {

struct Literal {
  std::string_view name;
  std::string_view number;  // of the same length
};
constexpr std::array<Literal, 3> kLiterals = {
    {{"NaN", "0.5"}, {"Infinity", "0.500000"}, {"-Infinity", "-0.500000"}}};

// Whether these bytes are a value of their own: in "-NaN" and "NaN5" the number in the literal's
// place would become part of another one.
bool stands_alone(std::string_view body, std::size_t begin, std::size_t length) {
  constexpr std::string_view kBefore = " \t\r\n[:,", kBehind = " \t\r\n],}";
  const std::size_t end = begin + length;
  return (begin == 0 || kBefore.find(body[begin - 1]) != kBefore.npos) &&
         (end == body.size() || kBehind.find(body[end]) != kBehind.npos);
}

// The literal with which `text` begins; null: none.
const Literal* literal_of(std::string_view text) {
  for (const Literal& literal : kLiterals)
    if (text.starts_with(literal.name)) return &literal;
  return nullptr;
}

}  // namespace

std::string place_in(std::string_view body, std::size_t offset) {
  offset = std::min(offset, body.size());
  const std::string_view before = body.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = offset - (newline == before.npos ? 0 : newline + 1) + 1;
  return str("byte ", offset, " (line ", line, ", column ", column, ")");
}

std::string names_near(std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t kNameMax = 100;
  return names_there(std::string(name.substr(0, kNameMax)), names);
}

void throw_fault(const JsonFault& fault, std::string_view body, std::size_t parsed) {
  const std::string message =
      str(fault.why, "; at ", place_in(body, fault.at == JsonFault::kUnknown ? parsed : fault.at));
  if (fault.unimplemented) throw UnimplementedError(message);
  throw InvalidArgumentError(message);
}

void throw_not_json(std::string_view body, std::size_t offset, const JsonComplaint& complaint) {
  offset = std::min(offset, body.size());
  const std::string place = place_in(body, offset);
  if (body.empty()) throw InvalidArgumentError("the body is empty, and a JSON object is wanted");
  if (complaint.too_deep)
    throw InvalidArgumentError(str("at ", place,
                                   " lists and objects lie within each other deeper "
                                   "than ",
                                   kJsonLevelsMax, " levels"));
  if (complaint.incomplete)
    throw InvalidArgumentError(str("the body ends at ", place, " within its JSON"));
  // The parser stops behind the "-" of -Infinity.
  const std::size_t begin = offset > 0 && body[offset - 1] == '-' ? offset - 1 : offset;
  if (const Literal* const literal = literal_of(body.substr(begin)); literal != nullptr)
    throw InvalidArgumentError(str("at ", place_in(body, begin), ": ", literal->name,
                                   " is not JSON, and this server takes no numbers that are not "
                                   "finite (start it with --allow-nan)"));
  throw InvalidArgumentError(str("the body is not one JSON object: ",
                                 complaint.said.empty() ? "text follows it" : complaint.said,
                                 " at ", place));
}

FiniteBody::FiniteBody(std::string_view body) : body_(body) {
  bool in_text = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
      continue;
    }
    if (c == '"') in_text = true;
    if (c != 'N' && c != 'I' && c != '-') continue;
    const Literal* literal = literal_of(body.substr(i));
    if (literal == nullptr || !stands_alone(body, i, literal->name.size())) continue;
    if (copy_.empty()) copy_ = body;
    copy_.replace(i, literal->name.size(), literal->number);
    places_.push_back(i);
    i += literal->name.size() - 1;
  }
}

FiniteBody FiniteBody::as_it_is(std::string_view body) {
  FiniteBody made;
  made.body_ = body;
  return made;
}

std::string_view FiniteBody::literal_at(std::size_t offset) const {
  if (!std::binary_search(places_.begin(), places_.end(), offset)) return {};
  return literal_of(body_.substr(offset))->name;
}

}  // namespace cairn::serving
