// DateFormat: dates in the cells of files, read by a format such as "%Y-%m-%d %H:%M:%S". A date is
// a number: the seconds since 1970-01-01 00:00:00 UTC.
//
//     %Y  year, four digits        %H  hour, 00 to 23       %j  day of the year, 001 to 366
//     %y  69 to 99: of 1969 on,    %M  minute               %b  Jan, Feb, ... in any case
//         00 to 68: of 2000 on     %S  second               %%  a percent sign
//     %m  month    %d  day
//
// A number may lack its leading zeros, but not those of a year, nor where it touches another one
// ("%Y%m%d"). All other characters of a format stand for themselves. What a format does not say is
// the first of its kind: "%Y-%m" is the first of the month, at midnight.
//   Thread  any.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

inline constexpr std::int64_t kSecondsPerDay = 86'400;

class DateFormat {
 public:
  //   Errors  InvalidArgument, with the directives that there are: an unknown one, one that says
  //           again what another has said, or a format that says no date.
  explicit DateFormat(std::string format);
  const std::string& text() const { return format_; }
  // False: it is not of this format, or is no day of the calendar; `seconds` is then undefined.
  bool parse(std::string_view text, std::int64_t& seconds) const;
  // Why parse() refuses `text`.
  std::string complaint(std::string_view text) const;

 private:
  // The places of Fields.
  enum class Part : std::uint8_t { kYear, kMonth, kDay, kDayOfYear, kHour, kMinute, kSecond };
  using Fields = std::array<int, 7>;
  struct Step {
    enum class Kind : std::uint8_t { kCharacter, kNumber, kShortYear, kMonthName };
    Kind kind = Kind::kCharacter;
    char character = 0;
    Part part = Part::kYear;
    int digits_min = 1, digits_max = 1;
    int least = 0, most = 0;
  };
  static Step step_of(char directive);
  void add(const Step& step);
  void verify_parts() const;
  void fix_widths();
  [[noreturn]] void fail(const std::string& why) const;
  bool says(Part part) const { return said_[static_cast<std::size_t>(part)]; }
  // Takes what a step stands for off the front of `text`.
  static bool take(const Step& step, std::string_view& text, Fields& fields);
  bool read(std::string_view text, Fields& fields) const;

  std::string format_;
  std::vector<Step> steps_;
  std::array<bool, 7> said_ = {};
};

// Parts of a date that are ids.
enum class DatePart : std::uint8_t {
  kDayOfWeek = 0,  // 0 is Monday, 6 is Sunday
  kHour = 1,       // 0 to 23
  kMonth = 2       // 0 is January, 11 is December
};
inline constexpr DatePart kDatePartLast = DatePart::kMonth;
std::int64_t part_of_date(DatePart part, std::int64_t seconds);
// How many ids there are: 7, 24 or 12.
std::int64_t date_part_ids(DatePart part);
// "day_of_week", "hour" or "month".
const char* date_part_name(DatePart part);

// "2024-02-29", or "2024-02-29 13:00:05" where it is not midnight.
std::string date_text(std::int64_t seconds);

}  // namespace cairn
