// Parts that the decoders of JSON bodies share: where in the body something is wrong, and the
// literals of numbers that are not finite, which JSON itself does not have.
//   Thread  any.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::serving {

// "byte 17 (line 2, column 5)": bytes count from 0, lines and columns from 1.
std::string place_in(std::string_view body, std::size_t offset);

// The end of a message about a name of the client's that is none of `names`, as names_there()
// (core/tensor/known_names.h) has it. A long name, for which the nearest would take long to find,
// is cut.
std::string names_near(std::string_view name, const std::vector<std::string>& names);

// A handler's objection to a body.
struct JsonFault {
  static constexpr std::size_t kUnknown = std::size_t(-1);
  std::string why;             // empty: nothing
  std::size_t at = kUnknown;   // the byte; kUnknown: where the parser stopped
  bool unimplemented = false;  // raised as Unimplemented, not InvalidArgument
};

// Raises a fault, with its place or `parsed`, where the parser stopped.
[[noreturn]] void throw_fault(const JsonFault& fault, std::string_view body, std::size_t parsed);

// Why Boost.JSON's parser stopped at `offset`, where the handler itself had no objection.
struct JsonComplaint {
  bool incomplete = false, too_deep = false;
  std::string said;  // the parser's own words
};
//   Errors  InvalidArgument, always, with the place.
[[noreturn]] void throw_not_json(std::string_view body, std::size_t offset,
                                 const JsonComplaint& complaint);

// The body in which each literal NaN, Infinity and -Infinity has become a number of the same
// length, so that a parser of JSON reads past it and places stay the same.
class FiniteBody {
 public:
  // `body` must outlive this.
  explicit FiniteBody(std::string_view body);
  // Without looking for literals, which the parser then refuses.
  static FiniteBody as_it_is(std::string_view body);
  std::string_view text() const { return copy_.empty() ? body_ : std::string_view(copy_); }
  bool has_literals() const { return !places_.empty(); }
  // The literal that stood at that place of the body; empty: none.
  std::string_view literal_at(std::size_t offset) const;

 private:
  FiniteBody() = default;
  std::string_view body_;
  std::string copy_;                 // empty: there are none
  std::vector<std::size_t> places_;  // ascending
};

}  // namespace cairn::serving
