// The visits of examples/data/msweb as a dataset: a user, and the areas that the user visited.
// Lines of three kinds are no table, so they are read as text and written as TFRecords.
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/dataset_iterator.h"
#include "data/tfrecord_writer.h"

namespace cairn {

inline std::int64_t msweb_number(const std::string& line, std::size_t begin) {
  std::int64_t number = 0;
  const char* end = line.data() + line.size();
  if (std::from_chars(line.data() + std::min(begin, line.size()), end, number).ec != std::errc{})
    throw InvalidArgumentError("not a line of msweb: " + line);
  return number;
}

// Two columns: int64 "user", and ragged int64 "areas". `to` is the TFRecord file that it writes.
//   Errors  InvalidArgument: the lines are not msweb's; and those of reading and writing.
inline Dataset msweb(const std::string& from, const std::string& to) {
  TfRecordWriter file(to);
  std::int64_t user = -1;
  std::vector<std::int64_t> areas;
  const auto write_user = [&] {
    if (user >= 0)
      file.write(ExampleMessage().integers("user", {user}).integers("areas", areas).bytes());
    areas.clear();
  };
  const auto lines = open(Dataset::text_lines(from));
  while (const auto element = lines->next()) {
    const std::string& line = element->front().string_values()[0];
    if (line.starts_with("C,")) {  // C,"10001",10001
      write_user();
      user = msweb_number(line, line.rfind(',') + 1);
    }
    if (line.starts_with("V,")) areas.push_back(msweb_number(line, 2));  // V,1000,1
  }
  write_user();
  file.finish();
  return Dataset::tfrecords(to, {{{"user", DType::kInt64}, {"areas", DType::kInt64, {}, true}}});
}

}  // namespace cairn
