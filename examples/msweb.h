// The visits of examples/data/msweb, as they are or as a dataset: a user, and the areas that the
// user visited. Lines of three kinds are no table, so they are read as text; the dataset has them
// as TFRecords.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include <cairn/core/base/error.h>
#include <cairn/data/dataset/dataset.h>
#include <cairn/data/dataset/dataset_iterator.h>
#include <cairn/data/file/tfrecord_writer.h>

namespace cairn {

inline std::int64_t msweb_number(const std::string& line, std::size_t begin) {
  std::int64_t number = 0;
  const char* end = line.data() + line.size();
  if (std::from_chars(line.data() + std::min(begin, line.size()), end, number).ec != std::errc{})
    throw InvalidArgumentError("not a line of msweb: " + line);
  return number;
}

struct MswebUser {
  std::int64_t user = 0;
  std::vector<std::int64_t> areas;  // 1000 to 1297, each once
};

// The users of a file who visited `least` areas or more, in its order.
//   Errors  InvalidArgument: the lines are not msweb's; and those of reading.
inline std::vector<MswebUser> msweb_users(const std::string& from, std::size_t least = 0) {
  std::vector<MswebUser> users;
  const auto lines = open(Dataset::text_lines(from));
  while (const auto element = lines->next()) {
    const std::string& line = element->front().string_values()[0];
    if (line.starts_with("C,"))  // C,"10001",10001
      users.push_back({msweb_number(line, line.rfind(',') + 1), {}});
    if (!line.starts_with("V,")) continue;  // V,1000,1
    if (users.empty()) throw InvalidArgumentError("not a line of msweb: " + line);
    users.back().areas.push_back(msweb_number(line, 2));
  }
  std::erase_if(users, [least](const MswebUser& user) { return user.areas.size() < least; });
  return users;
}

// Two columns: int64 "user", and ragged int64 "areas". `to` is the TFRecord file that it writes.
//   Errors  as of msweb_users(); and those of writing.
inline Dataset msweb(const std::string& from, const std::string& to) {
  TfRecordWriter file(to);
  for (const MswebUser& user : msweb_users(from))
    file.write(
        ExampleMessage().integers("user", {user.user}).integers("areas", user.areas).bytes());
  file.finish();
  return Dataset::tfrecords(to, {{{"user", DType::kInt64}, {"areas", DType::kInt64, {}, true}}});
}

}  // namespace cairn
