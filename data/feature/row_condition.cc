#include "data/feature/row_condition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "core/tensor/known_names.h"
#include "data/feature/numbers.h"
#include "data/feature/printable.h"

namespace cairn {

// A descent through the few rules of the grammar, from left to right without going back, so that
// the place of an error is where the text stops making sense.
class ConditionParser {
 public:
  ConditionParser(RowCondition& made, std::span<const ConditionColumn> columns)
      : made_(made), columns_(columns), text_(made.text_) {}

  void parse() {
    take_column();
    skip_blanks();
    if (take_word("known")) return expect_end();
    if (column_->several)
      fail(str("a cell of \"", printable(made_.column_),
               "\" holds several values, of which only `known` can be asked"));
    made_.of_text_ = column_->dtype == DType::kString;
    made_.of_flag_ = column_->dtype == DType::kBool;
    if (!column_->date_format.empty()) made_.date_.emplace(column_->date_format);
    if (take("%")) take_modulus();
    skip_blanks();
    if (made_.modulus_ == 0 && take_word("in"))
      take_list();
    else
      take_comparison();
    expect_end();
  }

 private:
  static bool ends_name(char c) {
    return std::string_view(" \t%=!<>[],\"'").find(c) != std::string_view::npos;
  }
  bool at_end() const { return at_ == text_.size(); }
  void skip_blanks() {
    while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view sign) {
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  // The word alone, and not a longer one that begins with it.
  bool take_word(std::string_view word) {
    const std::size_t end = at_ + word.size();
    if (!text_.substr(at_).starts_with(word) || (end < text_.size() && !ends_name(text_[end])))
      return false;
    at_ = end;
    return true;
  }
  std::string take_name() {
    const std::size_t begin = at_;
    while (!at_end() && !ends_name(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool at_quote() const { return !at_end() && (text_[at_] == '"' || text_[at_] == '\''); }
  std::string take_quoted() {
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("the quote is not closed");
    const std::string inside(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return inside;
  }

  void take_column() {
    skip_blanks();
    const std::size_t begin = at_;
    made_.column_ = at_quote() ? take_quoted() : take_name();
    if (made_.column_.empty()) fail("the name of a column is wanted");
    const auto found = std::ranges::find(columns_, made_.column_, &ConditionColumn::name);
    const std::size_t end = std::exchange(at_, begin);  // the place of what may be wrong with it
    if (found == columns_.end()) fail(unknown_column());
    if (found->read_past)
      fail(str("column \"", printable(made_.column_), "\" is read past: list it as one to read"));
    column_ = &*found;
    at_ = end;
  }
  std::string unknown_column() const {
    std::vector<std::string> names;
    for (const ConditionColumn& column : columns_) names.push_back(column.name);
    return str("there is no column \"", printable(made_.column_), "\"",
               names_there(made_.column_, names));
  }

  void take_modulus() {
    skip_blanks();
    if (made_.of_text_) fail_for_text();
    const std::size_t begin = at_;
    if (!parse_integer(take_name(), made_.modulus_) || made_.modulus_ < 1) {
      at_ = begin;
      fail("a whole number from 1 on is wanted");
    }
  }
  // The longer ones first, since "<" begins "<=", too.
  void take_comparison() {
    using Kind = RowCondition::Kind;
    static constexpr std::array<std::pair<std::string_view, Kind>, 6> kSigns{
        {{"==", Kind::kEqual},
         {"!=", Kind::kNotEqual},
         {"<=", Kind::kLessEqual},
         {">=", Kind::kMoreEqual},
         {"<", Kind::kLess},
         {">", Kind::kMore}}};
    const auto sign =
        std::ranges::find_if(kSigns, [this](const auto& each) { return take(each.first); });
    if (sign == kSigns.end())
      fail(made_.modulus_ > 0 ? "==, !=, <, <=, > or >= is wanted"
                              : "==, !=, <, <=, >, >=, %, in or known is wanted");
    made_.kind_ = sign->second;
    take_value();
  }
  void take_list() {
    made_.kind_ = RowCondition::Kind::kEqual;
    skip_blanks();
    if (!take("[")) fail("a list in brackets is wanted");
    do {
      take_value();
      skip_blanks();
    } while (take(","));
    if (!take("]")) fail("a comma or ] is wanted");
  }
  void take_value() {
    skip_blanks();
    if (made_.of_text_) {
      if (!at_quote()) fail_for_text();
      return made_.texts_.push_back(take_quoted());
    }
    if (made_.date_ && at_quote()) return take_date();
    const std::size_t begin = at_;
    double number = 0;
    if (at_quote() || !parse_real(take_name(), number) || std::isnan(number)) {
      at_ = begin;
      fail(made_.date_ ? str("a date in quotes is wanted, of the format \"",
                             printable(column_->date_format, 200), "\"")
                       : str("a number is wanted, for column \"", printable(made_.column_),
                             "\" is ", dtype_name(column_->dtype)));
    }
    made_.numbers_.push_back(number);
  }
  void take_date() {
    const std::size_t begin = at_;
    const std::string text = take_quoted();
    std::int64_t seconds = 0;
    if (!made_.date_->parse(text, seconds)) {
      at_ = begin;
      fail(made_.date_->complaint(text));
    }
    made_.numbers_.push_back(static_cast<double>(seconds));
  }
  void expect_end() {
    skip_blanks();
    if (!at_end()) fail("the end is wanted: each condition is a text of its own");
  }

  [[noreturn]] void fail_for_text() const {
    fail(
        str("a text in quotes is wanted, for column \"", printable(made_.column_), "\" is string"));
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw InvalidArgumentError(str("the condition \"", printable(text_, 200), "\", character ",
                                   at_ + 1, at_end() ? " (its end): " : ": ", why));
  }

  RowCondition& made_;
  std::span<const ConditionColumn> columns_;
  std::string_view text_;
  const ConditionColumn* column_ = nullptr;
  std::size_t at_ = 0;
};

RowCondition::RowCondition(std::string text, std::span<const ConditionColumn> columns)
    : text_(std::move(text)) {
  ConditionParser(*this, columns).parse();
}

RowCondition RowCondition::known(std::string column) {
  RowCondition made;
  made.text_ = column + " known";
  made.column_ = std::move(column);
  return made;
}

template <typename Value, typename List>
bool RowCondition::compares(Value value, const List& with) const {
  switch (kind_) {
    case Kind::kKnown: return true;
    case Kind::kEqual: return std::ranges::find(with, value) != with.end();
    case Kind::kNotEqual: return value != with.front();
    case Kind::kLess: return value < with.front();
    case Kind::kLessEqual: return value <= with.front();
    case Kind::kMore: return value > with.front();
    case Kind::kMoreEqual: return value >= with.front();
  }
  return false;
}

bool RowCondition::holds_of(double number) const {
  if (modulus_ > 0) {
    const double modulus = static_cast<double>(modulus_);
    number = std::fmod(number, modulus);
    if (number < 0) number += modulus;
  }
  return compares(number, numbers_);
}

// In int64 where all are whole numbers: float32, the only other dtype that is computed in, would
// round those above 2^24.
Array RowCondition::recorded(const Array& value) const {
  CAIRN_CHECK(of_number(), "a condition that compares no numbers: ", text_);
  constexpr double kWholeMax = 0x1p53;
  const auto is_whole = [](double number) {
    return number == std::floor(number) && std::fabs(number) <= kWholeMax;
  };
  const bool whole = value.dtype() != DType::kFloat32 && value.dtype() != DType::kFloat64 &&
                     std::ranges::all_of(numbers_, is_whole);
  const auto constant = [whole](double number) {
    return whole ? Array(Tensor::scalar(static_cast<std::int64_t>(number)))
                 : Array(static_cast<float>(number));
  };
  const DType dtype = whole ? DType::kInt64 : DType::kFloat32;
  Array number = value.dtype() == dtype ? value : cast(value, dtype);
  if (modulus_ > 0) number = floor_mod(number, constant(static_cast<double>(modulus_)));
  Array with = constant(numbers_.front());
  switch (kind_) {
    case Kind::kNotEqual: return number != with;
    case Kind::kLess: return less(number, with);
    case Kind::kLessEqual: return number <= with;
    case Kind::kMore: return greater(number, with);
    case Kind::kMoreEqual: return number >= with;
    default: break;
  }
  Array any = number == with;
  for (std::size_t i = 1; i < numbers_.size(); ++i)
    any = logical_or(any, number == constant(numbers_[i]));
  return any;
}

bool RowCondition::holds(std::string_view cell) const {
  if (kind_ == Kind::kKnown) return true;
  if (of_text_) return compares(cell, texts_);
  if (std::int64_t seconds = 0; date_)
    return !date_->parse(cell, seconds) || holds_of(static_cast<double>(seconds));
  if (bool flag = false; of_flag_) return !parse_bool(cell, flag) || holds_of(flag ? 1 : 0);
  double number = 0;
  return !parse_real(cell, number) || holds_of(number);
}

}  // namespace cairn
