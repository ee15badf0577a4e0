// The calendar is that of std::chrono. Its years are 16 bits wide, so that numbers that no format
// made, as of a TFRecord, are first brought near to 1970: the Gregorian calendar repeats every 400
// years, its days of the week included.
#include "data/feature/date_format.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/base/error.h"
#include "data/feature/printable.h"

namespace cairn {
namespace {

constexpr std::int64_t kSecondsPer400Years = 146'097 * kSecondsPerDay;
constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::size_t kFormatBytesMax = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return (a % b + b) % b; }

std::chrono::year_month_day civil(std::int64_t days) {
  return std::chrono::sys_days(std::chrono::days(days));
}

}  // namespace

DateFormat::Step DateFormat::step_of(char directive) {
  using Kind = Step::Kind;
  switch (directive) {
    case 'Y': return {Kind::kNumber, 0, Part::kYear, 4, 4, 1, 9999};
    case 'y': return {Kind::kShortYear, 0, Part::kYear, 2, 2, 0, 99};
    case 'm': return {Kind::kNumber, 0, Part::kMonth, 1, 2, 1, 12};
    case 'b': return {Kind::kMonthName, 0, Part::kMonth, 1, 1, 0, 0};
    case 'd': return {Kind::kNumber, 0, Part::kDay, 1, 2, 1, 31};
    case 'j': return {Kind::kNumber, 0, Part::kDayOfYear, 1, 3, 1, 366};
    case 'H': return {Kind::kNumber, 0, Part::kHour, 1, 2, 0, 23};
    case 'M': return {Kind::kNumber, 0, Part::kMinute, 1, 2, 0, 59};
    case 'S': return {Kind::kNumber, 0, Part::kSecond, 1, 2, 0, 59};
    default: return {Kind::kCharacter, directive == '%' ? '%' : '\0'};
  }
}

void DateFormat::fail(const std::string& why) const {
  throw InvalidArgumentError(str("the date format \"", printable(format_, 200), "\" ", why));
}

void DateFormat::add(const Step& step) {
  if (step.kind != Step::Kind::kCharacter) {
    bool& said = said_[static_cast<std::size_t>(step.part)];
    if (said) fail("says one part of a date twice");
    said = true;
  }
  steps_.push_back(step);
}

// A part whose larger part is missing says nothing: the 5th of which month?
void DateFormat::verify_parts() const {
  if (!says(Part::kYear)) fail("has no year: %Y or %y is wanted");
  if (says(Part::kDay) && !says(Part::kMonth)) fail("has a day and no month: %m or %b is wanted");
  if (says(Part::kDayOfYear) && says(Part::kMonth))
    fail("has a day of the year (%j) and a month: one of them is wanted");
  if ((says(Part::kMinute) && !says(Part::kHour)) || (says(Part::kSecond) && !says(Part::kMinute)))
    fail("has minutes or seconds without what they are of: %H:%M:%S is wanted");
}

// Where two numbers touch, or a number and a digit, only their widths tell one from the other.
void DateFormat::fix_widths() {
  const auto is_number = [this](std::size_t i) {
    return i < steps_.size() &&
           (steps_[i].kind == Step::Kind::kNumber || steps_[i].kind == Step::Kind::kShortYear ||
            is_digit(steps_[i].character));
  };
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (is_number(i) && (is_number(i + 1) || (i > 0 && is_number(i - 1))))
      steps_[i].digits_min = steps_[i].digits_max;
}

DateFormat::DateFormat(std::string format) : format_(std::move(format)) {
  if (format_.size() > kFormatBytesMax)
    fail(str("has ", format_.size(), " bytes, at most ", kFormatBytesMax, " are possible"));
  for (std::size_t i = 0; i < format_.size(); ++i) {
    if (format_[i] != '%') {
      add({Step::Kind::kCharacter, format_[i]});
      continue;
    }
    const char directive = ++i < format_.size() ? format_[i] : '\0';
    const Step step = step_of(directive);
    if (step.kind == Step::Kind::kCharacter && step.character == '\0')
      fail(str("has the directive \"%", printable(format_.substr(i, 1)),
               "\"; there are %Y, %y, %m, %b, %d, %j, %H, %M, %S and %%"));
    add(step);
  }
  verify_parts();
  fix_widths();
}

bool DateFormat::take(const Step& step, std::string_view& text, Fields& fields) {
  int& field = fields[static_cast<std::size_t>(step.part)];
  if (step.kind == Step::Kind::kCharacter) {
    if (!text.starts_with(step.character)) return false;
    text.remove_prefix(1);
    return true;
  }
  if (step.kind == Step::Kind::kMonthName) {
    if (text.size() < 3) return false;
    const std::array<char, 3> name = {lowered(text[0]), lowered(text[1]), lowered(text[2])};
    const auto found = std::ranges::find(kMonths, std::string_view(name.data(), name.size()));
    field = static_cast<int>(found - kMonths.begin()) + 1;
    text.remove_prefix(3);
    return found != kMonths.end();
  }
  int value = 0, digits = 0;
  for (; digits < step.digits_max && !text.empty() && is_digit(text.front()); ++digits) {
    value = value * 10 + (text.front() - '0');
    text.remove_prefix(1);
  }
  field = step.kind == Step::Kind::kShortYear ? value + (value < 69 ? 2000 : 1900) : value;
  return digits >= step.digits_min && value >= step.least && value <= step.most;
}

bool DateFormat::read(std::string_view text, Fields& fields) const {
  for (const Step& step : steps_)
    if (!take(step, text, fields)) return false;
  return text.empty();
}

bool DateFormat::parse(std::string_view text, std::int64_t& seconds) const {
  using namespace std::chrono;
  Fields fields = {1970, 1, 1, 1, 0, 0, 0};
  if (!read(text, fields)) return false;
  const auto [of_year, of_month, of_day, day_of_year, hour, minute, second] = fields;
  const year_month_day date{year(of_year), month(static_cast<unsigned>(of_month)),
                            day(static_cast<unsigned>(of_day))};
  if (!date.ok() || (day_of_year == 366 && !date.year().is_leap())) return false;
  const std::int64_t days = sys_days(date).time_since_epoch().count() + day_of_year - 1;
  seconds = days * kSecondsPerDay + hour * 3600 + minute * 60 + second;
  return true;
}

std::string DateFormat::complaint(std::string_view text) const {
  Fields fields = {1970, 1, 1, 1, 0, 0, 0};
  const std::string shown = str("\"", printable(text), "\" is ");
  if (!read(text, fields)) return str(shown, "not a date of the format \"", format_, "\"");
  return shown + "no day of the calendar: its month or year has fewer days";
}

std::int64_t part_of_date(DatePart part, std::int64_t seconds) {
  const std::int64_t within = floor_mod(seconds, kSecondsPer400Years);
  const std::int64_t days = within / kSecondsPerDay;
  switch (part) {
    case DatePart::kDayOfWeek: return (days + 3) % 7;  // 1970-01-01 was a Thursday
    case DatePart::kHour: return within % kSecondsPerDay / 3600;
    case DatePart::kMonth: return static_cast<unsigned>(civil(days).month()) - 1;
  }
  return 0;
}

std::int64_t date_part_ids(DatePart part) {
  switch (part) {
    case DatePart::kDayOfWeek: return 7;
    case DatePart::kHour: return 24;
    case DatePart::kMonth: return 12;
  }
  return 0;
}

const char* date_part_name(DatePart part) {
  switch (part) {
    case DatePart::kDayOfWeek: return "day_of_week";
    case DatePart::kHour: return "hour";
    case DatePart::kMonth: return "month";
  }
  return "";
}

std::string date_text(std::int64_t seconds) {
  constexpr std::int64_t kFirst = -62'135'596'800, kLast = 253'402'300'799;  // years 1 to 9999
  if (seconds < kFirst || seconds > kLast) return str(seconds, " s");
  const std::int64_t within = floor_mod(seconds, kSecondsPerDay);
  const auto date = civil((seconds - within) / kSecondsPerDay);
  char text[40];
  int end = std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()),
                          static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  if (within != 0)
    std::snprintf(text + end, sizeof text - static_cast<std::size_t>(end), " %02d:%02d:%02d",
                  static_cast<int>(within / 3600), static_cast<int>(within / 60 % 60),
                  static_cast<int>(within % 60));
  return text;
}

}  // namespace cairn
