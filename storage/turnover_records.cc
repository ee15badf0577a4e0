// Records of rows that went, and of those that were seen and not admitted.
#include "storage/record_bytes.h"
#include "storage/row_block.h"

namespace cairn::storage {
namespace {

constexpr std::uint8_t kGoneVersion = 1, kSeenVersion = 1;
constexpr std::uint32_t kSketchBytesMax = std::uint32_t{1} << 30;

}  // namespace

std::string encode(std::string_view key, const GoneRows& rows) {
  RecordWriter out;
  out.number(kGoneVersion);
  out.number(static_cast<std::uint32_t>(rows.offsets.size()));
  for (std::size_t i = 1; i < rows.offsets.size(); ++i)
    out.varint(rows.offsets[i] - rows.offsets[i - 1] - 1);
  return out.finish(key);
}

GoneRows decode_gone(std::string_view key, std::string_view value) {
  RecordReader in(key, value);
  in.want(in.number<std::uint8_t>() == kGoneVersion, "a newer version of Cairn wrote it");
  GoneRows rows{decode_key(key).row, {}};
  const auto count = in.number<std::uint32_t>();
  in.want(count > 0 && count <= kGoneRowsMax && count - 1 <= in.left(),
          "its number of rows is impossible");
  rows.offsets.resize(count);
  for (std::uint32_t i = 1; i < count; ++i) {
    const std::uint64_t skipped = in.varint();
    const std::uint64_t room =
        static_cast<std::uint64_t>(INT64_MAX - rows.first_row) - rows.offsets[i - 1];
    in.want(skipped < room, "a row number is malformed");
    rows.offsets[i] = rows.offsets[i - 1] + 1 + skipped;
  }
  in.want(in.left() == 0, "its rows do not fill it");
  return rows;
}

std::string encode(std::string_view key, const SeenRows& seen) {
  RecordWriter out;
  out.number(kSeenVersion);
  out.number(seen.rows.begin);
  out.number(seen.rows.end);
  out.number(seen.dropped);
  out.text(seen.sketch);
  return out.finish(key);
}

SeenRows decode_seen(std::string_view key, std::string_view value) {
  RecordReader in(key, value);
  in.want(in.number<std::uint8_t>() == kSeenVersion, "a newer version of Cairn wrote it");
  SeenRows seen;
  seen.rows = {in.number<std::int64_t>(), in.number<std::int64_t>()};
  seen.dropped = in.number<std::uint64_t>();
  seen.sketch = in.text();
  in.want(in.left() == 0 && seen.rows.begin >= 0 && seen.rows.begin <= seen.rows.end &&
              seen.sketch.size() <= kSketchBytesMax,
          "its fields are impossible");
  return seen;
}

}  // namespace cairn::storage
